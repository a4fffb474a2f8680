"""Whose move was left half-way is an alarm and a metric in the cells that it left traces in, until
it is ended; the alarm is in nobody's way, and does not go along.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests.domain.moving.play import HERE, Cell, Killed, Play, killing
from tests.processes import PATIENCE
from tests.set_back import times

from paydesk.core.clock import utc_now
from paydesk.database.pool import SESSION, connected
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.cells import living
from paydesk.domain.cells.fencing import arrival
from paydesk.domain.moving import moving
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.operations.half_way import MoveWatch

MINUTES = timedelta(minutes=4)
CANCEL = "run the same `paydesk merchant move` again, or with --cancel"


@pytest.fixture
async def working(play: Play) -> AsyncIterator[Cell]:
    """The cell that is left, as its worker is connected."""
    async with connected(play.here.settings.database_url, name="work") as pool:
        yield replace(play.here, database=pool)


async def alarms(cell: Cell) -> list[Any]:
    asked = "select merchant_id, subject, reason, settled_at, settled_by from alarm where kind = 'half_moved'"
    return list(await cell.database.fetch(f"{asked} order by id"))


async def open_alarms(cell: Cell) -> list[tuple[int, str]]:
    return [(one["merchant_id"], one["subject"]) for one in await alarms(cell) if one["settled_at"] is None]


def measured() -> list[str]:
    """How the merchants stand that were found last."""
    states = ("closed", "arriving", "moved")
    name = "paydesk_merchants_half_moved"
    return [one for one in states if REGISTRY.get_sample_value(name, {"state": one})]


async def left(play: Play, step: Step, *, ago: timedelta = MINUTES) -> None:
    """The move was killed at a step, a while ago."""
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(step))
    then = utc_now() - ago
    for cell in (play.here, play.there):
        of = {"merchant_id": play.merchant.id}
        has_moved = await cell.database.fetchval("select moved_at is not null from merchant_fence")
        await times(cell.database, "merchant_fence", of, since=then, **({"moved_at": then} if has_moved else {}))


@pytest.mark.parametrize("step", [Step.fenced, Step.closed, Step.completed])
async def test_who_is_closed_is_an_alarm_of_nobodys_until_the_move_is_ended(
    play: Play, working: Cell, step: Step
) -> None:
    await left(play, step)
    watch = MoveWatch(working.database)
    await watch.look()
    await watch.look()
    [one] = await alarms(play.here)
    assert (one["merchant_id"], one["subject"]) == (0, f"merchant {play.merchant.id}")
    assert "it is closed here and sells nothing, on the way to cell 2 since " in one["reason"]
    assert one["reason"].endswith(CANCEL)
    assert measured() == ["closed"]

    await move_merchant(play.move)
    await watch.look()
    [one] = await alarms(play.here)
    assert (one["settled_at"] is not None, one["settled_by"], measured()) == (True, "the move was ended", [])
    assert await alarms(play.there) == []


async def test_so_is_who_arrives_in_the_cell_that_it_comes_to(play: Play) -> None:
    await left(play, Step.copied)
    here, there = MoveWatch(play.here.database), MoveWatch(play.there.database)
    await here.look()
    await there.look()
    [one] = await alarms(play.there)
    assert one["reason"].startswith("it is on the way here from cell 1 since ")
    assert one["reason"].endswith("run the same `paydesk merchant move` there again, or with --cancel")
    assert (await alarms(play.here), measured()) == ([], ["arriving"])

    await cancel_move(play.move)
    await there.look()
    assert (await open_alarms(play.there), measured()) == ([], [])


async def test_so_is_who_has_moved_and_is_not_deleted(play: Play) -> None:
    await left(play, Step.moved)
    await MoveWatch(play.here.database).look()
    [one] = await alarms(play.here)
    assert one["reason"].startswith("it has moved to cell 2 at ")
    assert one["reason"].endswith("may be closed there: run the same `paydesk merchant move` again")
    assert measured() == ["moved"]


async def test_what_is_in_passing_is_none(play: Play) -> None:
    await left(play, Step.closed, ago=timedelta(minutes=2))
    await MoveWatch(play.here.database).look()
    await MoveWatch(play.there.database).look()
    assert (await alarms(play.here), await alarms(play.there), measured()) == ([], [], [])


async def test_a_long_pass_is_none(play: Play) -> None:
    """Who copies holds the fence."""
    await left(play, Step.copied)
    watch = MoveWatch(play.there.database)
    async with play.there.database.acquire() as copying, copying.transaction():
        assert await arrival(copying, play.merchant.id, HERE) is not None
        await watch.look()
        assert (await alarms(play.there), measured()) == ([], [])
    await watch.look()
    assert len(await open_alarms(play.there)) == 1


async def test_who_arrives_while_its_mover_lives_is_none_between_two_passes_either(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, seen = MoveWatch(play.there.database), []

    async def wait(*_: object) -> None:
        of = {"merchant_id": play.merchant.id}
        await times(play.there.database, "merchant_fence", of, since=utc_now() - MINUTES)
        await watch.look()
        seen.append((await alarms(play.there), measured()))
        raise Killed

    monkeypatch.setattr(moving, "wait_until_they_may_go", wait)
    with pytest.raises(Killed):
        await move_merchant(play.move)
    assert seen == [([], [])]
    await watch.look()
    assert len(await open_alarms(play.there)) == 1


async def test_whose_mover_says_nothing_for_long_is_told(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs, or its machine died, which no server hears of at once."""
    await left(play, Step.copied)
    watch = MoveWatch(play.there.database)
    monkeypatch.setattr(living, "BEAT", 600.0)
    settings = {**SESSION, "idle_in_transaction_session_timeout": "1s"}
    monkeypatch.setattr("paydesk.database.pool.SESSION", settings)
    async with (
        connected(play.there.settings.database_url) as hanging,
        living.living(hanging, play.merchant.id),
    ):
        async with asyncio.timeout(PATIENCE):
            while not await open_alarms(play.there):
                await asyncio.sleep(0.1)
                await watch.look()


async def test_a_worker_that_begins_settles_what_one_before_it_raised(play: Play) -> None:
    await left(play, Step.closed)
    await MoveWatch(play.here.database).look()
    assert len(await open_alarms(play.here)) == 1
    await cancel_move(play.move)
    await MoveWatch(play.here.database).look()
    assert await open_alarms(play.here) == []


async def test_one_that_an_operator_settled_is_raised_again_while_it_stands(play: Play) -> None:
    await left(play, Step.closed)
    watch = MoveWatch(play.here.database)
    await watch.look()
    subject, now = f"merchant {play.merchant.id}", utc_now()
    assert await settle_alarms(play.here.database, AlarmKind.half_moved, [subject], shop=None, by="me", now=now) == 1
    await watch.look()
    assert len(await open_alarms(play.here)) == 1
