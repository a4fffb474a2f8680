"""The connection pool, and which errors mean that the database is away for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg

Database: TypeAlias = asyncpg.Pool

AWAY = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
)
"""Raised when the server restarts, is full or can't be reached: nothing is known to be changed, try again."""


@asynccontextmanager
async def connected(url: str, *, most: int = 16) -> AsyncIterator[Database]:
    """Open a pool of at most `most` connections for the length of a block.

    `url` is a postgresql:// address. Raises: one of AWAY if the server can't be reached.
    """
    async with asyncpg.create_pool(
        url,
        min_size=1,
        max_size=most,
        command_timeout=60,
        server_settings={"application_name": "paydesk", "timezone": "UTC"},
    ) as pool:
        yield pool
