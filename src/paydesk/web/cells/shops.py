"""The shops that somebody has in other cells, as these say when they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta

from paydesk.core.paging import LARGEST_ID
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.people import LONGEST_EMAIL, Person, find_holder, findable
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.team import memberships_of
from paydesk.domain.cells.directory import Cell
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import CellAway

SHOPS: Final = "/cells/shops"
"""Where a cell is asked in whose teams somebody is."""

_MOST: Final = 200
"""Shops of one person that are named."""


@dataclass(frozen=True, slots=True)
class AskedShops:
    """Who is logged in in the cell that asks, and whether they have shown a second factor there."""

    email: Annotated[str, Meta(max_length=LONGEST_EMAIL)]
    second_factor: bool


@dataclass(frozen=True, slots=True)
class Shop:
    """A merchant of another cell in whose team somebody is."""

    merchant_id: Annotated[int, Meta(ge=0, le=LARGEST_ID)]
    merchant_name: Annotated[str, Meta(max_length=200)]
    role: Role


@dataclass(frozen=True, slots=True)
class FoundShops:
    """What a cell says: none for whom it would first ask for a second factor."""

    shops: Annotated[Sequence[Shop], Meta(max_length=_MOST)]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another cell that somebody has an account in, with their shops there; None if it does
    not answer.
    """

    cell: Cell
    shops: Sequence[Shop] | None


async def shops_of(gate: Gate, asked: AskedShops) -> FoundShops:
    """The shops that a person has in this cell, for the cell where they are logged in."""
    holder = await find_holder(gate.database, findable(asked.email))
    if holder is None or holder.email_confirmed_at is None or (holder.second_factor and not asked.second_factor):
        return FoundShops([])
    found = await memberships_of(gate, holder.id)
    return FoundShops([Shop(one.merchant_id, one.merchant_name[:200], one.role) for one in found[:_MOST]])


async def shops_elsewhere(
    asking: Asking, cells: Sequence[Cell], person: Person, *, own: int, now: datetime
) -> list[Elsewhere]:
    """The shops of somebody who is logged in here, in other cells, which are asked at once."""
    asked = AskedShops(person.email, person.second_factor)

    async def of(cell: Cell) -> Elsewhere:
        try:
            return Elsewhere(cell, (await asking.ask(cell, SHOPS, asked, FoundShops, own=own, now=now)).shops)
        except CellAway:
            return Elsewhere(cell, None)

    return list(await asyncio.gather(*(of(cell) for cell in cells)))
