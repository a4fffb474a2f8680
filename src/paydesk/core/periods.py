"""Billing periods and the calendar: dates are counted from an anchor, never from one another."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.tz import resolve_imaginary

from paydesk.core.errors import Malformed
from paydesk.core.wording import worded

Unit = Literal["day", "week", "month", "year"]

_UNITS: dict[str, Unit] = {"d": "day", "w": "week", "m": "month", "y": "year"}
_LONGEST: dict[Unit, int] = {"day": 3653, "week": 521, "month": 120, "year": 10}
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}
_IN_EVERY_MONTH = 28
_TEXT = re.compile(r"([0-9]{1,4})([dwmy])")


@dataclass(frozen=True, slots=True)
class Period:
    """A length of time in calendar units: 6 months, 30 days."""

    length: int
    unit: Unit

    @property
    def in_days(self) -> int | None:
        """The length in days if it is made of days or weeks; months have no fixed length."""
        return {"day": self.length, "week": 7 * self.length}.get(self.unit)

    @property
    def in_months(self) -> int | None:
        """The length in months if it is made of months or years."""
        return {"month": self.length, "year": 12 * self.length}.get(self.unit)


def parse_period(text: str, field: str) -> Period:
    """Read a period as the form writes it: a whole number and a unit, `30d`, `2w`, `6m`, `1y`;
    at most 10 years.

    Raises: Malformed, naming the field.
    Source: interface.md §2.5.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise Malformed(
            worded(
                '%(field)s "%(text)s" is not a period; write a number and d, w, m or y, like "1m" or "30d"',
                field=field,
                text=text[:20],
            ),
            field,
        )
    period = Period(int(match[1]), _UNITS[match[2]])
    if period.length < 1:
        raise Malformed(worded('%(field)s "%(text)s" must be at least 1', field=field, text=text), field)
    if period.length > _LONGEST[period.unit]:
        raise Malformed(worded('%(field)s "%(text)s" is longer than 10 years', field=field, text=text), field)
    return period


def zone_named(name: str) -> ZoneInfo:
    """A time zone, or UTC where this machine knows none of that name, as of who comes from another
    one: what was paid is written down all the same.
    """
    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError:
        return ZoneInfo("UTC")


def occurrence(anchor: datetime, period: Period, number: int, time_zone: str = "UTC") -> datetime:
    """The moment `number` periods after the anchor (UTC), by the calendar and the wall clock
    of a time zone.

    Counting from the anchor keeps the day: 31 January, 28 February, 31 March. A wall-clock time
    that a change to summer time skips moves to the first moment after it, and one that comes twice
    is the first of both, but for the anchor itself.
    """
    if number == 0:
        return anchor.astimezone(UTC)
    if time_zone == "UTC":
        return _later(anchor.astimezone(UTC), period, number)
    local = anchor.astimezone(zone_named(time_zone))
    return resolve_imaginary(_later(local, period, number)).astimezone(UTC)


def _later(at: datetime, period: Period, number: int) -> datetime:
    """So many periods after a moment by its own wall clock; where a month has no such day,
    on its last one.
    """
    days = _DAYS.get(period.unit)
    if days is not None:
        return at + timedelta(days=days * period.length * number)
    months = _MONTHS[period.unit] * period.length * number
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    day = at.day if at.day <= _IN_EVERY_MONTH else min(at.day, monthrange(year, month + 1)[1])
    return at.replace(year=year, month=month + 1, day=day, fold=0)


def whole_number_of(period: Period, duration: Period) -> int | None:
    """How many periods make up a duration, or None if that is no whole number."""
    for whole, part in ((duration.in_days, period.in_days), (duration.in_months, period.in_months)):
        if whole is not None and part is not None:
            return whole // part if whole % part == 0 else None
    return None
