"""Which turns of background loops hang: they wait for longer than anything takes that does end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

PATIENCE = 3600.0
"""Seconds that a turn may take: twice what alerts wait, and far more than the limits of its calls
and statements."""

LONG_READING = 6 * 3600.0
"""Seconds for turns that read whole lists of acquirers."""


@dataclass(frozen=True, slots=True, eq=False)
class Turning:
    """A turn that is under way."""

    loop: str
    task: asyncio.Task[object] | None
    began: float
    patience: float

    @property
    def place(self) -> str:
        """What it waits for, from the outside to the inside; places in the source, no values."""
        waiting = self.task.get_coro() if self.task is not None else None
        lines = []
        while isinstance(waiting, Coroutine) and (frame := getattr(waiting, "cr_frame", None)) is not None:
            lines.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
            waiting = getattr(waiting, "cr_await", None)
        return "\n".join(lines)


_under_way: set[Turning] = set()


@contextmanager
def under_way(loop: str, patience: float) -> Iterator[None]:
    """Count what a block does as a turn of a loop, which hangs after so many seconds."""
    turn = Turning(loop, asyncio.current_task(), time.monotonic(), patience)
    _under_way.add(turn)
    try:
        yield
    finally:
        _under_way.discard(turn)


def hanging() -> list[Turning]:
    """The turns of this process, of all its threads, that have lost their patience."""
    now = time.monotonic()
    return [turn for turn in tuple(_under_way) if now - turn.began > turn.patience]
