"""The states of a pingback and the one table of allowed transitions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class PingbackState(StrEnum):
    """Where a pingback stands."""

    WAITING = "waiting"
    """There is no URL to send it to yet."""
    DUE = "due"
    """To be sent at its `due_at`, for the first time or again."""
    ACKNOWLEDGED = "acknowledged"
    """The merchant answered 200 and `ok`."""
    EXHAUSTED = "exhausted"
    """All attempts failed; only the merchant can have it sent again."""
    MUTED = "muted"
    """The account doesn't want this event, or it waited when its database became a copy:
    sent by hand alone."""


TRANSITIONS: Mapping[PingbackState, frozenset[PingbackState]] = {
    PingbackState.WAITING: frozenset({PingbackState.DUE}),
    PingbackState.DUE: frozenset({PingbackState.ACKNOWLEDGED, PingbackState.EXHAUSTED, PingbackState.MUTED}),
    PingbackState.ACKNOWLEDGED: frozenset({PingbackState.DUE}),
    # The second for an `ok` that is recorded late, after another worker had given up.
    PingbackState.EXHAUSTED: frozenset({PingbackState.DUE, PingbackState.ACKNOWLEDGED}),
    PingbackState.MUTED: frozenset({PingbackState.DUE}),
}
