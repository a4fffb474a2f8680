"""Connections that wait for another request to the same place, for the same merchant and mode."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Hashable
from dataclasses import dataclass

from paydesk.adapters.outbound.connection import Connection

_IDLE_SECONDS = 2.0
"""How long an unused connection is kept: less than servers allow (5 s is common),
so that they seldom close first."""

_LONGEST_LIFE = 60.0
"""Seconds after which a connection is not kept any more, however busy it is:
so that a server that moves is followed."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many unused connections are kept, `in_all` and `each`: for one merchant in one mode."""

    in_all: int = 768
    each: int = 32


Place = tuple[Hashable, str, str, int]
"""What a connection is kept for: whose it is, and scheme, host and port."""


class KeptConnections:
    """Unused connections by place, the oldest of all first to go.

    What is used again at once comes and goes with each request: places that have none left are
    forgotten with the next sweep.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._idle: dict[Connection, tuple[Place, float]] = {}
        self._at: dict[Place, list[Connection]] = {}
        self._of: dict[Hashable, int] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._idle)

    def take(self, place: Place) -> Connection | None:
        """The connection to this place that was used last and is still good, if there is one."""
        waiting = self._at.get(place)
        while waiting:
            connection = waiting.pop()
            _, since = self._idle.pop(connection)
            self._of[place[0]] -= 1
            if connection.is_quiet and time.monotonic() - since < _IDLE_SECONDS:
                return connection
            connection.close()
        return None

    def keep(self, place: Place, connection: Connection) -> None:
        """Have a connection wait, or close it."""
        now = time.monotonic()
        of_this = self._of.get(place[0], 0)
        if now - connection.made > _LONGEST_LIFE or of_this >= self._bounds.each:
            connection.close()
            return
        if len(self._idle) >= self._bounds.in_all:
            self._drop(next(iter(self._idle)))
        self._idle[connection] = (place, now)
        waiting = self._at.get(place)
        if waiting is None:
            waiting = self._at[place] = []
        waiting.append(connection)
        self._of[place[0]] = self._of.get(place[0], 0) + 1
        if self._sweeping is None:
            self._sweep_later()

    def close(self) -> None:
        """Close them all."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        for connection in list(self._idle):
            self._drop(connection)

    def _sweep_later(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Close those that nobody has used for so long, or that the server has closed."""
        self._sweeping = None
        oldest = time.monotonic() - _IDLE_SECONDS
        for connection, (_, since) in list(self._idle.items()):
            if since <= oldest or not connection.is_quiet:
                self._drop(connection)
        self._at = {place: waiting for place, waiting in self._at.items() if waiting}
        self._of = {whose: number for whose, number in self._of.items() if number}
        if self._idle:
            self._sweep_later()

    def _drop(self, connection: Connection) -> None:
        """Keep it no longer."""
        place, _ = self._idle.pop(connection)
        self._at[place].remove(connection)
        self._of[place[0]] -= 1
        connection.close()
