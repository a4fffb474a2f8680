"""Questions to a database that may hang, for which nobody waits longer than they said.

The driver asks a server that took too long to leave off, and waits for its answer before a
connection is given back: one that is frozen would cost its asker the time limit once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_left: set[asyncio.Task[Any]] = set()
"""Questions that were given up, whose connections are on their way back."""


async def answered_within(seconds: float, question: Coroutine[Any, Any, T]) -> T:
    """What a question comes to. After so many seconds it is given up, and what is left of it ends
    beside: what was sent may have been done.

    Raises: TimeoutError; what the question raises.
    """
    asked = asyncio.create_task(question)
    try:
        await asyncio.wait({asked}, timeout=seconds)
    finally:
        if not asked.done():
            _leave(asked)
    if not asked.done():
        raise TimeoutError
    return asked.result()


def _leave(asked: asyncio.Task[Any]) -> None:
    _left.add(asked)
    asked.add_done_callback(_note_end)
    asked.cancel()


def _note_end(asked: asyncio.Task[Any]) -> None:
    """Nobody hears any more of what it came to."""
    _left.discard(asked)
    if not asked.cancelled():
        asked.exception()
