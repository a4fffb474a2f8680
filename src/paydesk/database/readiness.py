"""Whether the database does what customers need of it."""

from __future__ import annotations

import asyncio

from paydesk.database.durability import WRITE
from paydesk.database.pool import Database

PATIENCE = 2.0
"""Seconds that a commit may take."""


async def commits(database: Database) -> bool:
    """Whether a write is committed within two seconds:
    not by a standby, nor by a server that hangs or lost its own.

    Raises: one of AWAY.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            await database.execute(WRITE)
    except TimeoutError:
        return False
    return True
