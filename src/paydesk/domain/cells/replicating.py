"""How the directory comes to the other cells: PostgreSQL's logical replication, by one publication
of the home cell, and a slot there and a subscription in each other cell.

A server that was failed over to may have no slot, since only PostgreSQL 17 and Patroni bring them
along: then a copy is made anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import asyncpg

from paydesk.core.errors import Conflict, SetupError
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.cells.adding import database_id, follow

queries = load_statements(__package__ or "", "replicating.sql")

SUBSCRIPTION = "paydesk_directory_"
"""How slots and subscriptions are called, with the cell's number behind."""

COPYING = 60.0
"""Seconds for which a first copy is waited for."""

_LOOK = 0.1


@dataclass(frozen=True, slots=True)
class Slot:
    """What home keeps for a cell: whether the cell reads it, whether what it had not read yet is
    gone (`lost`), and how far behind the cell's copy is, None where nobody knows.
    """

    name: str
    active: bool
    lost: bool
    bytes_behind: int | None
    seconds_behind: float | None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A cell's subscription: whether it is switched on, and its first copy is whole."""

    enabled: bool
    copied: bool


def name_for(number: int) -> str:
    """How a cell's slot and its subscription are called."""
    return f"{SUBSCRIPTION}{number}"


async def publish(home: Database) -> None:
    """Publish the directory, if it is not yet.

    Raises: SetupError if the server does not write what that takes.
    """
    if await queries.wal_level(home) != "logical":
        raise SetupError(
            "the home cell's PostgreSQL runs without wal_level = logical, which it takes to bring the directory to "
            "other cells; set it (see Cells in docs/operate.md), restart PostgreSQL and run this again"
        )
    if not await queries.is_published(home):
        with suppress(asyncpg.DuplicateObjectError):
            await queries.publish(home)


async def slots(home: Database) -> dict[str, Slot]:
    """The slots that the home cell's server keeps for other cells, by name."""
    return {slot.name: slot for slot in await records_of(Slot, queries.slots(home))}


async def subscription(cell: Database, number: int) -> Subscription | None:
    """The subscription of a cell, seen in its own database."""
    return record_if_any(Subscription, await queries.subscription(cell, name=name_for(number)))


@asynccontextmanager
async def replicating_role(address: str, home_id: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection as the role that brings the directory out of the home cell.

    Raises: SetupError if the address is another database's, or the role may not do that.
    """
    try:
        connection = await asyncpg.connect(address, timeout=10)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        raise SetupError(f"--home can't be reached: {type(error).__name__}; see its PostgreSQL's log") from error
    try:
        if not await queries.may_replicate(connection):
            raise SetupError(
                "the role of --home may not replicate the directory: alter role NAME replication; "
                "grant select on cell, directory to NAME; grant select (tag, cell, home_cell) on deployment to NAME"
            )
        if await database_id(connection) != home_id:
            raise SetupError("--home is another database than this cell's")
        yield connection
    finally:
        await connection.close()


async def require_may_subscribe(cell: Database) -> None:
    """Make sure that a role may make a subscription. Raises: SetupError."""
    if not await queries.may_subscribe(cell):
        raise SetupError(
            "the role of --database, or in PAYDESK_CELL_DATABASES, may not make a subscription: give the address of a "
            "superuser for this one command, "
            "or from PostgreSQL 16 on: grant pg_create_subscription to NAME; grant create on database … to NAME"
        )


async def subscribe(
    cell: Database, home: asyncpg.Connection, number: int, *, home_number: int, home_address: str, anew: bool = False
) -> bool:
    """Have a cell follow the directory, if it does not yet; whether anything had to be made.

    Slot and subscription are made one after the other, so who was cut off in between goes on by
    calling this again. `anew` also where both seem well: the copy is emptied and brought again.
    `home` is a connection of `replicating_role`; until it is closed nobody else does this.

    Raises: SetupError; Conflict if somebody else does.
    """
    if not await queries.hold_copy(home, number=number):
        raise Conflict(
            f"another call makes the copy of the directory in cell {number} at this moment: run the same again once "
            "that has ended"
        )
    name = name_for(number)
    if other := await queries.slot_of_another(home, name=name):
        raise SetupError(f'the slot {name} of this PostgreSQL belongs to its database "{other}"')
    slot, found = (await slots(home)).get(name), await subscription(cell, number)
    if slot is not None and not slot.lost and not anew and found is not None and found.enabled:
        await follow(cell, home_number)
        return False
    async with cell.acquire() as connection:
        await _unsubscribe(connection, name)
    if slot is not None and (slot.lost or slot.active or anew):
        await _drop_slot(home, name)
        slot = None
    if slot is None:
        # Patroni makes those anew by itself that are permanent.
        with suppress(asyncpg.DuplicateObjectError):
            await queries.make_slot(home, name=name)
    async with cell.acquire() as connection, connection.transaction():
        await follow(connection, home_number)
        await queries.empty_copy(connection)
        await connection.execute(await queries.subscribing(connection, name=name, home=home_address))
    return True


async def _unsubscribe(connection: Connection, name: str) -> None:
    """End a subscription, whatever became of its slot."""
    if await queries.subscription(connection, name=name) is None:
        return
    await connection.execute(f"alter subscription {name} disable")
    await connection.execute(f"alter subscription {name} set (slot_name = none)")
    await connection.execute(f"drop subscription {name}")


async def _drop_slot(home: asyncpg.Connection, name: str) -> None:
    """Drop a slot, once its last reader has noticed that it has ended."""
    for _ in range(round(COPYING / _LOOK)):
        with suppress(asyncpg.ObjectInUseError):
            await queries.drop_slot(home, name=name)
            return
        await asyncio.sleep(_LOOK)
    raise SetupError(f"the slot {name} is still read by somebody; end that, and run this again")


async def wait_for_copy(cell: Database, number: int, *, patience: float = COPYING) -> bool:
    """Whether a cell's first copy is whole, after at most so many seconds."""
    for _ in range(round(patience / _LOOK)):
        found = await subscription(cell, number)
        if found is not None and found.copied:
            return True
        await asyncio.sleep(_LOOK)
    return False
