"""The cells that know a refund of which an acquirer says that it failed, as they say when they are
asked: of an account that cells share, each reads all that its list has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import structlog
from msgspec import Meta

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.cells.directory import Cell, all_other_cells, this_cell
from paydesk.domain.payments.waiting_refunds import MOST, Elsewhere, Heard, KnownRefund
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import CellAway

REFUNDS: Final = "/cells/refunds"
"""Where a cell is asked under which keys it has refunds."""

LARGEST_QUESTION: Final = 64 * 1024
"""Of as many keys as fit into one; JSON writes some signs of a key as two."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AskedRefunds:
    """Keys of refunds."""

    keys: Annotated[list[str], Meta(max_length=MOST)]


@dataclass(frozen=True, slots=True)
class KnownRefunds:
    """Those of them that a cell has."""

    known: list[KnownRefund]


def refunds_elsewhere(asking: Asking, database: Database) -> Elsewhere:
    """What asks all other cells at once, as far as this cell's `database` knows which there are."""

    async def ask(keys: Sequence[str]) -> Heard:
        own, others = (await this_cell(database)).number, await all_other_cells(database)

        async def known(cell: Cell) -> list[KnownRefund] | None:
            question = AskedRefunds(list(keys))
            try:
                said = await asking.ask(cell, REFUNDS, question, KnownRefunds, own=own, now=utc_now())
            except CellAway as error:
                log.warning(
                    "another cell does not say which refunds it has", cell=cell.number, why=repr(error.__cause__)
                )
                return None
            return said.known

        said = list(zip(others, await asyncio.gather(*map(known, others)), strict=True))
        return Heard(
            known=tuple(one for _, of_cell in said for one in of_cell or ()),
            silent=tuple(cell.number for cell, of_cell in said if of_cell is None),
            has_others=bool(others),
        )

    return ask
