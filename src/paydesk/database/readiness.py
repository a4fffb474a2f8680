"""Whether the database does what customers need of it."""

from __future__ import annotations

import asyncio

from paydesk.database.pool import Database

PATIENCE = 2.0
"""Seconds that a commit may take."""

_WRITE = "select pg_logical_emit_message(true, 'paydesk', 'ready')"
"""A write without a row: a line of the write-ahead log, for which a commit waits as for a payment's."""


async def commits(database: Database) -> bool:
    """Whether a write is committed within two seconds: not by a standby, nor by a server that hangs or lost its own.

    Raises: one of AWAY.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            await database.execute(_WRITE)
    except TimeoutError:
        return False
    return True
