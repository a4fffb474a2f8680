"""The connection pool, in which requests wait briefly, and which errors mean that the database is away for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Generator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import asyncpg

from paydesk.database.metrics import watch_pool
from paydesk.database.servers import Servers, takes_writes
from paydesk.database.tls import database_tls
from paydesk.database.waiting import NoConnection, Waiting, current

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
    asyncpg.ReadOnlySQLTransactionError,
)
"""Raised when the server restarts, is full, can't be reached or takes no writes any more: what was just sent may be
done or not (see surely.py).

The driver calls it an internal error (InternalClientError) when the server's last words reach a connection just as it
is used: it is in no state to take the statement.
"""


SESSION = {
    "application_name": "paydesk",
    "timezone": "UTC",
    # Every statement finds its rows by key, whatever the values: planning each call anew costs more than running it.
    "plan_cache_mode": "force_generic_plan",
    # Between two statements of a transaction nobody waits for a client or a bank: who does lets go of what it holds.
    "idle_in_transaction_session_timeout": "1min",
}
"""What every session is set to."""


_Got = TypeVar("_Got")


class _Acquiring:
    """Waits for a connection as long as its request may; used like a plain pool's, by `await` or `async with`."""

    def __init__(self, acquiring: Any, waiting: Waiting) -> None:
        self._acquiring = acquiring
        self._waiting = waiting

    def __await__(self) -> Generator[Any, None, Any]:
        return self._wait(self._acquiring).__await__()

    async def __aenter__(self) -> Any:
        return await self._wait(self._acquiring.__aenter__())

    async def __aexit__(self, *error: Any) -> None:
        await self._acquiring.__aexit__(*error)

    async def _wait(self, connection: Awaitable[_Got]) -> _Got:
        # Not the pool's own time-out: that holds for giving the connection back, too, when a write has been done.
        limit = asyncio.timeout(self._waiting.patience)
        try:
            async with limit:
                got = await connection
        except TimeoutError as error:
            if limit.expired():
                raise NoConnection from error
            raise
        self._waiting.served = True
        return got


class _RequestsPool(asyncpg.Pool):  # type: ignore[misc]
    """A pool in which a request waits briefly for its first connection (waiting.py), all others as long as it takes."""

    def acquire(self, *, timeout: float | None = None) -> Any:
        """A connection, by `await` or for a block. Raises: NoConnection."""
        acquiring, waiting = super().acquire(timeout=timeout), current()
        return acquiring if waiting is None else _Acquiring(acquiring, waiting)


@asynccontextmanager
async def connected(url: str, *, most: int = 16, least: int = 1, name: str = "") -> AsyncIterator[Database]:
    """Open a pool of at most `most` connections for the length of a block.

    `url` is a postgresql:// address; with `least` 0 the first connection is made when it is first needed. A pool with
    a name is measured under it.
    Of several servers that it names the one that takes writes is spoken to.
    Raises: one of AWAY if no such server can be reached, SetupError if the address lets anybody be the server.
    """
    async with _RequestsPool(
        url,
        ssl=database_tls(url),
        connection_class=asyncpg.Connection,
        record_class=asyncpg.Record,
        min_size=least,
        max_size=most,
        max_queries=50000,
        max_inactive_connection_lifetime=300.0,
        loop=None,
        command_timeout=60,
        server_settings=SESSION,
        reset=_keep_session,
        connect=Servers(url).connect,
    ) as pool:
        if name:
            watch_pool(pool, name)
        yield pool


async def _keep_session(connection: asyncpg.Connection) -> None:
    """Save the round trip that cleans up a returned connection's session: no statement of ours changes one.

    A transaction left open is rolled back all the same. A server that takes no writes any more is left.
    """
    if not takes_writes(connection):
        connection.terminate()
