"""Whether another cell gives any sign of life: one that is frozen takes connections as ever, and
answers nothing.

A customer's request says nothing of that by itself: a bank may take its time, and so may an export.
So no request is cut off for being slow. While one waits and nothing at all is heard from the cell,
this process asks for its health page, which costs it nothing, one question at a time; and only a
cell that leaves these unanswered is taken as silent, until it answers one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog
from aiohttp import ClientConnectorError, ClientError, ClientResponse

QUIET: Final = 3.0
"""Seconds without an answer of any kind after which somebody who waits has the health page asked
for."""

MISSED: Final = 2
"""Health pages in a row without an answer after which a cell is taken as silent."""

PAUSE: Final = 1.0
"""Seconds between health pages of a silent cell that somebody wants something of."""

STALE: Final = 10.0
"""Seconds after its last health page for which a silent cell is taken as that without a question:
who comes later waits for one, or would be refused by a cell that has long answered again."""

GIVEN_UP: Final = 10.0
"""Seconds for which what may have written waits on at a silent cell: one that was stopped for
moments, as a machine is that moves, answers it still."""

log = structlog.get_logger()

T = TypeVar("T")


class Pulse:
    """The signs of life of one cell; `look` asks for its health page, and raises if there is none
    in time.
    """

    def __init__(self, cell: int, look: Callable[[], Awaitable[None]], clock: Callable[[], float] = time.monotonic):
        self._cell = cell
        self._look = look
        self._clock = clock
        self._heard_at = self._looked_at = float("-inf")
        self._missed = 0
        self._silent_since: float | None = None
        self._looking: asyncio.Task[None] | None = None

    @property
    def is_silent(self) -> bool:
        """Whether it leaves everything unanswered; who asks it now would only wait."""
        return self._silent_since is not None

    async def stays_silent(self) -> bool:
        """Whether it is silent still; whoever asks has it looked for."""
        if not self.is_silent:
            return False
        looking, was_looked_at = self.look(), self._looked_at
        if looking is not None and self._clock() - was_looked_at >= STALE:
            await asyncio.wait({looking})
        return self.is_silent

    def heard(self) -> None:
        """It has answered something, or its machine has, that it is not there: that is no silence,
        since whoever waits for an answer of it hears of its end.
        """
        if self.is_silent:
            log.info("another cell is not silent any more", cell=self._cell)
        self._heard_at, self._missed, self._silent_since = self._clock(), 0, None

    def look(self) -> asyncio.Task[None] | None:
        """Have its health page asked for, if it was not heard just now: what is waited for then,
        which is done once it has answered, or has not.
        """
        now = self._clock()
        if self._looking is None and now - self._heard_at >= QUIET and now - self._looked_at >= PAUSE:
            self._looking = asyncio.create_task(self._look_once())
        return self._looking

    async def answered(self, asking: asyncio.Future[T], *, reads: bool) -> T:
        """The answer to a request or a part of it, however long it takes, unless the cell is
        silent: what only `reads` waits no longer then.

        Raises: TimeoutError, and what the request raises.
        """
        try:
            await asyncio.wait({asking}, timeout=QUIET)
            while not asking.done():
                looking = self.look()
                waited: set[asyncio.Future[T] | asyncio.Future[None]] = {asking}
                if looking is not None:
                    waited.add(looking)
                await asyncio.wait(waited, timeout=PAUSE, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done() and (self.is_silent if reads else self._is_given_up):
                    raise TimeoutError("it is silent")
            answer = asking.result()
        except BaseException:
            await _leave(asking)
            raise
        self.heard()
        return answer

    async def end(self) -> None:
        """Leave off looking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    @property
    def _is_given_up(self) -> bool:
        return self._silent_since is not None and self._clock() - self._silent_since >= GIVEN_UP

    async def _look_once(self) -> None:
        try:
            await self._look()
        except (ClientError, OSError) as error:
            if isinstance(error, ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError):
                self.heard()
                return
            self._missed += 1
            if self._missed >= MISSED and not self.is_silent:
                self._silent_since = self._clock()
                log.warning("another cell is silent", cell=self._cell, why=repr(error))
        else:
            self.heard()
        finally:
            self._looking, self._looked_at = None, self._clock()


async def _leave(asking: asyncio.Future[T]) -> None:
    """End a request for whose answer nobody waits any more."""
    asking.cancel()
    (left,) = await asyncio.gather(asking, return_exceptions=True)
    if isinstance(left, ClientResponse):
        left.close()
