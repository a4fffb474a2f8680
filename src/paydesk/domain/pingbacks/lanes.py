"""One lane per endpoint: its pingbacks queue there, and only so many are under way at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from paydesk.domain.pingbacks.claiming import Claimed, Endpoint, Load

_QUICK_SECONDS = 0.25
_QUEUE_FACTOR = 3

Deliver = Callable[[Claimed], Awaitable[float]]
"""Sends one pingback and returns how long the endpoint took, in seconds."""


class Lane:
    """Sends to one endpoint, at most `width` at once; a quick endpoint may also have a queue in hand."""

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
        """How many more may be taken: a slow endpoint gets only what can be sent at once, while the lease is young."""
        return (self.width * (1 + _QUEUE_FACTOR) if self.is_quick else self.width) - self.load


class Lanes:
    """All lanes of a sender; `hungry` is set when one runs out of what it has while the database has more for it."""

    def __init__(self, width: int, deliver: Deliver) -> None:
        self._width = width
        self._deliver = deliver
        self._lanes: dict[Endpoint, Lane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self.hungry = asyncio.Event()

    @property
    def loads(self) -> list[Load]:
        """What is in hand, endpoint by endpoint."""
        return [Load(endpoint, lane.load, lane.room) for endpoint, lane in self._lanes.items()]

    def add(self, claimed: Iterable[Claimed], asked: Iterable[Load]) -> None:
        """Queue what was claimed and set out to send it; `asked` are the loads that the claim was made with.

        An endpoint for which as much came as there was room for has more in the database.
        """
        room = {load.endpoint: load.room for load in asked}
        for one in claimed:
            endpoint = (one.name[0], one.name[1], one.url)
            lane = self._lanes.setdefault(endpoint, Lane(self._width))
            lane.queue.append(one)
            room[endpoint] = room.get(endpoint, self._width) - 1
            if lane.under_way < self._width:
                lane.under_way += 1
                task = asyncio.ensure_future(self._work(endpoint, lane))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        for endpoint, lane in self._lanes.items():
            lane.has_more = room.get(endpoint, 1) <= 0

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

    async def _work(self, endpoint: Endpoint, lane: Lane) -> None:
        """Send one after the other until the lane's queue is empty."""
        try:
            while lane.queue and not self._is_stopping:
                one = lane.queue.popleft()
                if not lane.queue and lane.has_more:
                    self.hungry.set()
                lane.is_quick = await self._deliver(one) < _QUICK_SECONDS
        finally:
            lane.under_way -= 1
            if not lane.load:
                self._lanes.pop(endpoint, None)
