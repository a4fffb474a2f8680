"""How long a stand-in takes with a request, before it acts and after that, by chance; and which
requests it still has in hand.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager


class Pace:
    """Up to `longest` seconds each, no time at all at first."""

    def __init__(self) -> None:
        self._longest = 0.0
        self._chance = random.Random(0)
        self._in_hand: set[str] = set()

    def become(self, longest: float, seed: int) -> None:
        """Take up to so long from now on, by another chance."""
        self._longest, self._chance = longest, random.Random(seed)

    async def take(self) -> None:
        """Let some time pass."""
        if self._longest:
            await asyncio.sleep(self._chance.uniform(0, self._longest))

    def is_in_hand(self, key: str) -> bool:
        """Whether a request with this key is not answered yet."""
        return key in self._in_hand

    @contextmanager
    def in_hand(self, key: str) -> Iterator[None]:
        """The request with a key is worked on for the length of a block."""
        self._in_hand |= {key} - {""}
        try:
            yield
        finally:
            self._in_hand.discard(key)
