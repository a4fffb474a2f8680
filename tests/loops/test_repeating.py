"""A background loop gives way after every turn, rests, is woken and stopped,
and no failure ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from paydesk.core.clock import utc_now
from paydesk.database.pool import is_away
from paydesk.loops.repeating import renewed, repeat

FAR_TOO_LONG = 3600.0


async def turns_of_others(number: int) -> None:
    """Return once everything else has had its turn so often;
    the test run's own timeout ends what never does.
    """
    for _ in range(number):
        await asyncio.sleep(0)


@asynccontextmanager
async def running(
    turn: Callable[[], Awaitable[bool | None]], *, rest: float, wake: asyncio.Event | None = None
) -> AsyncIterator[None]:
    """Runs a loop, and proves at the end that `stop` ends it."""
    stop = asyncio.Event()
    task = asyncio.create_task(repeat("of a test", turn, stop, rest=rest, wake=wake))
    yield
    assert not task.done()
    stop.set()
    await task


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 (what a test waits for sends no event)
        await asyncio.sleep(0.001)


async def test_a_turn_that_awaits_nothing_and_always_wants_more_lets_others_have_theirs() -> None:
    turns = []

    async def wants_more() -> bool:
        turns.append(1)
        return True

    async with running(wants_more, rest=FAR_TOO_LONG):
        await until(lambda: len(turns) >= 3)
        before = len(turns)
        await turns_of_others(20)
        assert len(turns) <= before + 20


async def test_nothing_to_do_is_a_rest_that_ends_with_the_stop() -> None:
    turns = []

    async def has_nothing_to_do() -> None:
        turns.append(1)

    async with running(has_nothing_to_do, rest=FAR_TOO_LONG):
        await until(lambda: bool(turns))
        await turns_of_others(50)
    assert len(turns) == 1


async def test_a_resting_loop_is_woken_also_by_what_happened_during_its_turn() -> None:
    wake, turns = asyncio.Event(), list[int]()

    async def hears_something_the_first_time() -> None:
        turns.append(1)
        if len(turns) == 1:
            wake.set()

    async with running(hears_something_the_first_time, rest=FAR_TOO_LONG, wake=wake):
        await until(lambda: len(turns) == 2)
        wake.set()
        await until(lambda: len(turns) == 3)
        assert not wake.is_set()


async def test_what_wakes_it_all_the_time_does_not_keep_others_from_their_turn() -> None:
    wake, turns = asyncio.Event(), list[int]()

    async def wakes_itself() -> None:
        turns.append(1)
        wake.set()

    async with running(wakes_itself, rest=FAR_TOO_LONG, wake=wake):
        await until(lambda: len(turns) >= 3)


@pytest.mark.parametrize("error", [ValueError("one"), TimeoutError(), asyncio.CancelledError("not us")], ids=repr)
async def test_a_failure_is_logged_and_tried_again_later_and_later(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses, turns = list[float](), list[int]()

    async def no_rest(seconds: float, *_: object) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    async def fails_nine_times() -> bool:
        turns.append(1)
        if len(turns) < 10:
            raise error
        return False

    monkeypatch.setattr("paydesk.loops.repeating._rest", no_rest)
    with capture_logs() as logs:
        async with running(fails_nine_times, rest=1.5):
            await until(lambda: len(turns) > 10)
    assert pauses[:10] == [1, 2, 4, 8, 8, 8, 8, 8, 8, 1.5]
    assert [line["log_level"] for line in logs] == ["warning"] * 5 + ["error"] + ["warning"] * 3
    assert {line["loop"] for line in logs} == {"of a test"}
    assert type(error).__name__ in logs[0]["why"]


@pytest.mark.parametrize("error", [ConnectionResetError("away"), KeyError("ours")])
async def test_what_all_loops_tell_of_is_told_without_its_place(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_rest(*_: object) -> None:
        await asyncio.sleep(0)

    async def fails() -> bool:
        raise error

    monkeypatch.setattr("paydesk.loops.repeating._rest", no_rest)
    with capture_logs() as logs:
        async with running(fails, rest=0.1):
            await until(lambda: any(line["log_level"] == "error" for line in list(logs)))
    [told] = [line for line in logs if line["log_level"] == "error"]
    assert (told["exc_info"] is None) is is_away(error)


async def test_a_failing_loop_is_not_woken_from_its_pause() -> None:
    wake, turns = asyncio.Event(), list[int]()

    async def fails() -> None:
        turns.append(1)
        wake.set()
        raise ValueError

    async with running(fails, rest=FAR_TOO_LONG, wake=wake):
        await until(lambda: bool(turns))
        await turns_of_others(50)
        assert len(turns) == 1


async def test_cancelling_ends_it() -> None:
    async def hangs() -> None:
        await asyncio.sleep(FAR_TOO_LONG)

    task = asyncio.create_task(repeat("of a test", hangs, asyncio.Event(), rest=0))
    await turns_of_others(3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_time_of_the_last_turn_is_a_metric() -> None:
    before, turns = utc_now().timestamp(), []

    async def turn() -> None:
        turns.append(1)

    async with running(turn, rest=FAR_TOO_LONG):
        await until(lambda: bool(turns))
    beat = REGISTRY.get_sample_value("paydesk_loop_last_turn_timestamp_seconds", {"loop": "of a test"})
    assert beat is not None
    assert before <= beat <= utc_now().timestamp()


async def test_a_lease_is_renewed_for_the_length_of_a_block_though_one_renewal_fails() -> None:
    renewals = []

    async def renew() -> None:
        renewals.append(1)
        if len(renewals) == 1:
            raise ConnectionError

    async with renewed("of a test", renew, every=0.01):
        assert not renewals
        await until(lambda: len(renewals) >= 3)
    number = len(renewals)
    await asyncio.sleep(0.05)
    assert len(renewals) == number
