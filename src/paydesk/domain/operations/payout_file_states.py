"""Where a file of transfers stands, for all who ask."""

from __future__ import annotations

from enum import StrEnum


class FileState(StrEnum):
    """Where a file stands."""

    MADE = "made"
    """It may be at the bank."""
    RECORDED = "recorded"
    """Each of its transfers is a payout."""
    DROPPED = "dropped"
    """It was not sent."""
