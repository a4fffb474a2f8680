"""Lists of Mollie's that are read through again and again, since it keeps no list of what changed:
the cursor is when that was done last, and what is read too often is nothing new.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.core.wording import noted


def read_before(cursor: str) -> datetime | None:
    """When a list was read before, None if it never was.

    Raises: AcquirerRefused if it is no cursor.
    """
    if not cursor:
        return None
    try:
        at = datetime.fromisoformat(cursor)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise AcquirerRefused(noted("this is no place in Mollie's lists"))
    return at


def is_fresh(read_at: datetime | None, now: datetime, pause: timedelta) -> bool:
    """Whether a list was read so shortly ago that nobody reads it again."""
    return read_at is not None and timedelta(0) <= now - read_at < pause
