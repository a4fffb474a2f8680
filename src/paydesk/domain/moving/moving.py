"""A merchant goes to another cell: copied there while it goes on here, fenced for as long as what
has changed since is brought after it, and then the other's.

One row decides who has it: the fence in the cell that it leaves. Before `moved_at` stands there the
merchant is that cell's, and can be let go on; from then on it is the other's, whatever dies when.
Each step can be done again, so the same command goes on from wherever it was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from paydesk.core.errors import Conflict, PaydeskError
from paydesk.database.pool import AWAY
from paydesk.domain.cells.fencing import (
    FenceGone,
    InFlight,
    arrival,
    close,
    fence,
    find_fence,
    lift,
    open_up,
    prepare,
    say_moved,
    wait_for_clock,
)
from paydesk.domain.cells.living import living
from paydesk.domain.cells.ranges import go_on_above, ranges_of
from paydesk.domain.cells.waits import Waits, unheard
from paydesk.domain.moving.accounts import (
    CLOSED_FOR_READINGS,
    IS_READ,
    nobody_reads,
    require_that_they_serve,
    wait_until_they_may_go,
)
from paydesk.domain.moving.cancelling import hide_there
from paydesk.domain.moving.copying import queries
from paydesk.domain.moving.ending import forget_here, open_there, require_known_there
from paydesk.domain.moving.only_here import Comparing, uncompared
from paydesk.domain.moving.passes import CalledBack, Copied, Watch, bring, unwatched
from paydesk.domain.moving.requirements import (
    Cells,
    require_cells,
    require_in_no_file,
    require_movable,
    require_not_there,
    require_same_steps,
)
from paydesk.domain.moving.steps import Move, Passed, Step
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.moving.witnesses import Witnesses, look, require_may_go, require_not_elsewhere

CALLS_END = 60.0
"""Seconds for which calls that are in the air are waited for."""

CLOCK_ENDS = 40.0
"""Seconds for which whoever moves the test clock may end that before the merchant is fenced: a call
of the API or the account does."""

FEW, MOST_PASSES = 500, 5
"""Rows that are brought in a moment, so that the merchant may be fenced; and after how many passes
it is, however much changes meanwhile."""

MOST_FENCES = 5
"""How often a merchant is fenced anew because a reading began just before."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move came to.

    What the last pass brought (None: an earlier call's), and all that this call has sealed anew;
    calls that were in the air too long, entries of the directory that were changed, and for how
    many seconds the merchant was closed. `ids` is the range that the other cell had to go on in
    (None: its ids were the higher ones). `was_there`: another call has moved it, and nothing of it
    is left here.
    """

    copied: Copied | None
    sealed: int
    left: InFlight | None
    led: int
    seconds: float
    ids: int | None = None
    was_there: bool = False


WAS_THERE = Moved(None, 0, None, 0, 0.0, was_there=True)


async def move_merchant(
    move: Move,
    *,
    passed: Passed = lambda _: None,
    watch: Watch = unwatched,
    compares: Comparing = uncompared,
    waits: Waits = unheard,
    patience: float = CALLS_END,
) -> Moved:
    """Bring a merchant with everything that is theirs to another cell, or go on with that.

    `passed` hears of each step that was done, `watch` of each pass over the rows, `compares` of
    what is compared where an earlier call died at last, and `waits` of each wait in between. Moves
    no money: what was begun at a bank is finished by whoever has the merchant then.
    Raises: Conflict, SetupError, NotFound with why it can't go, Unavailable. It goes on here then,
        or has moved; a fence stays of an earlier call for another cell, or if the other one has it.
    """
    cells = await require_cells(move.source, move.target, move.to)
    async with living(move.source.database, move.merchant_id), living(move.target.database, move.merchant_id):
        return await _move(move, cells, passed, watch, compares, waits, patience)


async def _move(
    move: Move, cells: Cells, passed: Passed, watch: Watch, compares: Comparing, waits: Waits, patience: float
) -> Moved:
    """Bring it there, or go on with that, while cells that are asked see that somebody does."""
    seen = await look(move.source, move.target, move.home, move.merchant_id, cells)
    if seen.is_only_there:
        return WAS_THERE
    require_may_go(seen)
    try:
        if _is_decided(seen):
            await require_known_there(move, compares)
        moved = await _brought(move, seen, cells, passed, watch, waits, patience)
    except PaydeskError:
        if not seen.has_moved and await _another_has_moved(move, cells):
            return WAS_THERE
        raise
    opening = await open_there(move, passed)
    if opening is None:
        return await _ended_by_another(move, cells)
    led, opened = opening
    here = await find_fence(move.source.database, move.merchant_id)
    if here is not None:
        await forget_here(move)
    passed(Step.forgotten)
    closed = (opened - here.since).total_seconds() if here else 0.0
    return replace(moved, led=led, seconds=closed)


async def _ended_by_another(move: Move, cells: Cells) -> Moved:
    """What is true by now of a merchant whose move another call has ended before this one could.

    Raises: Conflict if it has come back, or is on its way again; NotFound if it went on from there.
    """
    seen = await look(move.source, move.target, move.home, move.merchant_id, cells)
    require_not_elsewhere(seen)
    if seen.is_only_there:
        return WAS_THERE
    ended = f"another call has ended this move of merchant {move.merchant_id} to cell {move.to}"
    if not seen.is_here:
        raise Conflict(f"{ended}, and it is on its way again: the same command again says where it is")
    if seen.here is None:
        raise Conflict(f"{ended}, and it has come back since: it is here; the same command again moves it once more")
    raise Conflict(f"{ended}, and it has come back since and is on its way there again: the same command ends that")


def _is_decided(seen: Witnesses) -> bool:
    """Whether the other cell works with the merchant, and what an earlier call left is here."""
    return seen.is_here and seen.has_moved and not seen.is_to_come_again


async def _brought(
    move: Move, seen: Witnesses, cells: Cells, passed: Passed, watch: Watch, waits: Waits, patience: float
) -> Moved:
    """Bring all there, and decide, if that has not been done; what that came to so far."""
    last, sealed, left, ids = None, 0, None, None
    if seen.is_to_come_again:
        ids = await _go_on_above(move, cells)
        last = await _bring_again(move, cells, passed, watch, waits)
    elif seen.is_here and not seen.has_moved:
        if seen.here is None:
            await _require(move)
            ids = await _go_on_above(move, cells)
            sealed = await _bring_before(move, cells, passed, watch, waits)
        await require_not_there(move.target, move.merchant_id)
        async with _or_it_goes_on(move, cells):
            await _require(move)
            left = await _fence_here(move, cells, passed, patience, waits)
            last, ids_anew = await _bring_last(move, cells, passed, watch)
        ids = ids_anew or ids
    return Moved(last, sealed + (last.sealed if last else 0), left, 0, 0.0, ids)


async def _another_has_moved(move: Move, cells: Cells) -> bool:
    """Whether another call has moved the merchant there while this one was at it.

    Raises: Conflict if that one has not ended it yet; NotFound if it went to another cell.
    """
    try:
        seen = await look(move.source, move.target, move.home, move.merchant_id, cells)
    except PaydeskError:
        return False
    require_not_elsewhere(seen)
    if seen.has_moved:
        raise Conflict(
            f"another call has just moved merchant {move.merchant_id} to cell {move.to}, and is about to end that: run "
            "the same command again, which says whether it has"
        )
    return seen.is_only_there


async def _require(move: Move) -> None:
    said = {"same_simulator": move.same_simulator, "serves_live": move.serves_live}
    await require_movable(move.source, move.target, move.merchant_id, **said)


@asynccontextmanager
async def _or_it_goes_on(move: Move, cells: Cells) -> AsyncIterator[None]:
    """Whatever the block fails for, the merchant goes on here, and is not found in the other cell.

    Not if it has moved, or another call has it on its way to another cell; and who dies leaves it
    as it is.
    """
    try:
        yield
    except Exception:
        with suppress(PaydeskError, *AWAY):
            await hide_there(move, cells)
        with suppress(PaydeskError, *AWAY):
            await lift(move.source.database, move.merchant_id, tables=GUARDED, other_cell=cells.there)
        raise


async def _bring_before(move: Move, cells: Cells, passed: Passed, watch: Watch, waits: Waits) -> int:
    """Copy the merchant while it goes on here, again and again until little has changed; how many
    values were sealed.
    """
    target, sealed = move.target.database, 0
    await fence(target, move.merchant_id, arrives=True, other_cell=cells.here, tables=GUARDED, waits=waits)
    for number in range(MOST_PASSES):
        brought = await bring(move.source, move.target, move.merchant_id, watch=watch)
        sealed += brought.sealed
        passed(Step.followed if number else Step.copied)
        if not number:
            # What changes meanwhile follows, too.
            await wait_until_they_may_go(move.source, move.target, move.merchant_id, waits)
        if number and brought.changed <= FEW:
            break
    return sealed


async def _bring_again(move: Move, cells: Cells, passed: Passed, watch: Watch, waits: Waits) -> Copied:
    """Bring who has moved once more: the other cell's database may have come back from before, and
    nobody has written anything here since. Raises: what `_bring_last` raises.
    """
    target = move.target.database
    await fence(target, move.merchant_id, arrives=True, other_cell=cells.here, tables=GUARDED, waits=waits)
    brought = await bring(move.source, move.target, move.merchant_id, watch=watch)
    await wait_until_they_may_go(move.source, move.target, move.merchant_id, waits)
    last = await bring(move.source, move.target, move.merchant_id, last=True, watch=watch)
    passed(Step.completed)
    await require_same_steps(move.source, move.target, cells)
    return replace(last, sealed=last.sealed + brought.sealed)


async def _fence_here(move: Move, cells: Cells, passed: Passed, patience: float, waits: Waits) -> InFlight:
    """Nothing begins any more, and what was begun ends.

    Raises: Conflict if the merchant would be served by other accounts there than here, or one is
        being read whenever it is fenced; Unavailable.
    """
    for _ in range(MOST_FENCES):
        if await _is_fenced(move, cells, waits):
            passed(Step.fenced)
            left = await close(move.source.database, move.merchant_id, patience=patience, waits=waits)
            passed(Step.closed)
            return left
        # No reading is cut off, and the merchant is not closed for as long as one takes.
        await open_up(move.source.database, move.merchant_id, other_cell=cells.there)
    raise Conflict(IS_READ)


async def _is_fenced(move: Move, cells: Cells, waits: Waits) -> bool:
    """Fence the merchant as soon as nobody reads its accounts; whether nobody does then.

    All else that takes time comes before, for between both somebody may begin to.
    Raises: CalledBack if somebody has taken the fence away before all had seen it; Conflict,
        Unavailable.
    """
    source = move.source.database
    if await find_fence(source, move.merchant_id) is None:
        await wait_for_clock(source, move.merchant_id, seconds=CLOCK_ENDS, waits=waits)
        await prepare(source, GUARDED, waits)
        await wait_until_they_may_go(move.source, move.target, move.merchant_id, waits)
    try:
        await fence(source, move.merchant_id, other_cell=cells.there, tables=GUARDED, waits=waits)
    except FenceGone:
        raise CalledBack(move.merchant_id) from None
    await require_that_they_serve(move.source, move.target, move.merchant_id)
    return await nobody_reads(move.source, move.merchant_id, within=CLOSED_FOR_READINGS, waits=waits)


async def _go_on_above(move: Move, cells: Cells) -> int | None:
    """Have the other cell give out higher ids than any that the merchant has, from now on; the
    range that it took for that, None if it does already.

    What is newest, and where a list or a round goes on, is told by ids in every statement.
    Raises: Conflict, Unavailable.
    """
    above = (await ranges_of(move.source.database)).highest
    if (await ranges_of(move.target.database)).lowest > above:
        return None
    if move.home is None:
        raise Conflict(
            f"cell {cells.there} gives out smaller ids than cell {cells.here}, so that what is newer would come before "
            "what is older in every list; which higher ids it may go on with only a directory of cells knows: add "
            "both, by paydesk cell add"
        )
    return await go_on_above(move.home, move.target.database, cells.there, above, now=datetime.now(UTC))


async def _bring_last(move: Move, cells: Cells, passed: Passed, watch: Watch) -> tuple[Copied, int | None]:
    """Bring what has changed until nobody wrote any more, and decide; with the range that the other
    cell took. Raises: what `bring` and `_go_on_above` raise.
    """
    here = await find_fence(move.source.database, move.merchant_id)
    if here is None or here.closed_at is None or here.other_cell != cells.there:
        raise CalledBack(move.merchant_id)
    brought = await bring(move.source, move.target, move.merchant_id, last=True, watch=watch)
    passed(Step.completed)
    # Another merchant's move may have had this cell go on above the other one meanwhile. From here
    # on the merchant draws none.
    ids = await _go_on_above(move, cells)
    await require_same_steps(move.source, move.target, cells)
    await require_in_no_file(move.source, move.merchant_id)
    await _decide(move, cells, here.closed_at)
    passed(Step.moved)
    return brought, ids


async def _decide(move: Move, cells: Cells, closed_at: datetime) -> None:
    """The merchant is the other cell's from here on, which keeps what came: if it has been closed
    ever since `closed_at`. Raises: CalledBack.
    """
    async with move.target.database.acquire() as there, there.transaction():
        came = await arrival(there, move.merchant_id, cells.here)
        is_there = came is not None and await queries.is_there(there, merchant_id=move.merchant_id)
        if not is_there or not await say_moved(move.source.database, move.merchant_id, closed_at=closed_at):
            raise CalledBack(move.merchant_id)
