"""Sides whose due pingbacks all go where there is no room, so that a claim need not walk past them.

A dead endpoint with thousands due would else be walked past, row by row, by each claim: forty times
a second while shops sell.
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

_WHOLE_SECONDS = 5.0
"""After so long all of a side is looked at again: what is older may have got another URL, or have
been given back by another worker."""


@dataclass(frozen=True, slots=True)
class _Passed:
    """What is due before `since` goes to `urls`; taken for true until `until` (monotonic)."""

    urls: frozenset[str]
    since: datetime
    until: float


class FullSides:
    """Remembers from which due time on there may be something to take of a side."""

    def __init__(self) -> None:
        self._passed: dict[Side, _Passed] = {}

    def sinces(self, full: Mapping[Side, frozenset[str]]) -> dict[Side, datetime]:
        """From when on to look, for sides of which what is older goes to URLs that are `full`."""
        now = time.monotonic()
        self._passed = {side: passed for side, passed in self._passed.items() if now < passed.until}
        return {
            side: self._passed[side].since
            for side, urls in full.items()
            if side in self._passed and self._passed[side].urls <= urls
        }

    def note(self, side: Side, urls: frozenset[str], at: datetime, *, asked_since: bool) -> None:
        """Nothing was due at `at`, the side's own time, but what goes to `urls`;
        unless it was asked with a `since`, all of the side was looked at.
        """
        before = self._passed.get(side)
        until = before.until if asked_since and before else time.monotonic() + _WHOLE_SECONDS
        self._passed[side] = _Passed(urls, at - _MARGIN, until)
