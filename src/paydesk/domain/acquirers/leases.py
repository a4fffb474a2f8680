"""Who reads what an acquirer's account tells: one worker at a time, under a lease in a table's row.

A lease is known by the time that it was given until, and is somebody's until another takes it,
even where that time is past. Whoever writes proves first that it is still theirs, in the
transaction that writes: it locks the lease's row, so that nobody takes the lease over, or the
account elsewhere, before what is written stands. No such transaction is open while an acquirer is
asked: before a call it is proved by itself (`keep`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias, TypeVar

from paydesk.core.errors import Unavailable
from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import Connection

_Answer = TypeVar("_Answer")

Within: TypeAlias = Callable[[], AbstractAsyncContextManager[Connection]]
"""What opens a transaction in which it may be written what was read; it raises if it may not."""


class ReadByAnother(Unavailable):
    """Whoever read what an account tells took longer than their lease: another worker reads it by
    now, or another cell, to which it went; nothing more is written.
    """

    def __init__(self, acquirer: str) -> None:
        """Of which account."""
        super().__init__(f"{acquirer} is read by another worker, or another cell, by now")


class Reader(Protocol):
    """Whoever reads what an account tells, and writes of it."""

    async def keep(self) -> None:
        """Stay the one who reads this, for a while more. Raises: ReadByAnother."""

    def holding(self) -> AbstractAsyncContextManager[Connection]:
        """A transaction of whoever reads this, who stays it for a while more.

        Raises: ReadByAnother.
        """


@dataclass(slots=True)
class Lease:
    """The lease of a worker on what an account tells, which is `held` until then.

    `hold` is the statement that proves and renews it: a table cannot be a statement's parameter,
    so each that has leases has its own, of the same words.
    """

    database: Database
    acquirer: str
    hold: Callable[..., Awaitable[datetime | None]]
    lasts: timedelta
    held: datetime

    async def keep(self) -> None:
        """Stay the one who reads this, for a while more. Raises: ReadByAnother."""
        self.held = await self._proven(self.database)

    async def kept_until(self, answer: Awaitable[_Answer]) -> _Answer:
        """Wait for an answer, and stay the one who reads this for as long as it takes.

        Raises: ReadByAnother, and what the asking does.
        """
        asked = asyncio.ensure_future(answer)
        try:
            while not (await asyncio.wait([asked], timeout=self.lasts.total_seconds() / 3))[0]:
                await self.keep()
        finally:
            asked.cancel()
        return await asked

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[Connection]:
        """A transaction of whoever reads this, who stays it for a while more.

        Raises: ReadByAnother.
        """
        async with self.database.acquire() as connection:
            async with connection.transaction():
                until = await self._proven(connection)
                yield connection
            self.held = until

    async def _proven(self, connection: Connection) -> datetime:
        until = await self.hold(connection, acquirer=self.acquirer, held=self.held, lease=self.lasts)
        if until is None:
            raise ReadByAnother(self.acquirer)
        return until


@dataclass(frozen=True, slots=True)
class Unleased:
    """Whoever reads beside the one who has the lease, because a person wants it now."""

    database: Database

    async def keep(self) -> None:
        """Nobody takes it from them."""

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[Connection]:
        """A transaction."""
        async with self.database.acquire() as connection, connection.transaction():
            yield connection


async def why_not(work: Awaitable[None]) -> Exception | None:
    """What went wrong in some work of a reader, whose next is done all the same. Raises: what says
    that nothing more can be written here.
    """
    try:
        await work
    except (*AWAY, ReadByAnother):
        raise
    except Exception as error:
        return error
    return None
