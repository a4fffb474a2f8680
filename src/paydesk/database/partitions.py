"""The monthly partitions of append-only logs: made ahead of time, dropped after the retention."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import asyncpg
import structlog
from dateutil.relativedelta import relativedelta

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements

LOGS = ("pingback_attempt", "rejected_form", "audit_entry")
MONTHS_AHEAD = 2

GIVES_WAY = "100ms"
"""How long upkeep waits for a lock, and whoever records something for upkeep;
there is time until it is tried again."""

_queries = load_statements("paydesk.database", "partitions.sql")
log = structlog.get_logger()

_MONTH = re.compile(r"_m([0-9]{6})$")


@dataclass(frozen=True, slots=True)
class _Partition:
    name: str


async def keep_partitions(database: Database, *, now: datetime, months: int) -> None:
    """Make sure that this month and the next ones have partitions,
    and drop those older than `months`.

    A row that finds no partition goes to the default one, so nothing is lost if this never runs.
    While somebody reads a log for long (a backup), this gives way at once: neither waits for
    the other.
    """
    this_month = datetime(now.year, now.month, 1, tzinfo=UTC)
    existing = {one.name for one in await records_of(_Partition, _queries.partitions_of(database, logs=list(LOGS)))}
    for each in LOGS:
        for ahead in range(MONTHS_AHEAD + 1):
            begin = this_month + relativedelta(months=ahead)
            name = f"{each}_m{begin:%Y%m}"
            if name not in existing:
                await _if_free(database, name, partial(_make, log=each, name=name, begin=begin))
    oldest_kept = f"{this_month - relativedelta(months=months):%Y%m}"
    for name in existing:
        match = _MONTH.search(name)
        if match is not None and match[1] < oldest_kept:
            await _if_free(database, name, partial(_drop, name=name))


async def _if_free(database: Database, name: str, change: Callable[[Connection], Awaitable[None]]) -> None:
    """Make a change in a transaction of its own, or leave it for the next time if its locks are not
    free now.
    """
    try:
        async with database.acquire() as connection, connection.transaction():
            await connection.execute(f"set local lock_timeout = '{GIVES_WAY}'")
            await change(connection)
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
        log.info("the upkeep of a log gives way to who reads it", partition=name, why=str(error))


async def _drop(connection: Connection, *, name: str) -> None:
    await connection.execute(f"drop table if exists {name}")


async def _make(connection: Connection, *, log: str, name: str, begin: datetime) -> None:
    """Make one month's partition; rows that the default partition already caught
    for that month move into it.
    """
    end = begin + relativedelta(months=1)
    month = (begin, end)
    await connection.execute(f"lock table {log} in share row exclusive mode")
    if await _queries.is_there(connection, name=name):
        return
    await connection.execute(f"create table {name} (like {log} including defaults)")
    columns = await _queries.columns_of(connection, name=name)
    await connection.execute(
        f"with moved as (delete from {log}_other where at >= $1 and at < $2 returning {columns})"  # noqa: S608
        f" insert into {name} ({columns}) select {columns} from moved",
        *month,
    )
    bounds = f"from ('{begin.isoformat()}') to ('{end.isoformat()}')"
    await connection.execute(f"alter table {log} attach partition {name} for values {bounds}")
