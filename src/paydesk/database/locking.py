"""Locks several tables for a step of the schema, so that nobody is in a deadlock with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import asyncpg

from paydesk.database.statements import Connection

TRIED_FOR = 5.0
"""Seconds for which tables are tried that are free one by one, and never all at once."""

PAUSE = 0.02
"""Seconds between two such tries: whoever waited for the table that was held goes on."""


async def lock_together(connection: Connection, tables: Sequence[str], gives_way: str) -> None:
    """Lock all tables for the rest of the transaction, waiting for none while another is held.

    Who holds one and wants the next is never waited for: what was locked is let go of, and the
    next try waits for the table that was not free.

    Raises: LockNotAvailableError if the table that is waited for stays locked for `gives_way`,
        or if they are never all free.
    """
    await connection.execute(f"set local lock_timeout = '{gives_way}'")
    end = time.monotonic() + TRIED_FOR
    waited_for = tables[0]
    while True:
        busy = await _try(connection, waited_for, [table for table in tables if table != waited_for])
        if busy is None:
            return
        if time.monotonic() > end:
            raise asyncpg.LockNotAvailableError(f"{', '.join(tables)} are never all free")
        waited_for = busy
        await asyncio.sleep(PAUSE)


async def _try(connection: Connection, waited_for: str, others: Sequence[str]) -> str | None:
    """Wait for one table, and lock the others if they are free: else the one that is not,
    and nothing is locked.
    """
    await connection.execute("savepoint together")
    await connection.execute(f"lock table {waited_for} in access exclusive mode")
    for table in others:
        try:
            await connection.execute(f"lock table {table} in access exclusive mode nowait")
        except asyncpg.LockNotAvailableError:
            await connection.execute("rollback to savepoint together; release savepoint together")
            return table
    return None
