"""A transaction is of whoever was lent its connection, and of nobody after that."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import asyncpg
import pytest

from paydesk.database.pool import Database


async def test_a_transaction_that_was_ended_by_hand_breaks_nobody_elses(narrow: Database) -> None:
    async with narrow.acquire() as lent:
        begun = lent.transaction()
        await begun.start()
        await lent.execute("rollback")
    async with narrow.acquire() as mine, mine.transaction():
        assert await mine.fetchval("select 1") == 1
        with pytest.raises(asyncpg.InterfaceError, match="released back"):
            await begun.commit()
        assert mine.is_in_transaction()


async def test_a_transaction_begins_nothing_on_a_connection_given_back(narrow: Database) -> None:
    async with narrow.acquire() as lent:
        late = lent.transaction()
    async with narrow.acquire() as mine:
        with pytest.raises(asyncpg.InterfaceError, match="given back"):
            await late.start()
        assert not mine.is_in_transaction()


async def test_transactions_that_came_to_their_end_keep_the_connection(
    narrow: Database, seen_by_driver: list[object]
) -> None:
    async with narrow.acquire() as lent:
        async with lent.transaction(), lent.transaction():
            await lent.execute("select 1")
        with suppress(KeyError):
            async with lent.transaction():
                raise KeyError
        for end in ("commit", "rollback"):
            begun = lent.transaction()
            await begun.start()
            await getattr(begun, end)()
    assert seen_by_driver == []


async def test_what_waits_for_a_connection_gets_one_only(narrow: Database) -> None:
    waits = narrow.acquire()
    with pytest.raises(asyncpg.InterfaceError, match="already lent"):
        async with waits, waits:
            pass
    async with asyncio.timeout(10):
        assert await narrow.fetchval("select 1") == 1
