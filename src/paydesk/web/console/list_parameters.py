"""What the address of a list asks for: a place to go on from, days, a search;
anything else counts as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from paydesk.core.paging import EARLIEST, LARGEST_ID, LATEST, Page, Place
from paydesk.web.console.visit import Visit

ROWS = 50
COUNTED = 99
"""How far the tab of a view counts what is in it."""
_LONGEST_SEARCH = 300


def list_address(path: str, fields: Mapping[str, object]) -> str:
    """A list's address with the fields that are not empty."""
    chosen = {name: value for name, value in fields.items() if value}
    return path + (f"?{urlencode(chosen)}" if chosen else "")


def count_shown(number: int) -> str:
    """How many a tab says there are; past what it counts that there are more, none as nothing."""
    return f"{COUNTED}+" if number > COUNTED else str(number or "")


def mark_of(at: datetime, row_id: int) -> str:
    """A row's place in a list as an address carries it."""
    return f"{int(at.timestamp() * 1_000_000)}-{row_id}"


def place_in(text: str) -> Place | None:
    """The place that an address names, or None."""
    at, _, row_id = text.partition("-")
    if not all(part.isascii() and part.isdigit() and len(part) < 17 for part in (at, row_id)):
        return None
    seconds, micros = divmod(int(at), 1_000_000)
    if int(row_id) > LARGEST_ID:
        return None
    return Place(datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros), int(row_id))


def searched(visit: Visit) -> str:
    """What was typed into the box, without what no row holds."""
    return visit.form.text("q", _LONGEST_SEARCH).replace("\x00", "").strip()


def days_asked(visit: Visit) -> dict[str, str]:
    """The first and the last day that a list is asked for, as the address writes them;
    empty ones for none.
    """
    return {name: str(day) if (day := _day(visit.form.text(name, 10))) else "" for name in ("since", "until")}


def page_asked(visit: Visit, most: int = ROWS + 1) -> Page:
    """The page of a list that the address asks for, newest first;
    days are those of the person's time zone.
    """
    since, until = (_day(visit.form.text(name, 10)) for name in ("since", "until"))
    return Page(
        most,
        place_in(visit.form.text("before", 60)) or Place(LATEST, LARGEST_ID),
        _begin(visit, since) if since else EARLIEST,
        _begin(visit, until + timedelta(days=1)) if until else LATEST,
    )


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text) if len(text) == len("2026-11-21") else None
    except ValueError:
        return None
    return day if day and EARLIEST.date() < day < LATEST.date() else None


def _begin(visit: Visit, day: date) -> datetime:
    return datetime.combine(day, time(), visit.zone).astimezone(UTC)
