"""The connection pool, in which requests wait briefly, and which errors mean
that the database is away for a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import Protocol, TypeAlias, TypeVar

import asyncpg

from paydesk.database.durability import ConfirmedConnection, Unconfirmed
from paydesk.database.metrics import watch_pool
from paydesk.database.servers import Servers, takes_writes
from paydesk.database.statements import Connection
from paydesk.database.tls import database_tls
from paydesk.database.waiting import NoConnection, Waiting, current
from paydesk.loops.repeating import take_for_outage

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
    asyncpg.InvalidCachedStatementError,
    Unconfirmed,
)
"""Raised when the server restarts, is full, can't be reached, takes no writes any more, or can't
say whether a standby has what was committed: what was just sent may be done or not (see surely.py).

The driver calls it an internal error (InternalClientError) when the server's last words reach a
connection just as it is used: it is in no state to take the statement. In a transaction a statement
whose result a step of the schema has changed since it was prepared is refused once
(InvalidCachedStatementError): the next time it is prepared anew.
"""


def is_away(error: BaseException) -> bool:
    """Whether an error says that the database is away, and not that it was asked something
    that makes no sense.
    """
    return isinstance(error, AWAY) and not isinstance(error, ValueError)


take_for_outage(is_away)

PATIENCE = 60.0
"""Seconds that a statement may take."""

SESSION = {
    "application_name": "paydesk",
    "timezone": "UTC",
    # Every statement finds its rows by key, whatever the values: planning each call anew costs more
    # than running it.
    "plan_cache_mode": "force_generic_plan",
    # Between two statements of a transaction nobody waits for a client or a bank: who does lets go
    # of what it holds.
    "idle_in_transaction_session_timeout": "1min",
}
"""What every session is set to."""


_Got = TypeVar("_Got")


class Acquired(Protocol):
    """A connection that is waited for, by `await` or for a block."""

    def __await__(self) -> Generator[object, None, ConfirmedConnection]:
        """The connection, which whoever waits for it gives back."""

    async def __aenter__(self) -> ConfirmedConnection:
        """The connection."""

    async def __aexit__(self, *error: object) -> None:
        """Give it back."""


class _Acquiring:
    """Waits for a connection as long as its request may;
    used like a plain pool's, by `await` or `async with`.
    """

    def __init__(self, acquiring: Acquired, waiting: Waiting) -> None:
        self._acquiring = acquiring
        self._waiting = waiting

    def __await__(self) -> Generator[object, None, ConfirmedConnection]:
        return self._wait(self._acquiring).__await__()

    async def __aenter__(self) -> ConfirmedConnection:
        return await self._wait(self._acquiring.__aenter__())

    async def __aexit__(self, *error: object) -> None:
        await self._acquiring.__aexit__(*error)

    async def _wait(self, connection: Awaitable[_Got]) -> _Got:
        # Not the pool's own time-out: that holds for giving the connection back, too, when a write
        # has been done.
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
    """A pool in which a request waits briefly for its first connection (waiting.py),
    all others as long as it takes.
    """

    def acquire(self, *, timeout: float | None = None) -> Acquired:
        """A connection, by `await` or for a block. Raises: NoConnection."""
        acquiring: Acquired = super().acquire(timeout=timeout)
        waiting = current()
        return acquiring if waiting is None else _Acquiring(acquiring, waiting)


@asynccontextmanager
async def connected(
    url: str,
    *,
    most: int = 16,
    least: int = 1,
    name: str = "",
    patience: float = PATIENCE,
    meet: Callable[[Connection], Awaitable[None]] | None = None,
) -> AsyncIterator[Database]:
    """Open a pool of at most `most` connections for the length of a block.

    `url` is a postgresql:// address; with `least` 0 the first connection is made when it is first
    needed. A pool with a name is measured under it, and the server's list of sessions shows it. A
    statement that takes longer than `patience`, in seconds, is cancelled. `meet` gets each new
    connection before anybody works with it. Of several servers that it names the one that takes
    writes is spoken to.
    Raises: one of AWAY if no such server can be reached, SetupError if the address lets anybody be
        the server.
    """
    async with _RequestsPool(
        url,
        ssl=database_tls(url),
        connection_class=ConfirmedConnection,
        record_class=asyncpg.Record,
        min_size=least,
        max_size=most,
        max_queries=50000,
        max_inactive_connection_lifetime=300.0,
        loop=None,
        init=meet,
        command_timeout=patience,
        server_settings={**SESSION, "application_name": f"paydesk {name}".rstrip()},
        reset=_keep_session,
        connect=Servers(url).connect,
    ) as pool:
        if name:
            watch_pool(pool, name)
        yield pool


async def _keep_session(connection: ConfirmedConnection) -> None:
    """Save the round trip that cleans up a returned connection's session:
    no statement of ours changes one.

    A transaction left open is rolled back all the same. A server that takes no writes any more is
    left, as is one that broke off a commit's wait after nobody waited for its answer any more.
    """
    if connection.is_unconfirmed or not takes_writes(connection):
        connection.terminate()
