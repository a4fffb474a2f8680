"""The months of the logs are made and dropped beside whoever reads them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest
from tests.conftest import database_at
from tests.databases import drop_database
from tests.lengths import long

from paydesk.database.migrating import migrate
from paydesk.database.partitions import LOGS, keep_partitions
from paydesk.database.pool import Database, connected

MAY = datetime(2041, 5, 17, 12, 0, tzinfo=UTC)
MONTHS = ("m204105", "m204106", "m204107")
FOR_EVER = 12 * 100

RECORD = (
    "insert into rejected_form (merchant_id, live, at, status, reason, fields) values (1, true, $1, 400, '', '{}')",
    "insert into audit_entry (merchant_id, at, operator, client_address, action, subject, details)"
    " values (1, $1, false, '', 'test_mode_changed', '', '{}')",
    "insert into pingback_attempt (merchant_id, live, pingback_id, number, at, url, request_headers, request_body,"
    " duration_ms) values (1, true, 1, 1, $1, '', '{}', '', 1)",
)
NOBODY_WAITS = "1s"


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


def go_on(task: asyncio.Task[None]) -> None:
    """Raise what has ended a task that never ends."""
    if task.done():
        task.result()


@long
async def test_upkeep_beside_a_backup_that_reads_all_and_who_records_makes_neither_wait(database: Database) -> None:
    await keep_partitions(database, now=MAY, months=FOR_EVER)
    before, later, recorded = await made(database), MAY.replace(year=2042), 0

    async def record() -> None:
        nonlocal recorded
        async with database.acquire() as door:
            # Whoever waits longer gets an error, which fails this test.
            await door.execute(f"set lock_timeout = '{NOBODY_WAITS}'")
            while True:
                for statement in RECORD:
                    await door.execute(statement, later)
                recorded += 1

    async with database.acquire() as backup:
        reading = backup.transaction(isolation="repeatable_read", readonly=True)
        await reading.start()
        partitions = await backup.fetchval(
            "select string_agg(relid::regclass::text, ', ') from unnest($1::text[]) l, pg_partition_tree(l::regclass)",
            LOGS,
        )
        await backup.execute(f"set local lock_timeout = '{NOBODY_WAITS}'")
        await backup.execute(f"lock table {partitions} in access share mode")
        recording = asyncio.create_task(record())
        for _ in range(3):
            seen = recorded
            await keep_partitions(database, now=later, months=2)
            while recorded < seen + 5:
                go_on(recording)
                await asyncio.sleep(0.01)
        assert await made(database) == before, "what is read is neither made nor dropped"
        await reading.rollback()
    while await made(database) & before:
        await keep_partitions(database, now=later, months=2)
        go_on(recording)
    recording.cancel()
    await asyncio.gather(recording, return_exceptions=True)
    await keep_partitions(database, now=later, months=2)
    rows = "select count(*) from {log}_m204205"
    for log in LOGS:
        assert await database.fetchval(rows.format(log=log)) >= recorded, "what was caught meanwhile is in its month"
