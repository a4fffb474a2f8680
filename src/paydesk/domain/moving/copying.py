"""A merchant's rows go from one cell's database into another's as they are, table by table,
and what came is compared there, row by row.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import asyncpg

from paydesk.adapters.vault import Vault
from paydesk.core.errors import Conflict, SetupError
from paydesk.database.durability import ConfirmedConnection
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.moving.tables import COPIED, NAMES, is_of_an_account, theirs

queries = load_statements(__package__ or "")

CHUNKS = 16
"""Pieces of a table that are read ahead of what is written."""
PATIENCE = 24 * 3600.0
"""Seconds that a table may take."""


@dataclass(frozen=True, slots=True)
class Side:
    """A cell as a move sees it: its database and what its secrets rest under."""

    database: Database
    vault: Vault


@dataclass(frozen=True, slots=True)
class Table:
    """A table of merchants' rows: its columns, but for what the database makes of the others, and
    those of its primary key.
    """

    table: str
    columns: Sequence[str]
    keys: Sequence[str]

    @property
    def theirs(self) -> str:
        """What is true of the merchant's rows, in SQL; $1 is who it is (`Pair.owner`)."""
        return theirs(self.table)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides of a merchant's move as one pass sees them: a snapshot here, a transaction there,
    and the names of the accounts that are the merchant's own on either side.
    """

    here: ConfirmedConnection
    there: ConfirmedConnection
    merchant_id: int
    accounts: Sequence[str]

    def owner(self, table: str) -> object:
        """Whose rows of a table go: what its `theirs` is asked with."""
        return self.accounts if is_of_an_account(table) else self.merchant_id

    def has(self, table: str) -> bool:
        """Whether there may be anything of the merchant's in a table: one that names accounts is
        big, and read by nobody who has none.
        """
        return bool(self.accounts) or not is_of_an_account(table)


@dataclass(frozen=True, slots=True)
class Seen:
    """How many rows, and the sum of their hashes."""

    rows: int
    hash: Decimal | None


async def without_triggers(connection: ConfirmedConnection) -> None:
    """For the rest of the transaction no trigger fires: rows are put as they are, what triggers
    have made of them elsewhere with them.

    Raises: SetupError if the role may not.
    """
    try:
        await connection.execute("set local session_replication_role = replica")
    except asyncpg.InsufficientPrivilegeError as error:
        role = await connection.fetchval("select current_user")
        raise SetupError(
            f"the role {role} may not copy rows without their triggers; a superuser of each cell's PostgreSQL allows "
            f'it: grant set on parameter session_replication_role to "{role}"'
        ) from error


async def tables_of(*databases: Database) -> list[Table]:
    """The tables of merchants' rows, which both have alike. Raises: SetupError."""
    found = [
        {one.table: one for one in await records_of(Table, queries.columns_of(each, tables=COPIED))}
        for each in databases
    ]
    if found[0] != found[1]:
        raise SetupError("the tables of both cells are not the same: run `paydesk migrate` in both with one version")
    return [found[0][name] for name in COPIED]


async def names_of_accounts(connection: ConfirmedConnection, merchant_id: int) -> list[str]:
    """What the accounts are called that serve the merchant alone."""
    names: list[str] = await queries.names_of_accounts(connection, merchant_id=merchant_id)
    return names


async def empty(connection: ConfirmedConnection, merchant_id: int, *, keeping: Sequence[str] = ()) -> None:
    """Delete what is the merchant's, with its team, but for the tables named; its accounts stay."""
    await without_triggers(connection)
    pair = Pair(connection, connection, merchant_id, await names_of_accounts(connection, merchant_id))
    await queries.forget_sums(connection, merchant_id=merchant_id)
    for table in COPIED:
        if table not in keeping and pair.has(table):
            await connection.execute(
                f"delete from {table} where {theirs(table)}",  # noqa: S608
                pair.owner(table),
                timeout=PATIENCE,
            )
    await queries.dismiss_team(connection, merchant_id=merchant_id)


async def drop_name(connection: ConfirmedConnection, merchant_id: int) -> None:
    """Delete that by which a merchant is found, and nothing else."""
    await without_triggers(connection)
    for table in NAMES:
        await connection.execute(f"delete from {table} where {theirs(table)}", merchant_id)  # noqa: S608


async def copy_whole(pair: Pair, table: Table) -> int:
    """Copy all of the merchant's rows of a table, and compare them; how many. Raises: Conflict."""
    asked = f"select {listed(table.columns)} from {table.table} where {table.theirs}"  # noqa: S608
    copied = await stream(pair, asked, [pair.owner(table.table)], table.table, table.columns)
    hashed = f"select {hash_of(table)} from {table.table} t where {table.theirs}"  # noqa: S608
    was, came = await asyncio.gather(*(seen(each, hashed, pair.owner(table.table)) for each in (pair.here, pair.there)))
    require_same(table, was, came)
    return copied


async def stream(pair: Pair, asked: str, values: Sequence[object], table: str, columns: Sequence[str]) -> int:
    """Copy rows that are asked for here into a table there, in binary, as they come; how many."""
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue(CHUNKS)

    async def read() -> str:
        said = await pair.here.copy_from_query(asked, *values, output=pieces.put, format="binary", timeout=PATIENCE)
        await pieces.put(None)
        return str(said)

    async def come() -> AsyncIterator[bytes]:
        while (piece := await pieces.get()) is not None:
            yield piece

    async with asyncio.TaskGroup() as both:
        watching = [both.create_task(_go_away(one)) for one in (pair.here, pair.there)]
        reading = both.create_task(read())
        writing = both.create_task(
            pair.there.copy_to_table(table, source=come(), columns=list(columns), format="binary", timeout=PATIENCE)
        )
        await asyncio.wait({reading, writing})
        for each in watching:
            each.cancel()
    if reading.result() != writing.result():
        raise Conflict(f"{table}: read {reading.result()}, wrote {writing.result()}")
    return int(writing.result().split()[1])


async def _go_away(connection: ConfirmedConnection) -> None:
    """Ends when a connection is lost: who writes a copy to it, and waits for room, is not told.

    Raises: ConnectionDoesNotExistError.
    """
    gone = asyncio.Event()

    def note(_: object) -> None:
        gone.set()

    connection.add_termination_listener(note)
    try:
        await gone.wait()
    finally:
        connection.remove_termination_listener(note)
    raise asyncpg.ConnectionDoesNotExistError("the connection was lost")


def require_same(table: Table, was: Seen, came: Seen) -> None:
    """Make sure that what came is what was there. Raises: Conflict."""
    if was != came:
        raise Conflict(f"{table.table}: {was.rows} rows here and {came.rows} there, which are not the same")


async def seen(connection: ConfirmedConnection, asked: str, *values: object) -> Seen:
    """What a question for `hash_of` finds."""
    row: Any = await connection.fetchrow(asked, *values, timeout=PATIENCE)
    return Seen(*row)


def hash_of(table: Table) -> str:
    """What rows `t` of a table come to: how many they are, and the sum of their hashes."""
    return f"count(*) as rows, sum(hashtextextended(row({listed(table.columns, 't.')})::text, 0)::numeric) as hash"


def listed(columns: Sequence[str], of: str = "") -> str:
    """Columns as a statement names them."""
    return ", ".join(f'{of}"{one}"' for one in columns)
