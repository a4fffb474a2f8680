"""Merchants who are in two cells: the database of one came back from before they had moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.cells.comparing import Elsewhere
from paydesk.domain.cells.directory import Kind

queries = load_statements(__package__ or "", "in_both.sql")


@dataclass(frozen=True, slots=True)
class InBoth:
    """A merchant of this cell whom the cell has, too, to which the directory leads, and whether
    they are closed in each.
    """

    merchant_id: int
    led_to: int
    is_closed_here: bool
    is_closed_there: bool


@dataclass(frozen=True, slots=True)
class _There:
    id: int
    is_closed: bool


async def in_both(number: int, elsewhere: Sequence[Elsewhere], cells: Mapping[int, Database]) -> list[InBoth]:
    """Which merchants of cell `number`, of what the directory says is elsewhere, are there, too;
    `cells` are the databases of all that can be asked. Who is on the way is not meant.
    """
    led_to = {
        one.own.entry.merchant_id: one.cell
        for one in elsewhere
        if one.own.entry.kind is Kind.merchant and one.own.entry.merchant_id is not None and one.cell in cells
    }
    ids = list(led_to)
    asked = {one: await _who_is_there(cells[one], ids) for one in {number, *led_to.values()}} if ids else {}
    return [
        InBoth(merchant_id, cell, asked[number][merchant_id], asked[cell][merchant_id])
        for merchant_id, cell in led_to.items()
        if merchant_id in asked[number] and merchant_id in asked[cell]
    ]


async def _who_is_there(cell: Database, ids: Sequence[int]) -> dict[int, bool]:
    """Who of these merchants works in a cell, and whether they are closed there."""
    found = await records_of(_There, queries.who_is_there(cell, merchant_ids=ids))
    return {one.id: one.is_closed for one in found}
