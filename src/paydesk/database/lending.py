"""A pool that lends what was given back in good order again at once, without a task, a timer
or a time limit; all else goes the way of the driver's pool, which it stands in front of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import asyncpg

from paydesk.database.durability import ConfirmedConnection
from paydesk.database.servers import takes_writes
from paydesk.database.waiting import NoConnection, current

REST = 30.0
"""Seconds after which a connection that nobody wanted goes back to the driver's pool, which closes
it in its time; at most twice that."""

LOANS = 1000
"""How often a connection is lent before the driver's pool sees it again, which counts statements
and replaces what has run too many."""


class Acquired(Protocol):
    """A connection that is waited for, by `await` or for a block."""

    def __await__(self) -> Generator[object, None, ConfirmedConnection]:
        """The connection, which whoever waits for it gives back."""

    async def __aenter__(self) -> ConfirmedConnection:
        """The connection."""

    async def __aexit__(self, *error: object) -> None:
        """Give it back."""


@dataclass(slots=True, eq=False)
class _Held:
    """A connection that the driver's pool has given out, and that is lent from here."""

    connection: ConfirmedConnection
    of_driver: Any
    """What the driver's pool gave out, and takes back."""
    pool: LendingPool
    era: int
    timeout: float | None = None
    """Seconds for giving it back, from who has it now."""
    loans: int = 0
    begun: int = 0
    """How many transactions were begun on it by `transaction()`, and not ended by it."""


class _GivenBack:
    """What is left of a connection to whoever has given it back: it may be somebody else's."""

    def __getattr__(self, name: str) -> object:
        raise asyncpg.InterfaceError(f"cannot call {name}(): the connection was given back to its pool")


_GIVEN_BACK: Any = _GivenBack()


class _Transaction:
    """A transaction as the driver's, which holds the connection itself: it begins nothing on one
    that was given back, and one that it has not ended is not kept (the driver still counts it).
    """

    __slots__ = ("_held", "_lent", "_of_driver", "_options")

    def __init__(self, lent: LentConnection, held: _Held | None, options: dict[str, Any]) -> None:
        self._lent, self._held, self._options = lent, held, options
        self._of_driver: Any = None

    async def __aenter__(self) -> None:
        await self._driver().__aenter__()
        self._count(1)

    async def __aexit__(self, *error: object) -> None:
        await self._driver().__aexit__(*error)
        self._count(-1)

    async def start(self) -> None:
        """As the driver's."""
        await self._driver().start()
        self._count(1)

    async def commit(self) -> None:
        """As the driver's."""
        await self._driver().commit()
        self._count(-1)

    async def rollback(self) -> None:
        """As the driver's."""
        await self._driver().rollback()
        self._count(-1)

    def _driver(self) -> Any:
        if self._of_driver is None:
            self._of_driver = self._lent.itself().transaction(**self._options)
        return self._of_driver

    def _count(self, more: int) -> None:
        if self._held is not None:
            self._held.begun += more


class LentConnection:
    """A connection for as long as it is lent; used like the driver's."""

    __slots__ = ("_connection", "_held")

    def __init__(self, held: _Held) -> None:
        self._held: _Held | None = held
        self._connection = held.connection

    def execute(self, *args: Any, **options: Any) -> Any:
        """As the driver's."""
        return self._connection.execute(*args, **options)

    def executemany(self, *args: Any, **options: Any) -> Any:
        """As the driver's."""
        return self._connection.executemany(*args, **options)

    def fetch(self, *args: Any, **options: Any) -> Any:
        """As the driver's."""
        return self._connection.fetch(*args, **options)

    def fetchrow(self, *args: Any, **options: Any) -> Any:
        """As the driver's."""
        return self._connection.fetchrow(*args, **options)

    def fetchval(self, *args: Any, **options: Any) -> Any:
        """As the driver's."""
        return self._connection.fetchval(*args, **options)

    def transaction(self, **options: Any) -> Any:
        """As the driver's."""
        return _Transaction(self, self._held, options)

    def itself(self) -> ConfirmedConnection:
        """The connection that is lent."""
        return self._connection

    def __getattr__(self, name: str) -> Any:
        """As the driver's; its own pool then takes off what that may have left
        (listeners, statements that were prepared, a copy).
        """
        found = getattr(self._connection, name)
        self._connection.is_marked = True
        return found

    def belongs_to(self, pool: LendingPool) -> bool:
        """Whether it was lent by this pool, or was given back."""
        return self._held is None or self._held.pool is pool

    def taken_back(self) -> _Held | None:
        """Take the connection away from whoever has this; None the second time."""
        held, self._held = self._held, None
        self._connection = _GIVEN_BACK
        return held


class _Loan:
    """A connection that is waited for, by `await` or for a block."""

    __slots__ = ("_lent", "_pool", "_timeout")

    def __init__(self, pool: LendingPool, timeout: float | None) -> None:
        self._pool = pool
        self._timeout = timeout
        self._lent: Any = None

    def __await__(self) -> Generator[object, None, ConfirmedConnection]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> ConfirmedConnection:
        if self._lent is not None:
            raise asyncpg.InterfaceError("a connection was already lent for this")
        held = self._pool.taken() or await self._pool.waited_for(self._timeout)
        held.timeout = self._timeout
        waiting = current()
        if waiting is not None:
            waiting.served = True
        self._lent = LentConnection(held)
        connection: ConfirmedConnection = self._lent
        return connection

    async def __aexit__(self, *error: object) -> None:
        held = self._lent.taken_back()
        if held is not None and (error[0] is not None or not self._pool.keeps(held)):
            await self._pool.give_back(held)


