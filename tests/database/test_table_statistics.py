from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
from tests import breaking, set_back
from tests.shopfront import buy
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import SESSION, Database, connected
from paydesk.database.table_statistics import TABLES, TableStatistics
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import preparing
from paydesk.domain.payments.checkout_rows import queries
from paydesk.domain.payments.desk import Desk
from paydesk.equipment import payment_desk
from paydesk.settings import Settings

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


async def test_a_restored_table_whose_size_its_indexes_have_noted_is_looked_at(young: Database) -> None:
    for _ in range(400):
        await breaking.leave_without_merchant(young, "customer")
    # As pg_restore makes indexes: once all rows are there.
    await young.execute("alter table customer reset (autovacuum_enabled); reindex table customer")
    assert await young.fetchval("select reltuples from pg_class where relname = 'customer'") == 400
    await TableStatistics(young).look()
    assert await known(young, "customer") is True


async def test_a_table_of_nothing_but_what_was_given_up_is_looked_at_once(young: Database) -> None:
    """As one is whose restore broke off: nothing can be learnt of it, however often it is read."""
    with suppress(asyncpg.DivisionByZeroError):
        async with young.acquire() as connection, connection.transaction():
            for _ in range(400):
                await breaking.leave_without_merchant(connection, "customer")
            await connection.execute("select 1 / 0")
    for _ in range(3):
        await TableStatistics(young).look()
    assert await known(young, "customer") is False
    assert await young.fetchval("select analyze_count from pg_stat_user_tables where relname = 'customer'") == 1


async def known(database: Database, table: str) -> bool:
    """Whether the planner knows anything of a table's values."""
    return bool(await database.fetchval("select exists (select from pg_stats where tablename = $1)", table))


SOLD = 400
"""What a new deployment had sold before the planner was told of any of it."""


@pytest.fixture(params=["before the first", "meanwhile"])
async def first_hour(
    request: pytest.FixtureRequest,
    young: Database,
    own_database_url: str,
    settings: Settings,
    vault: Vault,
    bank: Bank,
) -> AsyncIterator[dict[str, Session]]:
    """What looks for the first checkout and what counts a try to pay it, planned before it was
    sold or after all the others, for none in particular; the planner knows nothing of any.
    """
    for table in TABLES:
        await young.execute(f"alter table {table} set (autovacuum_enabled = off)")
    merchant = await create_merchant(young, vault, name="Corner Shop", email="owner@shop.example", now=utc_now())
    shop = shop_of(merchant, live=False)
    connection = await asyncpg.connect(own_database_url, server_settings=SESSION)
    await connection.execute("set plan_cache_mode = force_generic_plan")
    await connection.execute(f"prepare find as {queries.find_checkout.sql}")
    await connection.execute(f"prepare try as {preparing.queries.prepare_attempt.sql}")
    if request.param == "before the first":
        for statement in looked_for(shop, checkout_id=0):
            await connection.execute(f"explain {statement}")
    desk = payment_desk(settings, young, vault, SimulatedAcquirer(bank, base_url=settings.address))
    await buy(desk, shop)
    first = await young.fetchval("select id from checkout")
    await set_back.sold_more_of_the_same(young, SOLD)
    found, tried = looked_for(shop, checkout_id=first)
    yield {"find": Session(connection, found), "try": Session(connection, tried)}
    await connection.close()


def looked_for(shop: Shop, *, checkout_id: int) -> tuple[str, str]:
    """How a checkout is found, and a try of it counted, of an address that has tried nothing."""
    nothing_else = ", ".join(["'{}'"] * 6)
    return (
        f"execute find({shop.merchant_id}, false, {checkout_id})",
        f"execute try({shop.merchant_id}, false, {checkout_id}, '198.51.100.7', now(), 30, {nothing_else}, 10,"
        " now(), now())",
    )


@pytest.mark.parametrize(("statement", "most"), [("find", FEW), ("try", 2 * SOLD + FEW)])
async def test_before_the_planner_knows_a_table_a_customer_waits_for_no_others(
    first_hour: dict[str, Session], statement: str, most: int
) -> None:
    """A checkout is found by its key; a try reads each table once at most, never one for each row
    of another.
    """
    session = first_hour[statement]
    assert await rows_read(session.connection, session.find) < most
