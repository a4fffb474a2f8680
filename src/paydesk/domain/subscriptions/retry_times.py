"""When a charge that took nothing is tried again."""

from __future__ import annotations

from datetime import datetime, timedelta

RETRY_AFTER = timedelta(hours=6)
MOST_RETRIES = 3
"""Source: interface.md §7.2."""

REFUSED_PAUSES = (timedelta(hours=1), timedelta(hours=6), timedelta(days=1), timedelta(days=2), timedelta(days=4))
"""Pauses after charges that the acquirer refused as requests:
mostly ours to mend, so there is a week to do it."""

UNREACHED_PAUSES = (timedelta(0), timedelta(minutes=5), timedelta(hours=1))
"""Pauses after charges that never reached the bank: at once after the first, then ever later;
the last one stays."""


def retry_at(failed_at: datetime, failures: int) -> datetime | None:
    """When a failed charge is tried again, or None once its retries are used up;
    `failures` counts this one too.
    """
    return failed_at + RETRY_AFTER if failures <= MOST_RETRIES else None


def longest_pause() -> timedelta:
    """The longest time from a charge that took nothing to the next try."""
    return max(RETRY_AFTER, *REFUSED_PAUSES, *UNREACHED_PAUSES)


def refused_retry_at(refused_at: datetime, refusals: int) -> datetime | None:
    """When a charge that was refused as a request is tried again, or None at the end;
    `refusals` counts it too.
    """
    return refused_at + REFUSED_PAUSES[refusals - 1] if refusals <= len(REFUSED_PAUSES) else None


def unreached_retry_at(found_at: datetime, before: int) -> datetime:
    """When a charge that never reached the bank is tried again;
    `before` counts those of its period before it.
    """
    return found_at + UNREACHED_PAUSES[min(before, len(UNREACHED_PAUSES) - 1)]
