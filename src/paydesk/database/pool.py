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
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
"""Raised when the server restarts, is full or can't be reached: what was just sent may be done or not (see surely.py).

The driver calls it an internal error (InternalClientError) when the server's last words reach a connection just as it
is used: it is in no state to take the statement.
"""


SESSION = {
    "application_name": "paydesk",
    "timezone": "UTC",
    # Every statement finds its rows by key, whatever the values: planning each call anew costs more than running it.
    "plan_cache_mode": "force_generic_plan",
    # Between two statements of a transaction nobody waits for a client or a bank: who does lets go of what it holds.
    "idle_in_transaction_session_timeout": "60s",
}
"""What every session is set to."""


@asynccontextmanager
async def connected(url: str, *, most: int = 16, least: int = 1) -> AsyncIterator[Database]:
    """Open a pool of at most `most` connections for the length of a block.

    `url` is a postgresql:// address; with `least` 0 the first connection is made when it is first needed.
    Raises: one of AWAY if the server can't be reached.
    """
    async with asyncpg.create_pool(
        url,
        min_size=least,
        max_size=most,
        command_timeout=60,
        server_settings=SESSION,
        reset=_keep_session,
    ) as pool:
        yield pool


async def _keep_session(_connection: object) -> None:
    """Save the round trip that cleans up a returned connection's session: no statement of ours changes one.

    A transaction left open is rolled back all the same.
    """
