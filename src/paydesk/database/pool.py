"""The connection pool, in which requests wait briefly, and which errors mean
that the database is away for a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import asyncpg

from paydesk.database.durability import ConfirmedConnection, Unconfirmed
from paydesk.database.lending import LendingPool
from paydesk.database.metrics import watch_pool
from paydesk.database.servers import Servers, takes_writes
from paydesk.database.statements import Connection
from paydesk.database.tls import database_tls
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

STATEMENTS = 50_000
"""How many a connection runs before it is replaced by a new one."""

UNUSED = 300.0
"""Seconds that a connection more than the least lies in the pool until it is closed."""

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
    async with LendingPool(
        url,
        ssl=database_tls(url),
        connection_class=ConfirmedConnection,
        record_class=asyncpg.Record,
        min_size=least,
        max_size=most,
        max_queries=STATEMENTS,
        max_inactive_connection_lifetime=UNUSED,
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
    What is in good order is not asked for here (lending.py).
    """
    if connection.is_unconfirmed or not takes_writes(connection):
        connection.terminate()
    connection.is_settled, connection.is_marked = True, False
