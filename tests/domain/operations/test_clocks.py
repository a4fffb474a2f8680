"""A process whose clock is off does nothing that is due, and says so;
where all agree, customers are served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests.sweeping import database, database_url

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.operations.clocks import ALL, READINGS, ClockReading, ClockWatch
from paydesk.loops.repeating import due_work_held, repeat

__all__ = ["database", "database_url"]

Clock = Callable[[], datetime]


def ahead(**by: float) -> Clock:
    return lambda: utc_now() + timedelta(**by)


@pytest.fixture(autouse=True)
async def _alone(database: Database) -> None:
    await database.execute("delete from clock_reading")
    await database.execute("update alarm set settled_at = now(), settled_by = 'test' where settled_at is null")


@pytest.fixture
async def right(database: Database) -> ClockWatch:
    """Another process, whose clock is the database's."""
    watch = ClockWatch(database, "another")
    await look(watch)
    return watch


async def look(watch: ClockWatch, times: int = READINGS) -> None:
    for _ in range(times):
        await watch.look()


async def open_alarms(database: Database) -> list[Any]:
    return list(
        await database.fetch("select subject, reason from alarm where kind = 'clock_off' and settled_at is null")
    )


@pytest.mark.parametrize("off", [{"seconds": 3}, {"days": 31}, {"seconds": -3}, {"hours": -1}])
async def test_a_clock_that_alone_is_off_holds_due_work_after_three_readings(
    database: Database, right: ClockWatch, off: dict[str, float]
) -> None:
    watch = ClockWatch(database, "work", now=ahead(**off))
    await look(watch, 2)
    assert not watch.is_off, "two readings may have been delayed on their way"
    assert watch.holds_due_work, "but nothing is due before three agree"
    await look(watch, 1)
    assert (watch.is_off, watch.holds_due_work, watch.serves_customers) == (True, True, False)
    [alarm] = await open_alarms(database)
    assert alarm["subject"].startswith("clock of ")
    assert "does nothing that is due" in alarm["reason"]
    measured = REGISTRY.get_sample_value("paydesk_clock_ahead_seconds")
    assert measured == pytest.approx(timedelta(**off).total_seconds(), abs=2)
    await look(right)
    assert not right.holds_due_work, "the others go on"


async def test_a_clock_that_is_right_works_after_three_readings(database: Database) -> None:
    watch = ClockWatch(database, "work", now=ahead(seconds=1))
    assert watch.holds_due_work
    await look(watch)
    assert (watch.holds_due_work, watch.serves_customers) == (False, True)
    assert await open_alarms(database) == []


async def test_where_all_agree_against_the_database_it_is_an_alarm_and_customers_are_served(database: Database) -> None:
    watches = [ClockWatch(database, name, now=ahead(minutes=5)) for name in ("serve", "work")]
    for _ in range(READINGS):
        for watch in watches:
            await watch.look()
    assert [watch.serves_customers for watch in watches] == [True, True]
    assert [watch.holds_due_work for watch in watches] == [True, True]
    [alarm] = await open_alarms(database)
    assert alarm["subject"] == ALL
    assert "300.0 s ahead of the database's clock" in alarm["reason"]
    assert "customers are served" in alarm["reason"]


async def test_a_clock_that_was_set_right_settles_its_alarm_and_works_again(
    database: Database, right: ClockWatch
) -> None:
    off = timedelta(minutes=-2)
    watch = ClockWatch(database, "work", now=lambda: utc_now() + off)
    await look(watch)
    assert len(await open_alarms(database)) == 1
    off = timedelta(0)
    await look(watch)
    assert not watch.holds_due_work
    assert await open_alarms(database) == []


@pytest.mark.parametrize("by", [{"days": 365}, {"seconds": 3}, {"hours": -1}])
async def test_a_clock_that_is_set_while_it_runs_holds_due_work_at_once(
    database: Database, right: ClockWatch, by: dict[str, float]
) -> None:
    off = timedelta(0)
    watch = ClockWatch(database, "work", now=lambda: utc_now() + off)
    await look(watch)
    assert not watch.holds_due_work
    off = timedelta(**by)
    assert watch.holds_due_work, "it has not been read since"
    for _ in range(READINGS):
        await look(watch, 1)
        assert watch.holds_due_work
    assert len(await open_alarms(database)) == 1
    off = timedelta(0)
    await look(watch, READINGS - 1)
    assert watch.holds_due_work, "what was read before it was set right says nothing of it"
    await look(watch, 1)
    assert not watch.holds_due_work
    assert await open_alarms(database) == []


def test_half_of_the_way_to_the_database_is_no_difference() -> None:
    assert not ClockReading(ahead=2.9, most=2.0 + 1.0).off
    assert ClockReading(ahead=2.1, most=2.0).off
    assert ClockReading(ahead=-2.1, most=2.0).off


async def test_loops_of_due_work_take_no_turn_while_it_is_held_and_the_others_do() -> None:
    held, stop = True, asyncio.Event()
    turns = {"due": 0, "pulse": 0}

    async def turn(name: str) -> bool:
        turns[name] += 1
        return True

    with due_work_held(lambda: held):
        tasks = [
            asyncio.create_task(repeat("due", lambda: turn("due"), stop, rest=0.001, due=True)),
            asyncio.create_task(repeat("pulse", lambda: turn("pulse"), stop, rest=0.001)),
        ]
    while turns["pulse"] < 20:  # noqa: ASYNC110 (what a test waits for sends no event)
        await asyncio.sleep(0.001)
    assert turns["due"] == 0
    held = False
    while turns["due"] < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    stop.set()
    await asyncio.gather(*tasks)
