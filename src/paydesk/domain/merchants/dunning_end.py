"""What an account wants of subscriptions whose charges fail to the last try."""

from __future__ import annotations

from enum import StrEnum


class DunningEnd(StrEnum):
    """What becomes of a subscription whose charge failed at every try of its plan."""

    CANCEL = "cancel"
    """It is stopped (interface.md §7.2)."""
    KEEP_OPEN = "keep_open"
    """It stays, and is charged nothing by itself until its customer pays what is open."""
    PAUSE = "pause"
    """It is paused until its customer gives another card, or somebody resumes it."""