class LendingPool(asyncpg.Pool):  # type: ignore[misc]
    """A pool of ConfirmedConnections, the last that was given back first.

    A request waits briefly for its first connection (waiting.py), all others as long as it takes.
    While anybody waits, in the driver's queue, nothing is kept from it.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """As the driver's."""
        super().__init__(*args, **options)
        self._kept: list[_Held] = []
        self._rested = 0
        """How many of the first that are kept nobody took since the timer last rang."""
        self._rest: asyncio.TimerHandle | None = None
        self._asking = 0
        """How many wait for the driver's pool."""
        self._era = 0
        self._returning: set[asyncio.Task[None]] = set()

    def acquire(self, *, timeout: float | None = None) -> Acquired:
        """A connection, by `await` or for a block. Raises: NoConnection."""
        return _Loan(self, timeout)

    async def release(self, connection: Any, *, timeout: float | None = None) -> None:
        """Take a connection back; a second time does nothing."""
        if not isinstance(connection, LentConnection) or not connection.belongs_to(self):
            raise asyncpg.InterfaceError(f"{connection!r} is not lent by this pool")
        held = connection.taken_back()
        if held is not None and not self.keeps(held):
            await self.give_back(held, timeout)

    def taken(self) -> _Held | None:
        """A connection that can be lent at once."""
        kept = self._kept
        while kept:
            held = kept.pop()
            if len(kept) < self._rested:
                self._rested = len(kept)
            if not held.connection.is_closed():
                return held
            self._return([held])
        return None

    async def waited_for(self, timeout: float | None) -> _Held:
        """A connection of the driver's pool. Raises: NoConnection."""
        waiting, era = current(), self._era
        # Not the pool's own time-out: that holds for giving the connection back, too, when a write
        # has been done.
        limit = asyncio.timeout(None if waiting is None else waiting.patience)
        self._asking += 1
        try:
            async with limit:
                of_driver = await super().acquire(timeout=timeout)
        except TimeoutError as error:
            if limit.expired():
                raise NoConnection from error
            raise
        finally:
            self._asking -= 1
        return _Held(of_driver.itself(), of_driver, self, era)

    def keeps(self, held: _Held) -> bool:
        """Keep a connection that was given back, if nobody waits for it and it is in good order."""
        if self._asking or held.timeout is not None or held.era != self._era or self.is_closing():
            return False
        held.loans += 1
        if held.loans >= LOANS or held.begun or not _in_good_order(held.connection):
            return False
        self._kept.append(held)
        if self._rest is None:
            self._rest = asyncio.get_running_loop().call_later(REST, self._return_rested)
        return True

    async def give_back(self, held: _Held, timeout: float | None = None) -> None:
        """Give a connection to the driver's pool, which waits for what is under way on it,
        and ends what is open.
        """
        await super().release(held.of_driver, timeout=held.timeout if timeout is None else timeout)

    def get_idle_size(self) -> int:
        """How many connections nobody uses; may be asked by a thread beside the loop."""
        kept = sum(not held.connection.is_closed() for held in list(self._kept))
        return int(super().get_idle_size()) + kept

    async def close(self) -> None:
        """Wait until all connections are given back, and close them."""
        self._return_all()
        await super().close()

    def terminate(self) -> None:
        """Drop all connections at once."""
        # The driver's pool still counts those that are kept among its own.
        self._forget()
        super().terminate()

    async def expire_connections(self) -> None:
        """Replace all connections of today before they are lent again."""
        self._era += 1
        await super().expire_connections()
        self._return_all()

    def _return_rested(self) -> None:
        """Give back what nobody wanted for a while."""
        rested = self._kept[: self._rested]
        del self._kept[: self._rested]
        self._rested, self._rest = len(self._kept), None
        if self._kept:
            self._rest = asyncio.get_running_loop().call_later(REST, self._return_rested)
        self._return(rested)

    def _return_all(self) -> None:
        self._return(self._forget())

    def _forget(self) -> list[_Held]:
        """What was kept, and is no longer."""
        if self._rest is not None:
            self._rest.cancel()
        forgotten, self._kept, self._rested, self._rest = self._kept, [], 0, None
        return forgotten

    def _return(self, unwanted: Sequence[_Held]) -> None:
        """Give connections that nobody has back to the driver's pool, beside all else."""
        for held in unwanted:
            task = asyncio.get_running_loop().create_task(self.give_back(held))
            self._returning.add(task)
            task.add_done_callback(self._note_returned)

    def _note_returned(self, task: asyncio.Task[None]) -> None:
        """A connection that broke over it was dropped, and nobody had a statement on it."""
        self._returning.discard(task)
        if not task.cancelled():
            task.exception()


def _in_good_order(connection: ConfirmedConnection) -> bool:
    """Whether whoever is lent it next finds nothing of the one before."""
    return (
        not connection.is_closed()
        and connection.is_settled
        and not connection.is_marked
        and not connection.is_in_transaction()
        and takes_writes(connection)
    )
