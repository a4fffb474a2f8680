"""How long an acquirer that has too much to do asks to be left alone (`Retry-After`).

What is asked on our own schedule waits for so long; what a customer waits for, or a subscription's
charge, is sent all the same: whether that is one too many the acquirer says of it alone.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

from paydesk.adapters.acquirers.interface import Undecided
from paydesk.adapters.acquirers.reaching import is_waited_for

LONGEST: Final = 60
"""Seconds that are waited at most, whatever is asked for: as long as Stripe's own libraries do."""
_DIGITS: Final = 9


class KeptQuiet(Undecided):
    """Nothing was sent: the acquirer has asked to be left alone until then."""


class Quiet:
    """Until when an acquirer, which `name` calls, is left alone by this process."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._until = 0.0

    def begin(self, retry_after: str | None) -> None:
        """Take note of what an answer says of asking again; None if it says nothing."""
        self._until = max(self._until, monotonic() + seconds_of(retry_after))

    def keep(self) -> None:
        """Let nothing be sent that can wait. Raises: KeptQuiet."""
        left = self._until - monotonic()
        if left > 0 and not is_waited_for():
            raise KeptQuiet(f"{self._name} has asked for {left:.0f} s of quiet")


def seconds_of(retry_after: str | None) -> int:
    """The seconds that `Retry-After` says, up to LONGEST; 0 for a date, and what makes no sense."""
    said = (retry_after or "").strip()
    if not (said.isascii() and said.isdigit()):
        return 0
    return LONGEST if len(said) > _DIGITS else min(int(said), LONGEST)
