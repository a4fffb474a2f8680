"""The one place that reads the wall clock; everything else is given `now`."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The time of this machine, in UTC."""
    return datetime.now(UTC)
