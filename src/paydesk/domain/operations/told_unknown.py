"""What accounts told of payments that are not known in this cell, for the operator: refunds that
failed, and disputes. Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements

queries = load_statements(__package__ or "", "told_unknown.sql")


@dataclass(frozen=True, slots=True)
class Told:
    """What of a telling says which one it is."""

    reference: str
    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class ToldUnknown:
    """A failed refund or a dispute (`what`) whose payment is not known here, as it was last told.

    Times are UTC; an operator was told of it at `alarmed_at`, None if not, and `reason` says for
    what it waits.
    """

    acquirer: str
    what: str
    told: Told
    first_at: datetime
    last_at: datetime
    alarmed_at: datetime | None
    reason: str


async def list_told_unknown(database: Database, *, account: str | None, most: int) -> list[ToldUnknown]:
    """Those that wait, of one account or of all, the oldest first; not what another cell has
    booked.
    """
    return await records_of(ToldUnknown, queries.list_told_unknown(database, account=account, most=most))
