"""How many renewals are claimed at a time: more for as long as the bank answers at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

GROWTH = 4
"""How many times its first size a lane's batch may come to: then a statement costs as much
for each row as it ever will."""

FAST = 1.0
"""Seconds within which a batch is answered by a bank that nobody has to wait for."""

ROUNDS = 20
"""How many calls may have to come one after another until all that is claimed was put to the bank.

With one that takes 2 s from now on they are over in 40, well within the minute of a key
(`KEY_LIFETIME`).
"""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a billing run works: `batch` subscriptions a claim at first, `in_flight` calls to
    acquirers at once.

    `sides` is how many merchants' sides one look for work covers.
    """

    batch: int = 500
    sides: int = 200
    in_flight: int = 100

    @property
    def lanes(self) -> int:
        """How many batches are worked on at once:
        some are claimed and recorded while the calls of others are out.
        """
        return self.in_flight // self.batch + 3

    @property
    def room(self) -> int:
        """How many may be claimed and not answered yet, in all lanes together."""
        return max(self.in_flight * ROUNDS, self.lanes * self.batch)

    @property
    def most(self) -> int:
        """What a lane's batch may grow to: two of that size find room."""
        return max(min(self.batch * GROWTH, self.room // 2), self.batch)


@dataclass(slots=True)
class Lane:
    """How many renewals one lane claims next, by how the bank answered those before."""

    pace: Pace
    size: int = field(init=False)

    def __post_init__(self) -> None:
        """Begin as slowly as the settings say."""
        self.size = self.pace.batch

    def learn(self, claimed: int, seconds: float, *, answered: bool) -> None:
        """Take in how long the bank took over a batch, and whether it said something of each.

        Slow once, and the next batch is as small as the first; only a full one says that the bank
        keeps up with more.
        """
        if not answered or seconds > FAST:
            self.size = self.pace.batch
        elif claimed >= self.size:
            self.size = min(self.size * 2, self.pace.most)


class Room:
    """Bounds what all lanes of a run have claimed and the bank has not answered yet, so that a bank
    that becomes slow in the midst of large batches is through with them before their keys end.
    """

    def __init__(self, pace: Pace) -> None:
        self._least = pace.batch
        self._left = pace.room
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def batch(self, lane: Lane) -> AsyncIterator[int]:
        """How many a lane may claim now, for the length of a block; others' answers are waited for
        if they have it all.
        """
        while self._left < self._least:
            self._freed.clear()
            await self._freed.wait()
        most = min(lane.size, self._left)
        self._left -= most
        try:
            yield most
        finally:
            self._left += most
            self._freed.set()
