"""Asks all other cells at once what they know of what an account has told that this cell does not
know: where cells share an account, each reads all that its lists have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.acquirers.other_cells import Elsewhere, Heard, Known
from paydesk.domain.cells.directory import Cell, all_other_cells, this_cell
from paydesk.web.cells.asking import Asking, QuestionUnknown
from paydesk.web.cells.calling import CellAway, why_away

log = structlog.get_logger()

Asked = TypeVar("Asked")


@dataclass(frozen=True, slots=True)
class KnownThere:
    """Those that a cell knows of what it was asked for."""

    known: list[Known]


def elsewhere_by(
    asking: Asking, database: Database, path: str, question: Callable[[Sequence[Asked]], object]
) -> Elsewhere[Asked]:
    """What asks all other cells at once, as far as this cell's `database` knows which there are."""

    async def ask(asked: Sequence[Asked]) -> Heard:
        own, others = (await this_cell(database)).number, await all_other_cells(database)
        older = set[int]()

        async def known(cell: Cell) -> list[Known] | None:
            try:
                said = await asking.ask(cell, path, question(asked), KnownThere, own=own, now=utc_now())
            except CellAway as error:
                if isinstance(error, QuestionUnknown):
                    older.add(cell.number)
                log.warning("another cell does not say what it knows", cell=cell.number, why=why_away(error))
                return None
            return said.known

        said = list(zip(others, await asyncio.gather(*map(known, others)), strict=True))
        away = [cell.number for cell, of_cell in said if of_cell is None]
        return Heard(
            known=tuple(one for _, of_cell in said for one in of_cell or ()),
            silent=tuple(cell for cell in away if cell not in older),
            older=tuple(cell for cell in away if cell in older),
            has_others=bool(others),
        )

    return ask
