"""What a merchant's way to another cell waits for, so that whoever runs it sees why nothing
happens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import TypeAlias, TypeVar

MOMENT = 1.0
"""Seconds after which a wait is worth a word."""

_Seen = TypeVar("_Seen")


class Wait(StrEnum):
    """What is waited for.

    That processes of the other cell have `opened` accounts, `readings` of these come to their end,
    nobody moves the test clock (`clocks`), `writers` commit, and `calls` in the air end.
    """

    opened = "opened"
    readings = "readings"
    clocks = "clocks"
    writers = "writers"
    calls = "calls"


Waits: TypeAlias = Callable[[Wait, float], AbstractContextManager[object]]
"""What hears of each wait that is not over in a moment: for what, how many seconds it may last in
all, and by the block that it makes for how long it does.
"""


def unheard(_wait: Wait, _seconds: float) -> AbstractContextManager[object]:
    """Nobody hears of it."""
    return nullcontext()


async def wait_out(
    look: Callable[[], Awaitable[_Seen]], wait: Wait, *, seconds: float, pause: float, waits: Waits
) -> _Seen:
    """Look again and again until nothing is seen any more, for so many seconds; what was seen
    last.
    """

    async def look_until(end: float, seen: _Seen) -> _Seen:
        while seen and time.monotonic() < end:
            await asyncio.sleep(pause)
            seen = await look()
        return seen

    begun = time.monotonic()
    seen = await look_until(begun + min(MOMENT, seconds), await look())
    if seen and seconds > MOMENT:
        with waits(wait, seconds):
            seen = await look_until(begun + seconds, seen)
    return seen
