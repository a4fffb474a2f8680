"""One lane per endpoint: its pingbacks queue there, and only so many are under way at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from paydesk.domain.pingbacks.claiming import Claimed, Endpoint, Load

_QUICK_SECONDS = 0.25
"""An endpoint that answers within this is quick."""

_QUEUE_FACTOR, _LOW_WATER_FACTOR = 7, 3
"""A quick endpoint's queue in widths of its lane: at most, and when more is claimed.
Measured: less leaves gaps."""

_MOST_REMEMBERED = 256
"""Idle endpoints of which it is remembered whether they are quick."""

Deliver = Callable[[Claimed], Awaitable[float]]
"""Sends one pingback and returns how long the endpoint took, in seconds."""


class Lane:
    """Sends to one endpoint, at most `width` at once;
    a quick endpoint may also have a queue in hand.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.queue: deque[Claimed] = deque()
        self.under_way = 0
        self.is_quick = False
        self.has_more = False

    @property
    def load(self) -> int:
        """How many are in hand."""
        return len(self.queue) + self.under_way

    @property
    def room(self) -> int:
        """How many more may be taken: a slow endpoint gets only what can be sent at once,
        while the lease is young.
        """
        return (self.width * (1 + _QUEUE_FACTOR) if self.is_quick else self.width) - self.load


class Lanes:
    """All lanes of a sender; `hungry` is set when one runs out of what it has
    while the database has more for it.
    """

    def __init__(self, width: int, deliver: Deliver) -> None:
        self._width = width
        self._deliver = deliver
        self._lanes: dict[Endpoint, Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self.hungry = asyncio.Event()

    @property
    def loads(self) -> list[Load]:
        """What is in hand, endpoint by endpoint; a quick one has it only for a moment
        and does not count.
        """
        return [Load(endpoint, 0 if lane.is_quick else lane.load, lane.room) for endpoint, lane in self._lanes.items()]

    def add(self, claimed: Iterable[Claimed], asked: Iterable[Load]) -> None:
        """Queue what was claimed and set out to send it;
        `asked` are the loads that the claim was made with.

        An endpoint for which something came, or for which there was no room, may have more in
        the database.
        """
        may_have_more = {load.endpoint for load in asked if load.room <= 0}
        for one in claimed:
            endpoint = (one.name[0], one.name[1], one.url)
            may_have_more.add(endpoint)
            lane = self._lanes.setdefault(endpoint, Lane(self._width))
            lane.queue.append(one)
            if lane.under_way < self._width:
                lane.under_way += 1
                task = asyncio.ensure_future(self._work(lane))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        self._forget_idle()
        self.hungry.clear()
        for endpoint, lane in self._lanes.items():
            lane.has_more = endpoint in may_have_more
            self._say_if_hungry(lane)

    async def idle(self) -> None:
        """Wait until everything in hand was sent."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def stop(self, grace: float) -> None:
        """Start nothing more; give what is under way `grace` seconds, then let go of it."""
        self._is_stopping = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, lane: Lane) -> None:
        """Send one after the other until the lane's queue is empty."""
        try:
            while lane.queue and not self._is_stopping:
                one = lane.queue.popleft()
                self._say_if_hungry(lane)
                lane.is_quick = await self._deliver(one) < _QUICK_SECONDS
        finally:
            lane.under_way -= 1
            self._say_if_hungry(lane)

    def _forget_idle(self) -> None:
        """Keep some idle lanes, the latest, for what is known of their endpoints."""
        idle = [endpoint for endpoint, lane in self._lanes.items() if not lane.load]
        for endpoint in idle[: max(len(idle) - _MOST_REMEMBERED, 0)]:
            del self._lanes[endpoint]

    def _say_if_hungry(self, lane: Lane) -> None:
        """Have more claimed before the lane runs dry."""
        if lane.has_more and len(lane.queue) <= lane.width * _LOW_WATER_FACTOR and lane.room > 0:
            self.hungry.set()
