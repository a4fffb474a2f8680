"""What the other cells say of themselves, as one process has heard it lately: all are asked at
once, so that who is silent keeps nobody from being heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog
from prometheus_client import Counter

from paydesk.domain.cells.directory import Cell
from paydesk.domain.operations.cell_figures import CellFigures
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import CellAway, why_away

FIGURES: Final = "/cells/figures"
"""Where a cell is asked for its figures."""

FRESH: Final = timedelta(seconds=10)
"""What was heard within this time is not asked for again."""

ASKED = Counter(
    "paydesk_cells_asked_total",
    "Questions to other cells for what their consoles show, by cell and what came of them",
    ["cell", "outcome"],
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Heard:
    """A cell's figures as they were last heard, at a time, UTC (None: never); `silent_since` is
    when it was first asked in vain since, None if it answers.
    """

    cell: Cell
    figures: CellFigures | None
    at: datetime | None
    silent_since: datetime | None

    @property
    def answers(self) -> bool:
        """Whether it answered when it was last asked."""
        return self.at is not None and self.silent_since is None


class Watch:
    """Asks other cells for their figures, when somebody wants to see them and they are not known
    from just before; never twice at a time.
    """

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self._heard: dict[int, Heard] = {}
        self._asked_at: dict[int, datetime] = {}
        self._under_way: dict[int, asyncio.Task[None]] = {}

    async def look(self, cells: Sequence[Cell], *, own: int, now: datetime, patience: float) -> list[Heard]:
        """What is known of these cells after at most so many seconds; what comes later is known
        the next time. `own` is this cell's number, `now` UTC.
        """
        others = [one for one in cells if one.number != own]
        for cell in others:
            asked_at = self._asked_at.get(cell.number)
            if cell.number not in self._under_way and (asked_at is None or abs(now - asked_at) >= FRESH):
                self._asked_at[cell.number] = now
                self._under_way[cell.number] = asyncio.create_task(self._ask(cell, own, now))
        if waited := [self._under_way[one.number] for one in others if one.number in self._under_way]:
            await asyncio.wait(waited, timeout=patience)
        return [replace(self._heard.get(one.number, Heard(one, None, None, None)), cell=one) for one in others]

    async def end(self) -> None:
        """Leave off asking."""
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def _ask(self, cell: Cell, own: int, now: datetime) -> None:
        before = self._heard.get(cell.number)
        try:
            figures = await self.asking.ask(cell, FIGURES, {}, CellFigures, own=own, now=now)
        except CellAway as error:
            log.warning("another cell does not tell its figures", cell=cell.number, why=why_away(error))
            ASKED.labels(str(cell.number), "away").inc()
            since = before.silent_since if before is not None and before.silent_since is not None else now
            known, at = (before.figures, before.at) if before is not None else (None, None)
            self._heard[cell.number] = Heard(cell, known, at, since)
        else:
            ASKED.labels(str(cell.number), "answered").inc()
            self._heard[cell.number] = Heard(cell, figures, now, None)
        finally:
            del self._under_way[cell.number]


@asynccontextmanager
async def watching(asking: Asking) -> AsyncIterator[Watch]:
    """A watch for the length of a block."""
    watch = Watch(asking)
    try:
        yield watch
    finally:
        await watch.end()
