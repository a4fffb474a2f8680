"""A merchant's rows, as one snapshot has them, go into another cell's database in one transaction,
sealed for its vault; what was copied is compared there, row by row.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import asyncpg

from paydesk.adapters.vault import Sealed, Vault
from paydesk.core.errors import Conflict, SetupError, Unavailable
from paydesk.database.durability import ConfirmedConnection
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts import second_factor
from paydesk.domain.moving.tables import THEIRS, owner_column
from paydesk.domain.sealing.resealing import PLACES, hand_over

queries = load_statements(__package__ or "")

CHUNKS = 16
"""Pieces of a table that are read ahead of what is written."""
PATIENCE = 24 * 3600.0
"""Seconds that a table may take."""

_SEALED = {(place.table, place.column) for place in PLACES} | {(place.table, "vault_key_id") for place in PLACES}


@dataclass(frozen=True, slots=True)
class Side:
    """A cell as a move sees it: its database and what its secrets rest under."""

    database: Database
    vault: Vault


@dataclass(frozen=True, slots=True)
class _Columns:
    table: str
    columns: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Seen:
    rows: int
    hash: Decimal | None


@dataclass(frozen=True, slots=True)
class _Member:
    id: int
    email: str
    role: str
    created_at: datetime
    totp_sealed: bytes | None
    vault_key_id: str | None
    person: str


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy came to: rows in all, values that were sealed anew, and the place in the source's
    log (LSN) that the snapshot was taken at.
    """

    rows: int
    sealed: int
    lsn: str


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


async def copy_merchant(source: Side, target: Side, merchant_id: int, *, report: Callable[[], None]) -> Copied:
    """Copy everything that is the merchant's, all or nothing. Moves no money.

    Nobody may write it meanwhile, on either side. `report` is called for each table.
    Raises: SetupError if a value can't be opened; Conflict if what came is not what was there;
        Unavailable if a database goes away.
    """
    try:
        return await _copy_all(source, target, merchant_id, report)
    except (*AWAY, ExceptionGroup) as error:
        if isinstance(error, ExceptionGroup) and error.split(AWAY)[1]:
            raise
        raise Unavailable("a database went away during the copy; run the same command again") from error


async def _copy_all(source: Side, target: Side, merchant_id: int, report: Callable[[], None]) -> Copied:
    columns = await _columns(source.database, target.database)
    async with (
        source.database.acquire() as here,
        target.database.acquire() as there,
        here.transaction(isolation="repeatable_read", readonly=True),
        there.transaction(),
    ):
        lsn = str(await here.fetchval("select pg_current_wal_lsn()::text"))
        await without_triggers(there)
        rows = 0
        for table in THEIRS:
            rows += await _copy(here, there, table, columns[table], merchant_id)
            report()
        await _compare(here, there, columns, merchant_id)
        await _bring_team(source.vault, target.vault, here, there, merchant_id)
        sealed = await hand_over(there, source.vault, target.vault, merchant_id)
        await queries.sum_balances(there, merchant_id=merchant_id)
        await queries.sum_sales(there, merchant_id=merchant_id)
    return Copied(rows, sealed, lsn)


async def compare_merchant(source: Side, target: Side, merchant_id: int) -> None:
    """Make sure that a copy that was made before is what is here. Raises: Conflict."""
    columns = await _columns(source.database, target.database)
    async with source.database.acquire() as here, target.database.acquire() as there:
        await _compare(here, there, columns, merchant_id)


async def empty(
    connection: ConfirmedConnection, merchant_id: int, *, people: Sequence[int] = (), keeping: Sequence[str] = ()
) -> None:
    """Delete what is the merchant's, but for the tables named, and these people if they are nobody
    else's.
    """
    await without_triggers(connection)
    await queries.forget_sums(connection, merchant_id=merchant_id)
    for table in THEIRS:
        if table not in keeping:
            await connection.execute(
                f"delete from {table} where {owner_column(table)} = $1",  # noqa: S608
                merchant_id,
                timeout=PATIENCE,
            )
    await queries.drop_people(connection, merchant_id=merchant_id, ids=list(people))


