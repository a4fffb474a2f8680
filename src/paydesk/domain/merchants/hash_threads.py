"""Checking hashes beside the event loop: what strangers send may cost time,
but not that of everybody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

MOST_WAITING = 4
"""Guesses at mistakes in hand at a time; beyond them nobody is told more than
that a hash is wrong."""


class Aside:
    """Threads for work that takes a processor for a while;
    `most` in hand at a time, in `threads` threads.
    """

    def __init__(self, name: str, threads: int, most: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = most
        self._in_hand = 0

    async def do(self, work: Callable[[], Result]) -> Result:
        """Do it in one of the threads."""
        self._in_hand += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._in_hand -= 1

    @property
    def is_full(self) -> bool:
        """Whether so much is in hand that what is only helpful is better left out."""
        return self._in_hand >= self._most


checks = Aside("hash", threads=2, most=1_000)
"""For hashes: who waits for one has sent a form or a call."""

guesses = Aside("mistake", threads=1, most=MOST_WAITING)
"""For the reason why a hash is wrong."""
