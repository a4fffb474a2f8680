"""A request waits briefly for its first connection, and as long as it takes once a write
of its may be under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from paydesk.database import waiting
from paydesk.database.pool import AWAY, Database, connected
from paydesk.database.waiting import NoConnection, may_wait_only_briefly, one_request


@pytest.fixture(params=["new", "used before"])
async def narrow(
    database_url: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Database]:
    """A pool of one connection, in which nobody waits long."""
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)
    async with connected(database_url, most=1) as pool:
        if request.param == "used before":
            await pool.execute("select 1")
        yield pool


async def test_a_request_is_told_that_every_connection_is_in_use(narrow: Database) -> None:
    async with narrow.acquire():
        with one_request(), pytest.raises(NoConnection) as refused:
            await narrow.fetchval("select 1")
    assert isinstance(refused.value, AWAY), "whoever copes with a database that is away copes with this"
    with one_request():
        assert await narrow.fetchval("select 1") == 1, "the pool has lost no connection over it"


async def _after_giving_up_would_be_due(narrow: Database, question: asyncio.Task[int]) -> None:
    """Let more time pass than a request waits; its wait has no end if it is still waiting then."""
    with one_request(), pytest.raises(NoConnection):
        await narrow.fetchval("select 1")
    assert not question.done()


async def test_once_served_it_waits_as_long_as_it_takes(narrow: Database) -> None:
    async def asks_twice(asked_once: asyncio.Event, go_on: asyncio.Event) -> int:
        with one_request():
            await narrow.fetchval("select 1")
            asked_once.set()
            await go_on.wait()
            return int(await narrow.fetchval("select 2"))

    asked_once, go_on = asyncio.Event(), asyncio.Event()
    question = asyncio.create_task(asks_twice(asked_once, go_on))
    await asked_once.wait()
    async with narrow.acquire():
        go_on.set()
        await _after_giving_up_would_be_due(narrow, question)
    assert await question == 2


async def test_workers_and_commands_wait_as_long_as_it_takes(narrow: Database) -> None:
    async with narrow.acquire():
        question = asyncio.create_task(narrow.fetchval("select 2"))
        await _after_giving_up_would_be_due(narrow, question)
    assert await question == 2


async def test_what_only_reads_may_give_up_at_any_time(narrow: Database) -> None:
    with one_request():
        may_wait_only_briefly(only_reads=True)
        await narrow.fetchval("select 1")
        holder = await asyncio.create_task(_acquired(narrow))
        with pytest.raises(NoConnection):
            await narrow.fetchval("select 1")
        await narrow.release(holder)


async def _acquired(pool: Database) -> object:
    return await pool.acquire()
