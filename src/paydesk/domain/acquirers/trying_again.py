"""When what an acquirer has told, and nobody can book yet, is tried again."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

FIRST: Final = timedelta(seconds=5)
LONGEST: Final = timedelta(minutes=10)


def pause(tries: int) -> timedelta:
    """How long it waits after so many tries before this one: twice as long each time."""
    return min(FIRST * (1 << min(tries, 10)), LONGEST)
