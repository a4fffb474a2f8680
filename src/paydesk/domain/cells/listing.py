"""The cells that there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements

queries = load_statements(__package__ or "", "listing.sql")


@dataclass(frozen=True, slots=True)
class ListedCell:
    """A cell, how many merchants are in it, and from which number times 10^13 on it gives out
    `ids`, as far as this cell's copy of the directory knows.
    """

    number: int
    address: str
    inside: str
    added_at: datetime
    merchants: int
    ids: int


async def list_cells(database: Database) -> list[ListedCell]:
    """All cells, home among them; none where a deployment stands alone. Every merchant is counted:
    it is not for what is asked often, or by strangers.
    """
    return await records_of(ListedCell, queries.list_cells(database))
