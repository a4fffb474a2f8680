"""The open connections of a process: how many there are, what each is doing, and since when."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from enum import IntEnum, auto
from functools import lru_cache
from ipaddress import ip_address
from typing import Protocol

import structlog

from paydesk.web.connections.limits import (
    ADDRESS_FULL,
    ALL_FULL,
    LINGER_SECONDS,
    OPEN,
    ConnectionLimits,
    ConnectionRefusal,
    Network,
)
from paydesk.web.visits import plain_address

log = structlog.get_logger()

_TELL_EVERY = 60.0
"""Seconds between two lines about connections that are refused:
a flood of them is none of the log."""

_LOOK_AGAIN = 60.0
"""Seconds after which a connection that is being answered is looked at;
answering may take as long as it does."""


@lru_cache(1024)
def _client(address: str, unlimited: tuple[Network, ...]) -> str | None:
    """Who a connection counts for; None if only the sum counts."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    return None if any(parsed in network for network in unlimited) else plain_address(address)


class Phase(IntEnum):
    """What a connection is doing; each has its own time."""

    IDLE = auto()
    """Between requests; uvicorn itself ends it after a while."""
    HEAD = auto()
    """A head is due, or a part of it is there."""
    BODY = auto()
    ANSWER = auto()
    UNREAD = auto()
    """The client leaves its answer unread; whoever writes it waits."""
    CLOSING = auto()
    """All is written, and not yet fetched."""
    REFUSED = auto()


_STALE = 0.5
"""Seconds after which a body on its way, or an answer on its way back, makes room:
whoever holds thousands is older."""

_DISPENSABLE = {
    Phase.REFUSED: 0.0,
    Phase.IDLE: 0.0,
    Phase.HEAD: 0.0,
    Phase.BODY: _STALE,
    Phase.UNREAD: _STALE,
    Phase.CLOSING: _STALE,
}
"""What is ended for a new connection when there are too many, and how old it is at least:
never one whose request is being answered."""


class CountedConnection(Protocol):
    """A connection, as it is known to who counts them."""

    def overdue(self, phase: Phase) -> None:
        """It has been in a phase for too long."""

    def displace(self) -> None:
        """End at once, for somebody else."""


class OpenConnections:
    """Counts the connections of a process, and tells those that take too long;
    one timer looks after all of them.

    What a phase lasts is the same for all, so the connections of each stand in the order in which
    they are due.
    """

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._lasts = {
            Phase.HEAD: limits.head_seconds,
            Phase.BODY: limits.body_seconds,
            Phase.ANSWER: _LOOK_AGAIN,
            Phase.UNREAD: limits.unread_seconds,
            Phase.CLOSING: limits.unread_seconds,
            Phase.REFUSED: LINGER_SECONDS,
        }
        self._phases: dict[Phase, dict[CountedConnection, float]] = {phase: {} for phase in Phase}
        self._phase_of: dict[CountedConnection, Phase] = {}
        self._clients: dict[CountedConnection, str] = {}
        self._of_address: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._last_told: dict[str, float] = {}
        self._pause = min(1.0, *(lasts / 4 for lasts in self._lasts.values()))

    def admit(self, connection: CountedConnection, address: str | None) -> ConnectionRefusal | None:
        """Count a new connection, which has to send a head; says why it can't stay."""
        client = _client(address or "", self.limits.unlimited)
        is_crowded = client is not None and self._of_address[client] >= self.limits.per_address
        is_full = len(self._phase_of) >= self.limits.in_all
        # Who has too many of its own takes nobody else's.
        has_no_room = is_full and (is_crowded or not self._displace_one())
        self._count(connection, client)
        if has_no_room:
            return self._told(ALL_FULL, "CONNECTIONS")
        return self._told(ADDRESS_FULL, "CONNECTIONS_PER_ADDRESS") if is_crowded else None

    def brings_others(self, address: str | None) -> bool:
        """Whether what comes from there is other people's: of a proxy, or of this machine."""
        return _client(address or "", self.limits.unlimited) is None

    def move(self, connection: CountedConnection, phase: Phase) -> None:
        """A connection does something else from now on; its time begins anew."""
        before = self._phase_of.get(connection)
        if before is None:
            return
        del self._phases[before][connection]
        self._phases[phase][connection] = self._clock()
        self._phase_of[connection] = phase

    def phase_of(self, connection: CountedConnection) -> Phase | None:
        """What a connection is doing; None if it has ended."""
        return self._phase_of.get(connection)

    def forget(self, connection: CountedConnection) -> None:
        """A connection has ended."""
        phase = self._phase_of.pop(connection, None)
        if phase is None:
            return
        del self._phases[phase][connection]
        client = self._clients.pop(connection, None)
        if client is not None:
            self._of_address[client] -= 1
            if not self._of_address[client]:
                del self._of_address[client]
        OPEN.dec()

    def look(self) -> None:
        """Tell the connections that have taken too long."""
        now = self._clock()
        for phase, lasts in self._lasts.items():
            waiting = self._phases[phase]
            due = []
            for connection, since in waiting.items():
                if now - since < lasts:
                    break
                due.append(connection)
            for connection in due:
                connection.overdue(phase)

    def _count(self, connection: CountedConnection, client: str | None) -> None:
        self._phase_of[connection] = Phase.HEAD
        self._phases[Phase.HEAD][connection] = self._clock()
        if client is not None:
            self._clients[connection] = client
            self._of_address[client] += 1
        OPEN.inc()
        if self._timer is None:
            self._look_later()

    def _displace_one(self) -> bool:
        """End the oldest connection that is dispensable."""
        now = self._clock()
        for phase, at_least in _DISPENSABLE.items():
            oldest, since = next(iter(self._phases[phase].items()), (None, now))
            if oldest is not None and now - since >= at_least:
                oldest.displace()
                self.forget(oldest)
                return True
        return False

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pause, self._look_now)

    def _look_now(self) -> None:
        self._timer = None
        try:
            self.look()
        finally:
            if self._phase_of:
                self._look_later()

    def _told(self, refusal: ConnectionRefusal, setting: str) -> ConnectionRefusal:
        """The refusal, which the operator hears of now and then."""
        now = self._clock()
        if now - self._last_told.get(refusal.why, -_TELL_EVERY) >= _TELL_EVERY:
            self._last_told[refusal.why] = now
            log.warning("connections are refused", why=refusal.why, setting=f"PAYDESK_{setting}")
        return refusal
