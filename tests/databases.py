"""What tests do to databases as their owner, who is no superuser on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

FOREIGN_KEYS = """
select conrelid::regclass::text as called, conname as name, pg_get_constraintdef(oid) as definition
  from pg_constraint
 where contype = 'f' and conparentid = 0 and connamespace = 'public'::regnamespace
"""

APPEND_ONLY = ("ledger_posting", "ledger_entry_before")


_WAITING = (
    "select count(*) from pg_stat_activity"
    " where datname = current_database() and wait_event_type = 'Lock' and query like $1"
)


async def until_waiting(database: Any, *asked: asyncio.Future[Any], query: str = "%") -> None:
    """Wait until whatever was asked for waits for somebody's lock, each with a statement that is
    like `query`; or until one of them is done, which needed none.
    """
    while not any(one.done() for one in asked):
        if await database.fetchval(_WAITING, query) >= len(asked):
            break
        await asyncio.sleep(0.01)


async def knows_capitals(database: Any) -> bool:
    """Whether a database knows the small letters of more than A to Z: by its locale."""
    return bool(await database.fetchval("select lower('Ä') = 'ä'"))


async def drop_database(admin: asyncpg.Connection, name: str) -> None:
    """Drop a database, whoever is connected; the server's own vacuum in it is nobody's to end,
    and soon done.
    """
    for _ in range(40):
        try:
            await admin.execute(f"drop database if exists {name} with (force)")
        except asyncpg.InsufficientPrivilegeError:
            await asyncio.sleep(0.25)
        else:
            return
    await admin.execute(f"drop database if exists {name} with (force)")


@asynccontextmanager
async def unguarded(connection: Any, *, again: bool = True) -> AsyncIterator[None]:
    """Within a transaction of the caller's, let rows be written that no foreign key
    and no trigger would allow.

    Afterwards they hold again, unless the transaction is rolled back anyway (`again` False).
    """
    keys = await connection.fetch(FOREIGN_KEYS)
    for key in keys:
        await connection.execute(f"alter table {key['called']} drop constraint {key['name']}")
    for table in APPEND_ONLY:
        await connection.execute(f"alter table {table} disable trigger user")
    yield
    if not again:
        return
    for table in APPEND_ONLY:
        await connection.execute(f"alter table {table} enable trigger user")
    for key in keys:
        await connection.execute(f"alter table {key['called']} add constraint {key['name']} {key['definition']}")
