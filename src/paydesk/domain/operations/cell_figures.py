"""What a cell tells the consoles of all others of itself: what waits for a hand there, by the same
code as its own console, and how it is kept. Moves no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta

from paydesk import __version__
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.cells.directory import this_cell
from paydesk.domain.cells.replicating import SUBSCRIPTION, slots
from paydesk.domain.operations.waiting import Machinery, Waiting, machinery_now, payouts_to_make, what_waits

queries = load_statements(__package__ or "", "cell_figures.sql")

_MOST: Final = 10**15
_MOST_CELLS: Final = 900

Count = Annotated[int, Meta(ge=0, le=_MOST)]
"""A number that another cell says: whatever that is, it can be shown."""


@dataclass(frozen=True, slots=True)
class Copy:
    """How far a cell's copy of the directory is behind home, in bytes of log and in seconds, where
    anybody knows; and whether it is read at all just now.
    """

    cell: Count
    is_read: bool
    bytes_behind: Count | None
    seconds_behind: Annotated[float, Meta(ge=0, le=_MOST)] | None


@dataclass(frozen=True, slots=True)
class CellFigures:
    """A cell's figures; `copies` is what home alone knows, of all others."""

    alarms: Count
    unknown: Count
    unknown_for_a_day: Count
    profiles: Count
    disputes: Count
    failing: Count
    behind: Count
    due: Count
    alive: Count
    payouts: Count | None
    step: Count
    version: Annotated[str, Meta(max_length=40)]
    copies: Annotated[Sequence[Copy], Meta(max_length=_MOST_CELLS)]


async def figures_of_this_cell(database: Database, *, now: datetime) -> CellFigures:
    """This cell's figures. `now` is real time, UTC."""
    waiting, machinery = await what_waits(database, now=now), await machinery_now(database, now=now)
    return figures(
        waiting,
        machinery,
        payouts=await payouts_to_make(database, now=now),
        step=int(await queries.newest_step(database) or 0),
        copies=await _copies(database),
    )


def figures(
    waiting: Waiting, machinery: Machinery, *, payouts: int | None, step: int, copies: Sequence[Copy] = ()
) -> CellFigures:
    """What a cell says, from what its console shows."""
    return CellFigures(
        alarms=waiting.alarms,
        unknown=waiting.unknown,
        unknown_for_a_day=waiting.unknown_for_a_day,
        profiles=waiting.profiles,
        disputes=waiting.disputes,
        failing=len(machinery.failing),
        behind=len(machinery.behind),
        due=machinery.due,
        alive=machinery.alive,
        payouts=payouts,
        step=step,
        version=__version__,
        copies=copies,
    )


async def _copies(database: Database) -> list[Copy]:
    """How far the others' copies are behind, at home; nothing elsewhere."""
    if not (await this_cell(database)).is_home:
        return []
    return [
        Copy(
            cell=int(name.removeprefix(SUBSCRIPTION)),
            is_read=one.active and not one.lost,
            bytes_behind=None if one.bytes_behind is None else max(0, one.bytes_behind),
            seconds_behind=None if one.seconds_behind is None else max(0.0, one.seconds_behind),
        )
        for name, one in (await slots(database)).items()
        if name.removeprefix(SUBSCRIPTION).isdecimal()
    ]
