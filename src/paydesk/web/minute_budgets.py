"""How many requests of strangers one process reads a minute, counted in its memory alone,
before anything of them is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True)
class MinuteBudget:
    """How many requests may still be read in this minute, of everybody and of one address;
    holds at most as many addresses as requests are read.
    """

    everybody: int
    each: int
    minute: datetime | None = None
    taken: dict[str, int] = field(default_factory=dict)

    def take(self, address: str, *, now: datetime) -> bool:
        """Count a request; false if it is not to be read."""
        minute = now.replace(second=0, microsecond=0)
        if minute != self.minute:
            self.minute, self.taken = minute, {}
        mine = self.taken.get(address, 0)
        if mine >= self.each or sum(self.taken.values()) >= self.everybody:
            return False
        self.taken[address] = mine + 1
        return True

    def give_back(self, address: str) -> None:
        """Count a request no more: its sender is no stranger."""
        if address in self.taken:
            self.taken[address] = max(0, self.taken[address] - 1)
