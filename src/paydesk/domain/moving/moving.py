"""A merchant goes to another cell: fenced here, copied there, and then the other's.

One row decides who has it: the fence in the cell that it leaves. Before `moved_at` stands there the
merchant is that cell's, and can be let go on; from then on it is the other's, whatever dies when.
Each step can be done again, so the same command goes on from wherever it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.domain.cells.directory import Kind, name_of, switch_merchant, switch_people
from paydesk.domain.cells.fencing import Fence, InFlight, close, fence, find_fence, forget, lift, say_moved
from paydesk.domain.moving.copying import (
    Copied,
    Side,
    compare_merchant,
    copy_merchant,
    empty,
    queries,
    without_triggers,
)
from paydesk.domain.moving.requirements import Cells, require_cells, require_movable
from paydesk.domain.moving.tables import GUARDED

CALLS_END = 60.0
"""Seconds for which calls that are in the air are waited for."""


class Step(StrEnum):
    """What a move has come to."""

    fenced = "fenced"
    closed = "closed"
    copied = "copied"
    moved = "moved"
    switched = "switched"
    opened = "opened"
    forgotten = "forgotten"


@dataclass(frozen=True, slots=True)
class Move:
    """A merchant and the two cells; `home` is the database whose directory leads to them, None
    where there are no cells in it.
    """

    source: Side
    target: Side
    home: Database | None
    merchant_id: int
    to: int
    same_simulator: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move came to: what was copied by this very call (None: it was before), calls that were
    in the air too long, and for how many seconds the merchant was closed.
    """

    copied: Copied | None
    left: InFlight | None
    led: int
    seconds: float


Passed = Callable[[Step], None]


async def move_merchant(
    move: Move,
    *,
    passed: Passed = lambda _: None,
    report: Callable[[], None] = lambda: None,
    patience: float = CALLS_END,
) -> Moved:
    """Bring a merchant with everything that is theirs to another cell, or go on with that.

    `passed` hears of each step that was done, `report` of each table that was copied. Moves no
    money: what was begun at a bank is finished by whoever has the merchant then.
    Raises: Conflict, SetupError, NotFound with why it can't go; nothing is fenced then.
    """
    cells = await require_cells(move.source, move.target, move.to)
    here = await _standing(move, cells)
    copied, left = None, None
    if here is None or here.moved_at is None:
        await require_movable(move.source, move.target, move.merchant_id, same_simulator=move.same_simulator)
        left = await _fence_both(move, cells, passed, patience)
        copied = await _copied(move, report)
        passed(Step.copied)
        await say_moved(move.source.database, move.merchant_id)
        passed(Step.moved)
    led = await _open_there(move, passed)
    here = await _standing(move, cells)
    assert here is not None, "the fence of who has moved stays until the end"
    seconds = (datetime.now(UTC) - here.since).total_seconds()
    await _forget_here(move)
    passed(Step.forgotten)
    return Moved(copied, left, led, seconds)


async def cancel_move(move: Move) -> None:
    """Let a merchant go on where it is, and leave nothing of it in the other cell.

    Raises: Conflict if it has moved already, or is on no way there; SetupError.
    """
    cells = await require_cells(move.source, move.target, move.to)
    here = await _standing(move, cells)
    if here is None:
        raise Conflict(f"merchant {move.merchant_id} is not being moved")
    if here.moved_at is not None:
        raise Conflict(f"merchant {move.merchant_id} is in cell {here.other_cell} already: the move again ends it")
    there = await find_fence(move.target.database, move.merchant_id)
    if there is not None and there.arrives:
        people = [person async for person, *_ in queries.team(move.source.database, merchant_id=move.merchant_id)]
        async with move.target.database.acquire() as connection, connection.transaction():
            await empty(connection, move.merchant_id, people=people)
        await lift(move.target.database, move.merchant_id, tables=GUARDED)
    await lift(move.source.database, move.merchant_id, tables=GUARDED)


async def _standing(move: Move, cells: Cells) -> Fence | None:
    """The fence here, which must be of this very move. Raises: Conflict."""
    here = await find_fence(move.source.database, move.merchant_id)
    if here is not None and here.arrives:
        raise Conflict(f"merchant {move.merchant_id} is coming here from cell {here.other_cell}: end that move first")
    if here is not None and here.other_cell != cells.there:
        raise Conflict(f"merchant {move.merchant_id} is on the way to cell {here.other_cell}, or there already")
    return here


async def _fence_both(move: Move, cells: Cells, passed: Passed, patience: float) -> InFlight:
    """There first, so that the merchant is closed for a shorter time."""
    target, source = move.target.database, move.source.database
    await fence(target, move.merchant_id, arrives=True, other_cell=cells.here, tables=GUARDED)
    await fence(source, move.merchant_id, other_cell=cells.there, tables=GUARDED)
    passed(Step.fenced)
    left = await close(source, move.merchant_id, patience=patience)
    passed(Step.closed)
    return left


async def _copied(move: Move, report: Callable[[], None]) -> Copied | None:
    """A copy that is there was made whole, while the merchant was closed as it still is."""
    if await queries.is_there(move.target.database, merchant_id=move.merchant_id):
        await compare_merchant(move.source, move.target, move.merchant_id)
        return None
    return await copy_merchant(move.source, move.target, move.merchant_id, report=report)


async def _open_there(move: Move, passed: Passed) -> int:
    """Lead everybody to the other cell, and open the merchant there. How many entries of the
    directory were changed.
    """
    led, now = 0, datetime.now(UTC)
    if move.home is not None:
        led = await switch_merchant(move.home, move.merchant_id, to=move.to, now=now)
        names = [
            name_of(move.source.vault, Kind.email, email)
            async for (email,) in queries.only_there(move.source.database, merchant_id=move.merchant_id)
        ]
        led += await switch_people(move.home, names, to=move.to, now=now)
    passed(Step.switched)
    await lift(move.target.database, move.merchant_id, tables=GUARDED)
    passed(Step.opened)
    return led


async def _forget_here(move: Move) -> None:
    """Delete what is left here, so that what still comes here finds nothing and is passed on; only
    the keys stay by which acquirers were asked from here.
    """
    async with move.source.database.acquire() as connection, connection.transaction():
        await without_triggers(connection)
        await queries.remember_keys(connection, merchant_id=move.merchant_id)
        await queries.end_sessions(connection, merchant_id=move.merchant_id)
        await empty(connection, move.merchant_id, keeping=("forgotten_attempt",))
    await forget(move.source.database, move.merchant_id, tables=GUARDED)
