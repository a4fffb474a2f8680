"""A word to the senders that a pingback was written, so that they need not find it by looking.

It is said after the commit, from a connection of its own, and once for many: a `notify` within a
payment's transaction would make commits wait for one another. Nothing hangs on it: a word that is
lost, or comes too early, costs the rest until the next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context
from typing import Any

import asyncpg

from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import load_statements
from paydesk.loops.repeating import repeat

CHANNEL = "paydesk_pingbacks"

_SOON = 0.002
"""Seconds until a word is passed on: what wrote the pingback has committed by then."""

_EVERY = 0.025
"""Seconds between two words at least."""

_LOOK_SECONDS = 30.0
_PATIENCE = 5.0

queries = load_statements(__package__ or "")

_ears: list[Callable[[], None]] = []


def told() -> None:
    """Say that a pingback was written, or made due."""
    for hear in _ears:
        hear()


@contextmanager
def heard_by(hear: Callable[[], None]) -> Iterator[None]:
    """Have `hear` called for each word of this process for the length of a block."""
    _ears.append(hear)
    try:
        yield
    finally:
        _ears.remove(hear)


class Paced:
    """Calls soon after it is asked to, and once for all that ask meanwhile."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._waiting: asyncio.TimerHandle | None = None
        self._next = 0.0

    def __call__(self) -> None:
        """Ask for a call."""
        if self._waiting is None:
            loop = asyncio.get_running_loop()
            # Outside of the request that asks: what is called goes on after its end.
            self._waiting = loop.call_at(max(loop.time() + _SOON, self._next), self._go, context=Context())

    def stop(self) -> None:
        """Call no more."""
        if self._waiting is not None:
            self._waiting.cancel()

    def _go(self) -> None:
        self._waiting = None
        self._next = asyncio.get_running_loop().time() + _EVERY
        self._call()


@asynccontextmanager
async def passed_on(database: Database) -> AsyncIterator[None]:
    """Pass this process's words on to the workers for the length of a block."""
    saying = set[asyncio.Task[None]]()

    def say() -> None:
        task = asyncio.create_task(_say(database))
        saying.add(task)
        task.add_done_callback(saying.discard)

    paced = Paced(say)
    try:
        with heard_by(paced):
            yield
    finally:
        paced.stop()
        await asyncio.gather(*saying)


async def _say(database: Database) -> None:
    """Tell whoever listens; while the database is away nobody does."""
    with suppress(*AWAY, asyncpg.PostgresError):
        await queries.say_due(database)


class Listening:
    """Hears what other processes say, over a connection of its own: `words`, a pool of one.

    Behind a pooler that lends connections by the transaction nothing is heard.
    """

    def __init__(self, words: Database | None, hear: Callable[[], None]) -> None:
        self._words = words
        self._hear = hear
        self._connection: Any = None
        self._ended = asyncio.Event()
        self.hears = False
        """Whether words would come, as far as is known."""

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until told to stop; a connection that is lost is made anew."""
        try:
            await repeat("words of pingbacks", self.look, stop, rest=_LOOK_SECONDS, wake=self._ended)
        finally:
            await self._let_go()

    async def look(self) -> None:
        """See that somebody listens. Raises: what the database raises when it is away."""
        if self._words is None:
            return
        try:
            if not self.hears:
                await self._listen(self._words)
            await self._connection.execute("select 1", timeout=_PATIENCE)
        except BaseException:
            await self._let_go()
            raise

    async def _listen(self, words: Database) -> None:
        """Begin to listen; what was said meanwhile may have been missed."""
        await self._let_go()
        self._connection = await words.acquire(timeout=_PATIENCE)
        self._connection.add_termination_listener(lambda _: self._lose())
        await self._connection.add_listener(CHANNEL, lambda *_: self._hear())
        self.hears = True
        self._hear()

    def _lose(self) -> None:
        """Nothing is heard any more, until the look that this ends the rest before."""
        self.hears = False
        self._ended.set()

    async def _let_go(self) -> None:
        """Close the connection."""
        connection, self._connection, self.hears = self._connection, None, False
        if connection is not None and self._words is not None:
            with suppress(*AWAY):
                connection.terminate()
            with suppress(*AWAY):
                await self._words.release(connection)