async def _columns(*databases: Database) -> dict[str, Sequence[str]]:
    """The columns of each table, which both have.  Raises: SetupError."""
    found = [
        {one.table: list(one.columns) for one in await records_of(_Columns, queries.columns_of(each, tables=THEIRS))}
        for each in databases
    ]
    if found[0] != found[1]:
        raise SetupError("the tables of both cells are not the same: run `paydesk migrate` in both with one version")
    return dict(found[0])


async def _copy(
    here: ConfirmedConnection, there: ConfirmedConnection, table: str, columns: Sequence[str], merchant_id: int
) -> int:
    """Copy a table's rows, in binary, as they come; how many."""
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue(CHUNKS)

    async def read() -> str:
        read = await here.copy_from_query(
            f"select {_listed(columns)} from {table} where {owner_column(table)} = $1",  # noqa: S608
            merchant_id,
            output=pieces.put,
            format="binary",
            timeout=PATIENCE,
        )
        await pieces.put(None)
        return str(read)

    async def come() -> AsyncIterator[bytes]:
        while (piece := await pieces.get()) is not None:
            yield piece

    async with asyncio.TaskGroup() as both:
        watching = [both.create_task(_go_away(one)) for one in (here, there)]
        reading = both.create_task(read())
        writing = both.create_task(
            there.copy_to_table(table, source=come(), columns=list(columns), format="binary", timeout=PATIENCE)
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


async def _compare(
    here: ConfirmedConnection, there: ConfirmedConnection, columns: dict[str, Sequence[str]], merchant_id: int
) -> None:
    """Whether both have the same rows, by how many there are and the sum of their hashes. What is
    sealed differs, and was opened.
    """
    for table in THEIRS:
        seen = [one for one in columns[table] if (table, one) not in _SEALED]
        asked = (
            f"select count(*) as rows, sum(hashtextextended(row({_listed(seen)})::text, 0)::numeric) as hash "  # noqa: S608
            f"from {table} where {owner_column(table)} = $1"
        )
        was, came = await _seen(here, asked, merchant_id), await _seen(there, asked, merchant_id)
        if was != came:
            raise Conflict(f"{table}: {was.rows} rows here and {came.rows} there, which are not the same")


async def _seen(connection: ConfirmedConnection, asked: str, merchant_id: int) -> _Seen:
    row: Any = await connection.fetchrow(asked, merchant_id, timeout=PATIENCE)
    return _Seen(*row)


async def _bring_team(
    opens: Vault, seals: Vault, here: ConfirmedConnection, there: ConfirmedConnection, merchant_id: int
) -> None:
    """Whoever belongs to the merchant, to its team there: as who is known there by that address,
    else with password and second factor. Nobody is an operator there by that.
    """
    for member in await records_of(_Member, queries.team(here, merchant_id=merchant_id)):
        person_id = await queries.known_person(there, email=member.email)
        if person_id is None:
            anew = _sealed_for(opens, seals, member)
            person_id, blob, key_id = member.id, anew and anew.blob, anew.key_id if anew else member.vault_key_id
            await queries.add_person(there, person=member.person, totp_sealed=blob, vault_key_id=key_id)
        await queries.add_member(
            there, merchant_id=merchant_id, person_id=person_id, role=member.role, created_at=member.created_at
        )


def _sealed_for(opens: Vault, seals: Vault, member: _Member) -> Sealed | None:
    if member.totp_sealed is None or member.vault_key_id is None:
        return None
    sealed, purpose = Sealed(member.vault_key_id, member.totp_sealed), second_factor.PURPOSE
    secret = opens.open(sealed, purpose=purpose, merchant_id=0, row_id=member.id)
    return seals.seal(secret, purpose=purpose, merchant_id=0, row_id=member.id)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(f'"{one}"' for one in columns)
