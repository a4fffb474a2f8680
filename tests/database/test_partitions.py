"""The months of the logs are made and dropped beside whoever reads them."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest
from tests.conftest import database_at
from tests.databases import drop_database

from paydesk.database.migrating import migrate
from paydesk.database.partitions import LOGS, keep_partitions
from paydesk.database.pool import Database, connected

MAY = datetime(2041, 5, 17, 12, 0, tzinfo=UTC)
MONTHS = ("m204105", "m204106", "m204107")
FOR_EVER = 12 * 100


async def made(database: Database) -> set[str]:
    rows = await database.fetch("select relname from pg_class where relname like '%\\_m2041%' and relkind = 'r'")
    return {row["relname"] for row in rows}


@pytest.fixture
async def database(server_url: str) -> AsyncIterator[Database]:
    """A database of these tests' own: what is dropped here is nobody else's."""
    name = f"paydesk_test_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    async with connected(database_at(server_url, name), most=4) as pool:
        await migrate(pool)
        yield pool
    await drop_database(admin, name)
    await admin.close()


async def test_this_month_and_the_next_ones_have_a_partition_in_each_log(database: Database) -> None:
    for _ in range(2):
        await keep_partitions(database, now=MAY, months=FOR_EVER)
    assert await made(database) == {f"{log}_{month}" for log in LOGS for month in MONTHS}


async def test_who_reads_a_log_for_long_is_not_waited_for_and_makes_nobody_wait(database: Database) -> None:
    async with database.acquire() as backup:
        reading = backup.transaction()
        await reading.start()
        await backup.execute("lock table rejected_form_other in access share mode")
        await keep_partitions(database, now=MAY, months=FOR_EVER)
        others = {f"{log}_{month}" for log in LOGS if log != "rejected_form" for month in MONTHS}
        assert await made(database) == others, "what nobody reads has its months"
        async with database.acquire() as door, door.transaction():
            await door.execute("lock table rejected_form in row exclusive mode nowait")
        await reading.rollback()
    await keep_partitions(database, now=MAY, months=FOR_EVER)
    assert len(await made(database)) == len(LOGS) * len(MONTHS)


async def test_a_month_that_is_read_is_dropped_once_nobody_reads_it(database: Database) -> None:
    await keep_partitions(database, now=MAY, months=FOR_EVER)
    later = MAY.replace(year=2042)
    async with database.acquire() as backup, backup.transaction():
        await backup.execute("lock table audit_entry_m204105 in access share mode")
        await keep_partitions(database, now=later, months=2)
        assert await made(database) == {"audit_entry_m204105"}
    await keep_partitions(database, now=later, months=2)
    assert await made(database) == set()
