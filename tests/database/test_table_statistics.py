from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
from tests import breaking, set_back
from tests.shopfront import buy
from tests.sweeping import database, database_url

from paydesk.database.pool import SESSION, Database, connected
from paydesk.database.table_statistics import TableStatistics
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkout_rows import queries
from paydesk.domain.payments.desk import Desk

__all__ = ["database", "database_url"]


FEW = 30
"""Rows that a statement may look at which finds each by its key."""


@dataclass(frozen=True, slots=True)
class Session:
    """A connection that has looked for the only checkout there was."""

    connection: asyncpg.Connection
    find: str


@pytest.fixture
async def session(desk: Desk, shop: Shop, database: Database, database_url: str) -> AsyncIterator[Session]:
    await buy(desk, shop)
    found = Session(
        await asyncpg.connect(database_url, server_settings=SESSION),
        f"execute find({shop.merchant_id}, {shop.live}, {await database.fetchval('select max(id) from checkout')})",
    )
    await found.connection.execute(f"prepare find as {queries.find_checkout.sql}")
    await found.connection.execute(found.find)
    yield found
    await found.connection.close()


async def rows_read(session: asyncpg.Connection, statement: str) -> int:
    """How many rows a statement looks at in tables."""

    def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield node
        for below in node.get("Plans", ()):
            yield from nodes(below)

    plan = json.loads(await session.fetchval(f"explain (analyze, format json) {statement}"))[0]["Plan"]
    looked = [node for node in nodes(plan) if "Relation Name" in node]
    each = [node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in looked]
    return int(sum(rows * node["Actual Loops"] for rows, node in zip(each, looked, strict=True)))


async def test_a_checkout_is_found_by_its_key_among_the_first_hundreds(session: Session, database: Database) -> None:
    await set_back.sold_more_of_the_same(database, 400)
    statistics = TableStatistics(database)
    await statistics.look()
    assert await rows_read(session.connection, session.find) < FEW


@pytest.fixture
async def young(own_database_url: str) -> AsyncIterator[Database]:
    """A database in which nobody else analyzes the table of customers: autovacuum comes when it
    comes, between two rows of a test, too.
    """
    async with connected(own_database_url) as database:
        await database.execute("alter table customer set (autovacuum_enabled = off)")
        yield database


async def test_a_table_of_few_rows_waits_until_there_is_something_to_learn(young: Database) -> None:
    statistics = TableStatistics(young)
    await breaking.leave_without_merchant(young, "customer")
    await statistics.look()
    assert await known(young, "customer") is False
    for _ in range(400):
        await breaking.leave_without_merchant(young, "customer")
    await statistics.look()
    assert await known(young, "customer") is True
    assert await known(young, "card") is False


async def test_a_table_is_looked_at_again_once_it_is_several_times_as_large(young: Database) -> None:
    statistics = TableStatistics(young)
    for rows, known_rows in ((400, 400), (440, 400), (2000, 2000)):
        while await young.fetchval("select count(*) from customer") < rows:
            await breaking.leave_without_merchant(young, "customer")
        await statistics.look()
        assert await young.fetchval("select reltuples from pg_class where relname = 'customer'") == known_rows


async def known(database: Database, table: str) -> bool:
    """Whether the planner knows anything of a table's values."""
    return bool(await database.fetchval("select exists (select from pg_stats where tablename = $1)", table))
