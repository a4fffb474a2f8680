"""How a step of the schema is done bit by bit, each in a transaction of its own,
so that nobody waits for the whole.

Indexes are built `concurrently`, those of a partitioned table on each partition; rows are filled in
batches whose locks are taken without waiting, so that a batch may lose to a payment but can't be in
a deadlock with one.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import asyncpg

from paydesk.database.durability import ConfirmedConnection
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements

PATIENCE = 24 * 3600.0
"""Seconds that a statement of a step may take: on a big table it may read or write all rows."""

LOCKED_FOR = 0.2
"""Seconds until a batch is tried again, some row of which somebody else holds."""

_BATCHES = re.compile(r"^-- in batches of ([0-9]+): (\w+) \((\w+(?:, \w+)*)\)$", re.MULTILINE)

NAMED_SO = "set local application_name = 'paydesk migrate'"
"""So that a step may also write what is a merchant's who is fenced (`refuse_while_fenced`)."""

_INDEX = re.compile(r"create (unique )?index concurrently if not exists (\w+)\s+on (\w+)")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)

_queries = load_statements("paydesk.database", "piecemeal.sql")


@dataclass(frozen=True, slots=True)
class Batches:
    """Which rows a statement is run over: all of a table, so many at a time,
    in the order of a key.
    """

    size: int
    table: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """The index that a statement builds: the word `unique ` if it is, and what follows
    the table's name.
    """

    unique: str
    name: str
    table: str
    rest: str


@dataclass(frozen=True, slots=True)
class _Partition:
    name: str


def index_of(statement: str) -> Index | None:
    """The index that a statement builds beside the work, None if it builds none so."""
    found = _INDEX.match(statement)
    return Index(found[1] or "", found[2], found[3], statement[found.end() :]) if found else None


def batches_of(sql: str) -> Batches | None:
    """What a step's line `-- in batches of 2000: payment (merchant_id, id)` asks for."""
    found = _BATCHES.search(sql)
    return Batches(int(found[1]), found[2], tuple(found[3].split(", "))) if found else None


def statements_in(sql: str) -> list[str]:
    """The statements of a step, without comments; they hold no semicolon of their own."""
    return [part.strip() for part in _COMMENT.sub("", sql).split(";") if part.strip()]


async def run_one_by_one(connection: ConfirmedConnection, sql: str, gives_way: str) -> None:
    """Run a step's statements each by itself; each must do no harm when it runs again after one
    that failed.

    Raises: LockNotAvailableError if a statement that makes others wait does not get its locks
        within `gives_way`.
    """
    for statement in statements_in(sql):
        if index := index_of(statement):
            await _build(connection, statement, index, gives_way)
        elif " concurrently" in statement:
            await connection.execute(statement, timeout=PATIENCE)
        else:
            await _run(connection, statement, gives_way)


async def _run(connection: ConfirmedConnection, statement: str, gives_way: str, *parameters: object) -> None:
    """Run a statement in a transaction, in which it gives way to who holds its locks."""
    async with connection.transaction():
        await connection.execute(f"set local lock_timeout = '{gives_way}'")
        await connection.execute(statement, *parameters, timeout=PATIENCE)


async def _build(connection: ConfirmedConnection, statement: str, index: Index, gives_way: str) -> None:
    """Build an index beside the work; on a partitioned table first on each partition,
    which it then only takes up.
    """
    partitions = await records_of(_Partition, _queries.partitions_of(connection, table=index.table))
    for partition in partitions:
        name = f"{index.name}_{partition.name.removeprefix(index.table).strip('_')}"
        head = f"create {index.unique}index concurrently if not exists {name} on {partition.name}"
        await _build_one(connection, name, head + index.rest)
    if partitions:
        # Writers wait for this one: it finds an index on each partition, and reads no row.
        await _run(connection, statement.replace(" concurrently", "", 1), gives_way)
    else:
        await _build_one(connection, index.name, statement)


async def _build_one(connection: ConfirmedConnection, name: str, statement: str) -> None:
    """Build one index. It waits for the end of all that began before it, however long:
    nobody waits for it.

    An index whose building was broken off stays behind, invalid and of no use: it is made anew.
    """
    if await _queries.is_invalid(connection, index=name):
        await connection.execute(f"drop index concurrently {name}", timeout=PATIENCE)
    await connection.execute(statement, timeout=PATIENCE)


async def run_in_batches(
    connection: ConfirmedConnection, sql: str, batches: Batches, gives_way: str, told: Callable[[float], None]
) -> None:
    """Run a step's one statement over all rows of a table, which it finds, locked,
    under the name `batch`.

    It rests as long as it works, so that half of the machine is left to who pays; `told` is called
    with the share of the rows done since, 1 in all. Rows that come meanwhile may not be seen: a
    trigger of an earlier step fills these.
    """
    (statement,) = statements_in(sql)
    rows = await connection.fetchval("select reltuples from pg_class where oid = $1::regclass", batches.table)
    last: Sequence[object] = ()
    left = 1.0
    while True:
        begun = time.monotonic()
        try:
            done = await _one_batch(connection, statement, batches, last, gives_way)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            await asyncio.sleep(LOCKED_FOR)
            continue
        if done is None:
            told(left)
            return
        last, part = done[-1], min(left, len(done) / max(rows, 1))
        left -= part
        told(part)
        await asyncio.sleep(time.monotonic() - begun)


async def _one_batch(
    connection: ConfirmedConnection, statement: str, batches: Batches, last: Sequence[object], gives_way: str
) -> Sequence[Sequence[object]] | None:
    """Run the statement over the rows that follow the last one of before:
    their keys, None at the end.

    Raises: LockNotAvailableError if somebody holds one of them.
    """
    key = ", ".join(batches.key)
    after = f"where ({key}) > ({', '.join(f'${number}' for number in range(1, len(last) + 1))})" if last else ""
    lock = f"select {key} from {batches.table} {after} order by {key} limit {batches.size} for no key update nowait"  # noqa: S608
    async with connection.transaction():
        await connection.execute(NAMED_SO)
        locking = await connection.prepare(lock)
        rows = [tuple(row.values()) for row in await locking.fetch(*last, timeout=PATIENCE)]
        if not rows:
            return None
        # As arrays, so that whatever the planner guesses these rows are found one by one, and never
        # by reading all.
        arrays = (f"${number}::{column.type.name}[]" for number, column in enumerate(locking.get_attributes(), 1))
        batch = f"with batch as materialized (select * from unnest({', '.join(arrays)}) as b ({key}))"  # noqa: S608
        await _run(connection, f"{batch} {statement}", gives_way, *zip(*rows, strict=True))
    return rows
