"""A merchant is in two cells, because the database of one came back from before it had moved to the
other: the copy there goes, once nothing is known by it alone.

It goes as what is left at the end of a move does: fenced and closed first, then the other cell's
for good (`moved_at`), then deleted. Whoever dies in between leaves it closed, and the same command
goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from paydesk.core.errors import Conflict, PaydeskError
from paydesk.database.pool import AWAY
from paydesk.domain.cells.fencing import InFlight, close, fence, find_fence, lift, say_moved
from paydesk.domain.cells.living import living
from paydesk.domain.cells.waits import Waits, unheard
from paydesk.domain.moving.ending import enter_what_is_there, forget_here, lead_there
from paydesk.domain.moving.moving import CALLS_END
from paydesk.domain.moving.only_here import Alone, code_of, only_here
from paydesk.domain.moving.requirements import Cells, in_files, require_cells, require_same_steps
from paydesk.domain.moving.steps import Move
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.moving.witnesses import Witnesses, look, require_may_be_removed


class Stage(StrEnum):
    """What the removal of a copy has come to."""

    closed = "closed"
    compared = "compared"
    given_up = "given up"
    led = "led"
    deleted = "deleted"


@dataclass(frozen=True, slots=True)
class Removed:
    """What was deleted that only the copy knew, what was in flight still when it was closed, and
    how many entries of a directory that had come back, too, lead to the other cell now.
    """

    lost: Sequence[Alone]
    left: InFlight | None
    led: int = 0


Reached: TypeAlias = Callable[[Stage], None]


class OnlyHere(Conflict):
    """The copy knows what the other cell does not, so that nothing was deleted."""

    def __init__(self, merchant_id: int, to: int, found: Sequence[Alone], *, stays_closed: bool) -> None:
        self.found = found
        state = "stays closed here" if stays_closed else "is open here again, as it was"
        super().__init__(
            f"what is here of merchant {merchant_id} says what cell {to} does not know: "
            f"{'; '.join(str(one) for one in found)}. Nothing was deleted; it {state}. Look at these rows, and give "
            f"back, or enter in cell {to}, what must not be lost; the same command with --lose {code_of(found)} then "
            "deletes them, as long as it is these rows and no others"
        )


async def look_at_copy(
    move: Move, *, home_came_back: bool = False, report: Callable[[], None] = lambda: None
) -> list[Alone]:
    """What only the copy here knows that `remove_copy` would delete; nobody is fenced, and nothing
    changed.

    Raises: Conflict, NotFound, SetupError with why it can't be removed.
    """
    cells = await require_cells(move.source, move.target, move.to)
    await _look(move, cells, home_came_back)
    return await only_here(move.source, move.target, move.merchant_id, report=report)


async def remove_copy(
    move: Move,
    *,
    lose: str = "",
    home_came_back: bool = False,
    reached: Reached = lambda _: None,
    report: Callable[[], None] = lambda: None,
    waits: Waits = unheard,
    patience: float = CALLS_END,
) -> Removed:
    """Delete what is here of a merchant who works in the other cell, or go on with that.

    Only if all that it says is known there, or it is just what somebody has seen who knows its code
    (`lose`, see `only_here.code_of`). Where `home_came_back`, too, so that the directory leads to
    the copy, it leads to the other cell then; and if something is lost, that must know something
    that the copy does not. Moves no money.
    Raises: OnlyHere, Conflict, NotFound, SetupError, Unavailable with why it stays. Then it is open
        here if it was.
    """
    cells = await require_cells(move.source, move.target, move.to)
    async with living(move.source.database, move.merchant_id, alone=True):
        return await _removed(move, cells, lose, home_came_back, reached, report, waits, patience)


async def _removed(
    move: Move,
    cells: Cells,
    lose: str,
    home_came_back: bool,
    reached: Reached,
    report: Callable[[], None],
    waits: Waits,
    patience: float,
) -> Removed:
    """Delete it, or go on with that; nobody else does meanwhile."""
    seen = await _look(move, cells, home_came_back)
    is_led = move.home is None or seen.led_to == move.to
    found: Sequence[Alone] = ()
    left = None
    # A fence may be all that is left, of a call that came after another one had deleted the rest.
    if seen.is_here or not seen.has_moved:
        async with _or_as_it_stood(move, cells, seen):
            # Who has gone on from a cell before it was deleted here is on the way there still.
            other_cell = cells.there if seen.here is None else seen.here.other_cell
            await fence(move.source.database, move.merchant_id, other_cell=other_cell, tables=GUARDED, waits=waits)
            left = await close(move.source.database, move.merchant_id, patience=patience, waits=waits)
            closed_at = await _closed_at(move)
            reached(Stage.closed)
            found = await only_here(move.source, move.target, move.merchant_id, report=report)
            if found and lose != code_of(found):
                raise OnlyHere(move.merchant_id, move.to, found, stays_closed=seen.here is not None)
            if found and not is_led:
                await _require_later_there(move)
            reached(Stage.compared)
            await _give_up(move, cells, closed_at, home_came_back)
            reached(Stage.given_up)
    led = 0
    if move.home is not None and not is_led:
        # All at once: whoever is led there already is not looked at again.
        async with move.home.acquire() as home, home.transaction():
            led = await lead_there(move, home)
            await enter_what_is_there(move, home)
        reached(Stage.led)
    await forget_here(move)
    reached(Stage.deleted)
    return Removed(found, left, led)


async def _require_later_there(move: Move) -> None:
    """Make sure that the other cell, to which the directory does not lead, is not the copy itself:
    that would know nothing of its own. Raises: Conflict.
    """
    known_there = await only_here(move.target, move.source, move.merchant_id)
    if not any(not one.may_be for one in known_there):
        raise Conflict(
            f"cell {move.to} knows nothing of merchant {move.merchant_id} that is not here, and the directory does not "
            "lead there: it may be the copy itself, so that nothing is deleted here that it does not know"
        )


async def _look(move: Move, cells: Cells, home_came_back: bool) -> Witnesses:
    seen = await look(move.source, move.target, move.home, move.merchant_id, cells)
    require_may_be_removed(seen, home_came_back=home_came_back)
    if seen.is_here and (reasons := await in_files(move.source, move.merchant_id)):
        raise Conflict(f"merchant {move.merchant_id} can't go from here: {'; '.join(reasons)}")
    return seen


@asynccontextmanager
async def _or_as_it_stood(move: Move, cells: Cells, seen: Witnesses) -> AsyncIterator[None]:
    """Whatever the block fails for, who was open here is so again, unless it was given up. Who dies
    leaves it closed.
    """
    try:
        yield
    except Exception:
        if seen.here is None:
            with suppress(PaydeskError, *AWAY):
                await lift(move.source.database, move.merchant_id, tables=GUARDED, other_cell=cells.there)
        raise


async def _closed_at(move: Move) -> datetime:
    """Since when nobody writes what is compared. Raises: Conflict."""
    here = await find_fence(move.source.database, move.merchant_id)
    if here is None or here.closed_at is None:
        raise _let_go_on(move)
    return here.closed_at


async def _give_up(move: Move, cells: Cells, closed_at: datetime, home_came_back: bool) -> None:
    """What is here is the other cell's from now on, which is asked once more whether it has it.

    Raises: Conflict if somebody has let it go on since `closed_at`, so that what was compared is
        not what is here.
    """
    await require_same_steps(move.source, move.target, cells)
    await _look(move, cells, home_came_back)
    if not await say_moved(move.source.database, move.merchant_id, closed_at=closed_at):
        raise _let_go_on(move)


def _let_go_on(move: Move) -> Conflict:
    return Conflict(
        f"somebody has just let merchant {move.merchant_id} go on here; nothing was deleted: run the same command again"
    )
