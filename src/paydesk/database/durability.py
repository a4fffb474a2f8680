"""Commits whose wait for a synchronous standby was broken off:
everybody sees them, and a failover forgets them.

PostgreSQL answers such a statement as done, with a warning. What breaks off: an operator, a time
limit (what takes too long is cancelled) or a server that stops. Nothing of ours takes it for done:
what became of it is not known, as after a lost answer, until a later commit has reached a standby.
"""

from __future__ import annotations

from typing import Any, TypeVar

import asyncpg
from prometheus_client import Counter

from paydesk.database.statements import Connection

UNCONFIRMED = Counter(
    "paydesk_unconfirmed_commits_total", "Commits whose wait for a synchronous standby was broken off"
)

WRITE = "select pg_logical_emit_message(true, 'paydesk', 'ready')"
"""A write without a row: a line of the write-ahead log, for which a commit waits as
for a payment's."""

_ROUTINE, _WAIT = "R", "SyncRepWaitForLSN"
"""The field of a warning that names the server's routine: the same in all languages and versions,
unlike its text."""


_Result = TypeVar("_Result")


class Unconfirmed(Exception):
    """A commit may be forgotten by a failover, and may stand: what was sent is done or not,
    as after a lost answer.
    """

    def __init__(self) -> None:
        super().__init__("the wait for a synchronous standby was broken off: a failover may forget what was committed")


class ConfirmedConnection(asyncpg.Connection):  # type: ignore[misc]
    """A connection on which no statement counts as done whose commit no standby has;
    it is dropped after one.

    Every method raises, besides what the driver raises: Unconfirmed.
    """

    is_unconfirmed = False
    """Whether a commit's wait was broken off on it, perhaps of a statement that nobody waits
    for any more."""

    is_settled = True
    """Whether all statements on it came to their end and none raised,
    since the driver's pool last saw it."""

    is_marked = False
    """Whether anything but statements and transactions was done on it since then."""

    def itself(self) -> ConfirmedConnection:
        """The connection that the driver's pool gives out behind a proxy: one is made anew for
        each use, too dear for what is lent from before it.
        """
        return self

    def _process_log_message(self, fields: dict[str, str], last_query: str) -> None:
        # Not a listener: the pool warns of those that are left, and takes them off with
        # every return.
        if fields.get(_ROUTINE) == _WAIT:
            self.is_unconfirmed = True
            UNCONFIRMED.inc()
        super()._process_log_message(fields, last_query)

    async def execute(self, *args: object, **options: object) -> object:
        """As the driver's; what ends a transaction, too."""
        settled, self.is_settled = self.is_settled, False
        return self._confirmed(await super().execute(*args, **options), settled)

    async def executemany(self, *args: object, **options: object) -> object:
        """As the driver's."""
        settled, self.is_settled = self.is_settled, False
        return self._confirmed(await super().executemany(*args, **options), settled)

    async def fetch(self, *args: object, **options: object) -> object:
        """As the driver's."""
        settled, self.is_settled = self.is_settled, False
        return self._confirmed(await super().fetch(*args, **options), settled)

    async def fetchrow(self, *args: object, **options: object) -> object:
        """As the driver's."""
        settled, self.is_settled = self.is_settled, False
        return self._confirmed(await super().fetchrow(*args, **options), settled)

    async def fetchval(self, *args: object, **options: object) -> Any:
        """As the driver's."""
        settled, self.is_settled = self.is_settled, False
        return self._confirmed(await super().fetchval(*args, **options), settled)

    def _confirmed(self, result: _Result, settled: bool) -> _Result:
        """What a statement came to; the connection is as it was before it. Raises: Unconfirmed."""
        if self.is_unconfirmed:
            self.terminate()
            raise Unconfirmed
        self.is_settled = settled
        return result


async def make_durable(connection: Connection, *, patience: float) -> None:
    """Wait until a standby has all that was visible before:
    a commit's wait covers every earlier one's.

    `patience` is in seconds. Without a synchronous standby there is nothing to wait for.

    Raises: Unconfirmed, TimeoutError, or what the database raises when it is away.
    """
    await connection.execute(WRITE, timeout=patience)
