"""A merchant is copied while it goes on, and what changes after a pass is there after the next one,
whoever was writing at that moment; nobody finds the copy before it is whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from tests import shopfront
from tests.breaking import forget, say
from tests.domain.moving.play import HERE, SEALED, THERE, Killed, Play, clean, killing
from tests.set_back import times
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.domain.cells import fencing
from paydesk.domain.cells.fencing import arrival, fence, find_fence, lift
from paydesk.domain.merchants.keys import pairs_of
from paydesk.domain.merchants.merchant import find_merchant
from paydesk.domain.moving import cancelling, moving
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import MOST_PASSES, move_merchant
from paydesk.domain.moving.passes import CalledBack, Pass
from paydesk.domain.moving.requirements import Cells
from paydesk.domain.moving.steps import Move, Step
from paydesk.domain.moving.tables import GUARDED, NAMES


@dataclass
class Passes:
    """Which passes there were."""

    seen: list[Pass] = field(default_factory=list)

    @contextmanager
    def watch(self, one: Pass) -> Iterator[Callable[[], None]]:
        self.seen.append(one)
        yield lambda: None


async def begin(play: Play, until: Step = Step.copied) -> None:
    """A move that dies at a step."""
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(until))


async def complete(play: Play) -> list[Pass]:
    """The move goes on, and all is there that is here; by which passes."""
    passes = Passes()
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(Step.completed), watch=passes.watch)
    here, there = [await play.rows(cell, play.merchant.id) for cell in (play.here, play.there)]
    assert [name for name in here if name not in SEALED and here[name] != there[name]] == []
    await move_merchant(play.move)
    return passes.seen


async def both_clean(play: Play) -> bool:
    return (await clean(play.here), await clean(play.there)) == ([], [])


async def test_the_merchant_goes_on_while_it_is_copied(play: Play) -> None:
    await begin(play, Step.followed)
    assert await play.is_open(play.here)
    await Till(play.here.desk, play.shop).sell("B-1")
    assert await complete(play) == [Pass.changes, Pass.changes, Pass.last]
    assert await play.there.database.fetchval("select count(*) from payment where merchant_order_id = 'B-1'") == 1
    assert await both_clean(play)


async def test_nobody_finds_a_copy_before_it_is_whole(play: Play) -> None:
    await say(play.there.database, "ledger_horizon", {}, closed_id=2 * 10**13, seen_id=2 * 10**13)
    await times(play.there.database, "sales_closing", {}, closed_until=utc_now())
    await begin(play, Step.closed)
    with pytest.raises(NotFound):
        await find_merchant(play.there.database, play.merchant.id)
    assert [await play.there.database.fetchval(f"select count(*) from {name}") for name in NAMES] == [0, 0]
    assert await clean(play.there) == []


async def test_all_kinds_of_changes_come(play: Play) -> None:
    database, whose = play.here.database, play.merchant.id
    await begin(play)
    await shopfront.buy(play.here.desk, play.shop)
    for name, other in (("A-1", "swap"), ("A-2", "A-1"), ("swap", "A-2")):
        await say(database, "payment", {"merchant_id": whose, "merchant_order_id": name}, merchant_order_id=other)
    gone, other = await database.fetch("select id, payment_id from pingback where event = 'payment' limit 2")
    await forget(database, whose, "pingback", id=gone["id"])
    await say(database, "pingback", {"id": other["id"]}, payment_id=gone["payment_id"])
    await forget(database, whose, "payment_link")
    assert await complete(play) == [Pass.changes, Pass.changes, Pass.last]


@pytest.mark.parametrize("within", [False, True])
async def test_what_was_written_and_not_committed_at_a_pass_comes_with_the_next(play: Play, *, within: bool) -> None:
    async with play.here.database.acquire() as connection:
        writing = connection.transaction()
        await writing.start()
        if within:
            async with connection.transaction():
                await say(connection, "payment", {"merchant_order_id": "A-1"}, revision=77)
        else:
            await say(connection, "payment", {"merchant_order_id": "A-1"}, revision=77)
        await shopfront.buy(play.here.desk, play.beside)
        await begin(play)
        await writing.commit()
    await complete(play)
    asked = "select revision from payment where merchant_order_id = 'A-1'"
    assert await play.there.database.fetchval(asked) == 77


async def test_what_was_rolled_back_does_not_come(play: Play) -> None:
    async with play.here.database.acquire() as connection:
        writing = connection.transaction()
        await writing.start()
        await say(connection, "payment", {"merchant_id": play.merchant.id}, revision=77)
        await begin(play)
        await writing.rollback()
    await complete(play)
    assert await play.there.database.fetchval("select count(*) from payment where revision = 77") == 0


async def test_what_is_sealed_after_a_pass_opens_in_the_other_vault_alone(play: Play) -> None:
    await begin(play)
    await Till(play.here.desk, play.shop).subscribe(order="club-2")
    await complete(play)
    pairs = await pairs_of(play.there.database, play.there.vault, play.merchant.id)
    assert pairs[0] == (play.merchant.public_key, play.merchant.private_key)
    await times(play.there.database, "subscription", {}, date_next=utc_now() - timedelta(minutes=1))
    await shopfront.charge_round(play.there.desk)
    assert await play.there.database.fetchval("select count(*) from payment where renewal and paid_at is not null") == 2


@pytest.mark.parametrize(
    "known",
    [
        {"copied_of": "another server, or a timeline that is over"},
        {"copied_below": 2**40},
        {"copied_of": None, "copied_below": None},
    ],
)
async def test_a_copy_that_nobody_can_tell_changes_from_is_made_anew(play: Play, known: dict[str, object]) -> None:
    await begin(play)
    await say(play.there.database, "merchant_fence", {}, **known)
    await forget(play.here.database, play.merchant.id, "payment_link")
    assert await complete(play) == [Pass.whole, Pass.changes, Pass.last]


async def test_a_table_that_lacks_something_there_is_brought_whole(play: Play) -> None:
    await begin(play)
    async with play.there.database.acquire() as connection, connection.transaction():
        await connection.execute("set local session_replication_role = replica")
        await connection.execute("delete from checkout where id = (select min(id) from checkout)")
    await complete(play)
    assert await both_clean(play)


async def test_what_is_gone_here_goes_there_without_another_copy(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def copied_again(*_: object) -> int:
        raise AssertionError("a table was copied again")

    await begin(play)
    gone = await play.here.database.fetchval("select min(id) from pingback")
    await forget(play.here.database, play.merchant.id, "pingback", id=gone)
    monkeypatch.setattr("paydesk.domain.moving.changes.copy_whole", copied_again)
    assert await complete(play) == [Pass.changes, Pass.changes, Pass.last]


async def test_a_restart_of_what_was_completed_changes_nothing(play: Play) -> None:
    await begin(play, Step.completed)
    assert await complete(play) == [Pass.last]
    assert await both_clean(play)


async def test_who_is_busy_is_fenced_after_some_passes(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paydesk.domain.moving.moving.FEW", -1)
    passes = Passes()
    await move_merchant(play.move, watch=passes.watch)
    assert passes.seen == [Pass.whole, *[Pass.changes] * (MOST_PASSES - 1), Pass.last]


async def test_a_pass_waits_for_the_one_that_is_under_way(play: Play) -> None:
    await begin(play)
    async with play.there.database.acquire() as connection:
        under_way = connection.transaction()
        await under_way.start()
        assert await arrival(connection, play.merchant.id, HERE) is not None
        moving = asyncio.create_task(move_merchant(play.move))
        await asyncio.wait({moving}, timeout=0.3)
        assert not moving.done()
        await under_way.rollback()
    await moving
    assert await play.is_open(play.there)


@pytest.mark.parametrize("step", [Step.copied, Step.followed, Step.fenced, Step.closed])
async def test_who_cancels_while_another_moves_has_it_stay(
    play: Play, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the one who moves is just about to do, unless that is decided first."""
    calls: list[asyncio.Task[None]] = []
    before, decide = await play.rows(play.here, play.merchant.id), moving._decide

    async def decide_late(move: Move, cells: Cells, closed_at: datetime) -> None:
        await asyncio.wait(calls)
        await decide(move, cells, closed_at)

    monkeypatch.setattr(moving, "_decide", decide_late)

    def passed(done: Step) -> None:
        if done is step:
            calls.append(asyncio.create_task(cancel_move(play.move)))

    with pytest.raises(CalledBack):
        await move_merchant(play.move, passed=passed)
    await asyncio.wait(calls)
    calls[0].result()
    await nothing_came(play, before)


