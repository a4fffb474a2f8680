"""A pool lends what was given back again at once, and only what is in good order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import pytest
from tests.processes import PATIENCE

from paydesk.database import lending
from paydesk.database import pool as module
from paydesk.database.pool import Database, connected
from paydesk.database.statements import Statements
from paydesk.database.waiting import NoConnection, one_request

PID = "select pg_backend_pid()"


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Database]:
    """A pool of two connections."""
    async with connected(database_url, least=0, most=2) as pool:
        yield pool


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if true():
                return
            await asyncio.sleep(0.01)


def at_once(awaitable: Awaitable[Any]) -> Any:
    """What is there without letting anybody else have a turn."""
    with pytest.raises(StopIteration) as came:
        next(iter(awaitable.__await__()))
    return came.value.value


async def test_what_was_given_back_last_is_lent_next(pool: Database) -> None:
    one, other = await pool.acquire(), await pool.acquire()
    first, last = await one.fetchval(PID), await other.fetchval(PID)
    await pool.release(one)
    await pool.release(other)
    assert [await pool.fetchval(PID) for _ in range(3)] == [last] * 3
    async with pool.acquire() as taken:
        assert (await taken.fetchval(PID), await pool.fetchval(PID)) == (last, first)


async def test_taking_and_giving_back_take_no_turn_of_the_loop(narrow: Database) -> None:
    for _ in range(3):
        lent = at_once(narrow.acquire())
        at_once(narrow.release(lent))
    assert await narrow.fetchval("select 1") == 1


async def test_who_waits_is_served_though_others_come_again_and_again(narrow: Database) -> None:
    async def comes_again() -> None:
        for _ in range(1000):
            await narrow.fetchval("select 1")

    again = asyncio.create_task(comes_again())
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        assert [await narrow.fetchval("select 2") for _ in range(20)] == [2] * 20
    assert not again.done()
    again.cancel()


async def test_who_gave_up_waiting_makes_nothing_dearer_for_the_rest(narrow: Database) -> None:
    lent = await narrow.acquire()
    waiting = asyncio.create_task(narrow.fetchval("select 1"))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.wait([waiting])
    at_once(narrow.release(lent))
    assert await narrow.fetchval("select 1") == 1


async def test_a_connection_that_broke_as_it_lay_is_not_lent(pool: Database, database: Database) -> None:
    before = await pool.fetchval(PID)
    await database.execute("select pg_terminate_backend($1)", before)
    await until(lambda: pool.get_idle_size() == 0)
    assert await pool.fetchval(PID) != before


async def test_one_that_breaks_while_it_is_lent_and_at_rest_is_replaced(pool: Database, database: Database) -> None:
    async with pool.acquire() as lent:
        before = await lent.fetchval(PID)
        await database.execute("select pg_terminate_backend($1)", before)
        await until(lambda: pool.get_size() == 0)
    assert await pool.fetchval(PID) != before


async def test_a_connection_that_its_borrower_dropped_is_not_lent(narrow: Database) -> None:
    async with narrow.acquire() as lent:
        lent.terminate()
    assert await narrow.fetchval("select 1") == 1


async def test_a_transaction_that_was_left_open_is_rolled_back(narrow: Database) -> None:
    async with narrow.acquire() as lent:
        await lent.execute("begin")
        await lent.execute("create table left_open (id bigint)")
    assert await narrow.fetchval("select to_regclass('left_open')") is None


async def test_whoever_gave_a_connection_back_has_it_no_more(narrow: Database) -> None:
    async with narrow.acquire() as lent:
        prepared = await lent.prepare("select 1")
    await narrow.execute("select 1")
    for use in (lambda: lent.fetchval("select 1"), lambda: lent.is_closed(), prepared.fetchval):
        with pytest.raises(asyncpg.InterfaceError, match=r"given back|released back"):
            await use()


async def test_giving_back_twice_takes_nothing_from_whoever_has_it_now(pool: Database) -> None:
    first = await pool.acquire()
    await pool.release(first)
    async with pool.acquire() as mine:
        await pool.release(first)
        async with pool.acquire() as other:
            assert await mine.fetchval(PID) != await other.fetchval(PID)


async def test_a_connection_of_another_pool_is_not_taken(pool: Database, narrow: Database) -> None:
    async with narrow.acquire() as lent:
        with pytest.raises(asyncpg.InterfaceError, match="not lent by this pool"):
            await pool.release(lent)
        assert await lent.fetchval("select 1") == 1


async def test_a_listener_that_was_left_hears_nothing_more(narrow: Database, database: Database) -> None:
    heard: list[object] = []
    with pytest.warns(asyncpg.InterfaceWarning, match="active notification listener"):
        async with narrow.acquire() as lent:
            await lent.add_listener("left_behind", lambda *_: heard.append(1))
    await database.execute("notify left_behind")
    await narrow.execute("select 1")
    assert heard == []


async def _refused(lent: Any) -> None:
    with suppress(asyncpg.DivisionByZeroError):
        await lent.execute("select 1 / 0")
    await lent.execute("select 1")


async def _too_late(lent: Any) -> None:
    with suppress(TimeoutError):
        await lent.execute("select pg_sleep(5)", timeout=0.01)


async def _left_running(lent: Any) -> None:
    running = asyncio.create_task(lent.execute("select pg_sleep(0.05)"))
    await asyncio.sleep(0)
    running.add_done_callback(lambda _: None)


@pytest.mark.parametrize(
    "use",
    [
        _refused,
        _too_late,
        _left_running,
        lambda lent: lent.execute("begin"),
        lambda lent: lent.prepare("select 1"),
        lambda lent: lent.fetchmany("select $1::integer", [(1,)]),
    ],
    ids=["refused", "too late", "left running", "in a transaction", "prepared", "anything else"],
)
async def test_what_is_not_in_good_order_the_drivers_pool_puts_in_order(
    narrow: Database, seen_by_driver: list[object], use: Callable[[Any], Awaitable[None]]
) -> None:
    async with narrow.acquire() as lent:
        await lent.execute("select 1")
    assert seen_by_driver == []
    async with narrow.acquire() as lent:
        await use(lent)
    assert len(seen_by_driver) == 1
    await asyncio.sleep(0.1)
    await narrow.execute("select 1")
    assert await narrow.fetchval("select 2") == 2
    assert len(seen_by_driver) == 1, "it is in good order again"


async def test_so_is_what_an_exception_came_out_of(narrow: Database, seen_by_driver: list[object]) -> None:
    with pytest.raises(KeyError):
        async with narrow.acquire():
            raise KeyError
    assert len(seen_by_driver) == 1


async def test_so_is_what_was_asked_for_with_a_time_limit(narrow: Database, seen_by_driver: list[object]) -> None:
    async with narrow.acquire(timeout=5):
        pass
    assert len(seen_by_driver) == 1, "the driver's pool takes that limit for giving it back, too"


async def test_one_on_which_writes_are_off_is_given_up(narrow: Database) -> None:
    before = await narrow.fetchval(PID)
    await narrow.execute("set default_transaction_read_only = on")
    assert await narrow.fetchval(PID) != before


async def test_one_that_ran_many_statements_is_replaced(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STATEMENTS", 6)
    monkeypatch.setattr(lending, "LOANS", 4)
    async with connected(database_url, most=1) as pool:
        pids = [await pool.fetchval(PID) for _ in range(20)]
    assert len(set(pids)) in (2, 3)


async def test_what_nobody_wants_is_closed_in_its_time(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNUSED", 0.1)
    monkeypatch.setattr(lending, "REST", 0.1)
    async with connected(database_url, least=0, most=3) as pool:
        async with pool.acquire(), pool.acquire(), pool.acquire():
            assert pool.get_size() == 3
        wanted, asked = await pool.fetchval(PID), time.monotonic()
        async with asyncio.timeout(PATIENCE):
            while pool.get_size() > 1:
                again = await pool.fetchval(PID)
                # A busy machine may stand still for longer than it is to rest.
                assert again == wanted or time.monotonic() - asked >= 0.1
                wanted, asked = again, time.monotonic()
                await asyncio.sleep(0.01)
        await until(lambda: pool.get_size() == 0)
        assert await pool.fetchval("select 1") == 1


async def test_what_is_wanted_all_the_time_never_goes_back(
    database_url: str, seen_by_driver: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lending, "REST", 0.1)
    async with connected(database_url, most=1) as pool:
        rests, wanted = 0, time.monotonic()
        for _ in range(100):
            await pool.execute("select 1")
            await asyncio.sleep(0.005)
            # A busy machine may stand still for longer than it is to rest.
            rests += time.monotonic() - wanted >= 0.1
            wanted = time.monotonic()
        assert len(seen_by_driver) <= rests
        seen_by_driver.clear()
        await until(lambda: len(seen_by_driver) == 1)


async def test_closing_waits_for_those_in_use(database_url: str, database: Database) -> None:
    async with connected(database_url, most=2, name="to be closed") as pool:
        async with pool.acquire() as lent:
            await pool.execute("select 1")
            closing = asyncio.create_task(pool.close())
            await asyncio.sleep(0.05)
            with pytest.raises(asyncpg.InterfaceError, match="closing"):
                await pool.execute("select 1")
            assert not closing.done()
            assert await lent.fetchval("select 1") == 1
        async with asyncio.timeout(10):
            await closing
    named = "select count(*) from pg_stat_activity where application_name = 'paydesk to be closed'"
    async with asyncio.timeout(PATIENCE):
        while await database.fetchval(named):  # noqa: ASYNC110 (a server's process sends no event)
            await asyncio.sleep(0.01)


async def test_one_that_is_dropped_lends_nothing(database_url: str) -> None:
    async with connected(database_url, most=2) as pool:
        async with pool.acquire():
            await pool.execute("select 1")
            pool.terminate()
        assert (pool.get_size(), pool.get_idle_size()) == (0, 0)
        with pytest.raises(asyncpg.InterfaceError):
            await pool.execute("select 1")


async def test_connections_of_yesterday_are_replaced(pool: Database) -> None:
    async with pool.acquire() as lent:
        old = {await lent.fetchval(PID), await pool.fetchval(PID)}
        await pool.expire_connections()
        new = {await pool.fetchval(PID)}
    async with pool.acquire() as one, pool.acquire() as other:
        new |= {await one.fetchval(PID), await other.fetchval(PID)}
    assert len(old) == len(new) == 2
    assert not old & new


async def test_rows_that_are_read_one_by_one_hold_no_connection(narrow: Database, tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text("-- name: numbers(most)\nselect n from generate_series(1, :most) as n;\n")
    async with asyncio.timeout(10):
        rows = Statements(file).numbers(narrow, most=3)
        assert [await narrow.fetchval("select $1::integer", row["n"]) async for row in rows] == [1, 2, 3]


class Storm:
    """Many who use one pool in all ways, and are cancelled at any time."""

    def __init__(self, pool: Database, seed: int) -> None:
        self._pool = pool
        self._random = Random(seed)
        self._borrowed: set[int] = set()

    async def rage(self) -> list[object]:
        """What came of each."""
        ways = (self._asks, self._transfers, self._borrows, self._swallows)
        tasks = []
        for number in range(400):
            task = asyncio.create_task(self._random.choice(ways)(number))
            asyncio.get_running_loop().call_later(self._random.choice((0, 0.001, 0.005, 0.02, 1)), task.cancel)
            tasks.append(task)
            if self._random.random() < 0.3:
                await asyncio.sleep(self._random.choice((0, 0, 0.002, 0.01)))
        return await asyncio.gather(*tasks, return_exceptions=True)

    async def _asks(self, number: int) -> None:
        with one_request(), suppress(NoConnection):
            assert await self._pool.fetchval("select $1::integer", number) == number

    async def _transfers(self, number: int) -> None:
        async with self._pool.acquire() as lent, lent.transaction():
            await self._use(lent, number)

    async def _borrows(self, number: int) -> None:
        lent = await self._pool.acquire()
        try:
            await self._use(lent, number)
        finally:
            await self._pool.release(lent)

    async def _swallows(self, number: int) -> None:
        async with self._pool.acquire() as lent:
            with suppress(TimeoutError):
                await lent.execute("select pg_sleep(1)", timeout=0.002)
            await self._use(lent, number)

    async def _use(self, lent: Any, number: int) -> None:
        pid = await lent.fetchval(PID)
        assert pid not in self._borrowed, "two have one connection"
        self._borrowed.add(pid)
        try:
            assert await lent.fetchval("select $1::integer from pg_sleep(0.002)", number) == number
        finally:
            self._borrowed.remove(pid)


@pytest.mark.parametrize("seed", range(4))
async def test_a_storm_of_cancellations_loses_no_connection(database_url: str, seed: int) -> None:
    async with connected(database_url, most=4) as pool, asyncio.timeout(PATIENCE):
        came = await Storm(pool, seed).rage()
        assert [one for one in came if one is not None and not isinstance(one, asyncio.CancelledError)] == []
        assert sum(one is None for one in came) > 10
        every = [await pool.acquire() for _ in range(4)]
        assert len({await one.fetchval(PID) for one in every}) == 4
        for one in every:
            await pool.release(one)
        assert (pool.get_size(), pool.get_idle_size()) == (4, 4)
