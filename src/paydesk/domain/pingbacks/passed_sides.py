"""How far claims have come on each side, so that the next one goes on from there.

What was just taken or done is in the index still, in front of what is due: its entries stay while
any snapshot is as old as they are, autovacuum's among them, and in a backlog each claim would walk
past all of them. So it would, forty times a second while shops sell, past the thousands that are
due at a dead endpoint.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

Side = tuple[int, bool]
"""A merchant's id, live or test."""

_MARGIN = timedelta(seconds=2)
"""What is written down may be due so long ago: processes' clocks differ, and commits take time."""

_WHOLE_SECONDS, _WHOLE_SECONDS_IF_FULL = 1.0, 5.0
"""After so long all of a side is looked at again: another worker may have given back what is older,
or died with it. The second if that means to read all that is due at a full URL."""

_MOST = 64
"""Sides that are remembered, the latest: each is looked for in each claim."""


@dataclass(frozen=True, slots=True)
class _Passed:
    """What is due before `since` is taken or goes to `urls`; taken for true until `until`
    (monotonic).
    """

    urls: frozenset[str]
    since: datetime
    until: float


class PassedSides:
    """Remembers from which due time on there may be something to take of a side."""

    def __init__(self) -> None:
        self._passed: dict[Side, _Passed] = {}

    def known(self, full: Mapping[Side, frozenset[str]]) -> dict[Side, datetime | None]:
        """The sides that had something due lately, in order, and from when on to look:
        from the first one on (None) if it is time for that or one of the URLs passed is not `full`.
        """
        now = time.monotonic()
        holding = {
            side: passed
            for side, passed in self._passed.items()
            if now < passed.until and passed.urls <= full.get(side, frozenset())
        }
        known = {side: holding[side].since if side in holding else None for side in sorted(self._passed)}
        self._passed = holding
        return known

    def note(self, side: Side, urls: frozenset[str], to: datetime | None, *, at: datetime, is_whole: bool) -> None:
        """All that was due before `to`, or at all at `at`, the side's own time, is taken or goes to
        `urls`; `is_whole` says that the first one due was looked at, too.
        """
        before = self._passed.pop(side, None)
        whole_seconds = _WHOLE_SECONDS_IF_FULL if urls else _WHOLE_SECONDS
        until = before.until if before and not is_whole else time.monotonic() + whole_seconds
        self._passed[side] = _Passed(urls, min(to or at, at - _MARGIN), until)
        if len(self._passed) > _MOST:
            del self._passed[next(iter(self._passed))]
