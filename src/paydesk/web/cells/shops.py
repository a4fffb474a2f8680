"""The shops that somebody has in other cells, as these say when they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta

from paydesk.core.paging import LARGEST_ID
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.handing_over import is_enough, may_be_opened
from paydesk.domain.accounts.people import LONGEST_EMAIL, Person, find_holder, findable
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.second_factor import mark_of
from paydesk.domain.accounts.team import memberships_of
from paydesk.domain.cells.directory import Cell
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import CellAway

SHOPS: Final = "/cells/shops"
"""Where a cell is asked in whose teams somebody is."""

_MOST: Final = 200
"""Shops of one person that are named."""

_LONGEST_MARK: Final = 64
"""Characters of a second factor's mark."""


@dataclass(frozen=True, slots=True)
class AskedShops:
    """Who is logged in in the cell that asks, and which second factor they have shown there, as of
    who is handed over (`HandOver`); a cell of an older release says neither of the last two.
    """

    email: Annotated[str, Meta(max_length=LONGEST_EMAIL)]
    second_factor: bool
    operator: bool = False
    factor: Annotated[str, Meta(max_length=_LONGEST_MARK)] = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Shop:
    """A merchant of another cell in whose team somebody is."""

    merchant_id: Annotated[int, Meta(ge=0, le=LARGEST_ID)]
    merchant_name: Annotated[str, Meta(max_length=200)]
    role: Role


@dataclass(frozen=True, slots=True)
class FoundShops:
    """What a cell says: none for whom it would first ask for something, if they came there."""

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
    if holder is None or not may_be_opened(holder):
        return FoundShops([])
    if holder.second_factor and not (
        asked.second_factor and await is_enough(gate, holder, factor=asked.factor, is_operator=asked.operator)
    ):
        return FoundShops([])
    found = await memberships_of(gate, holder.id)
    return FoundShops([Shop(one.merchant_id, one.merchant_name[:200], one.role) for one in found[:_MOST]])


async def shops_elsewhere(
    asking: Asking, gate: Gate, cells: Sequence[Cell], person: Person, *, own: int, now: datetime
) -> list[Elsewhere]:
    """The shops of somebody who is logged in here, in other cells, which are asked at once; none is
    asked for whose address may be a stranger's.
    """
    if person.email_confirmed_at is None:
        return [Elsewhere(cell, []) for cell in cells]
    factor = await mark_of(gate, person.id)
    asked = AskedShops(person.email, person.second_factor, person.operator, factor)

    async def of(cell: Cell) -> Elsewhere:
        try:
            return Elsewhere(cell, (await asking.ask(cell, SHOPS, asked, FoundShops, own=own, now=now)).shops)
        except CellAway:
            return Elsewhere(cell, None)

    return list(await asyncio.gather(*(of(cell) for cell in cells)))