async def test_who_cancels_just_before_it_is_decided_has_it_stay(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await play.rows(play.here, play.merchant.id)
    decide = moving._decide

    async def decide_late(move: Move, cells: Cells, closed_at: datetime) -> None:
        await cancel_move(move)
        await decide(move, cells, closed_at)

    monkeypatch.setattr(moving, "_decide", decide_late)
    with pytest.raises(CalledBack):
        await move_merchant(play.move)
    await nothing_came(play, before)


async def test_who_cancels_before_all_have_seen_the_fence_has_it_stay(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await play.rows(play.here, play.merchant.id)
    wait_for_all = fencing._have_everybody_see

    async def cancel_meanwhile(database: Database, tables: Sequence[str], *, arrives: bool) -> None:
        await wait_for_all(database, tables, arrives=arrives)
        if not arrives:
            await cancel_move(play.move)

    monkeypatch.setattr(fencing, "_have_everybody_see", cancel_meanwhile)
    with pytest.raises(CalledBack):
        await move_merchant(play.move)
    await nothing_came(play, before)


async def test_who_cancels_while_another_fences_it_has_it_stay(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fence goes up after the one who cancels took it away, and before it looks."""
    await begin(play, Step.followed)
    before = await play.rows(play.here, play.merchant.id)

    async def fence_after(database: Database, merchant_id: int, *, tables: Sequence[str], other_cell: int) -> bool:
        was_there = await lift(database, merchant_id, tables=tables, other_cell=other_cell)
        monkeypatch.setattr(cancelling, "lift", lift)
        await fence(database, merchant_id, other_cell=THERE, tables=tables)
        return was_there

    monkeypatch.setattr(cancelling, "lift", fence_after)
    await cancel_move(play.move)
    await nothing_came(play, before)


async def nothing_came(play: Play, before: dict[str, str]) -> None:
    """The merchant is where it was, as it was."""
    assert (await play.is_open(play.here), await play.is_open(play.there)) == (True, False)
    assert await play.rows(play.here, play.merchant.id) == before
    assert set((await play.rows(play.there, play.merchant.id)).values()) == {"[]"}
    assert await find_fence(play.there.database, play.merchant.id) is None


async def test_who_was_writing_when_the_fence_came_is_waited_for(play: Play) -> None:
    await fence(play.here.database, play.beside.merchant_id, other_cell=7, tables=GUARDED)
    async with play.here.database.acquire() as connection:
        writing = connection.transaction()
        await writing.start()
        await say(connection, "payment", {"merchant_id": play.merchant.id}, revision=77)
        begun = asyncio.create_task(fence(play.here.database, play.merchant.id, other_cell=2, tables=GUARDED))
        await asyncio.sleep(0.5)
        assert not begun.done()
        await writing.commit()
    await asyncio.wait_for(begun, 30)
