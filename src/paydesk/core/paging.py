"""Pages of a list that grows while it is read: each continues after a row, never after a number
of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LARGEST_ID = 2**53 - 1
"""Ids that leave the house are integers that JSON numbers hold without loss."""

EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """A row's place in a list that is ordered by time and id."""

    at: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Page:
    """Which rows to read, newest first: `most` of those before a place,
    made from `since` on and before `until`.
    """

    most: int
    before: Place = Place(LATEST, LARGEST_ID)
    since: datetime = EARLIEST
    until: datetime = LATEST

    def parameters(self) -> dict[str, object]:
        """The page as statements take it."""
        return {
            "before_at": self.before.at,
            "before_id": self.before.id,
            "since": self.since,
            # An index scan begins at this bound, however deep the page is, and not at the
            # newest row.
            "until": min(self.until, self.before.at + timedelta(microseconds=1)),
            "most": self.most,
        }


def read_id(text: str) -> int | None:
    """The id that a text writes out, None if it is none."""
    plausible = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_ID))
    return int(text) if plausible and 0 < int(text) <= LARGEST_ID else None


def read_moment(text: str) -> datetime:
    """A moment (UTC) as ISO 8601, whose dates without a zone are UTC, or as Unix seconds.

    Raises: ValueError, saying what was expected.
    """
    try:
        if text.isascii() and text.isdigit():
            moment = datetime.fromtimestamp(int(text[:13]), UTC)
        else:
            # An unencoded "+" of a zone arrives as a space.
            moment = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
            moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        moment = None
    if moment is None or not EARLIEST <= moment <= LATEST:
        raise ValueError(f'"{text[:40]}" is no date; write it like 2026-11-20, 2026-11-20T09:44:16Z or 1795167856')
    return moment
