"""What the days, or months, of a period are called: in full, and below a chart."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from babel import Locale
from babel.dates import format_date, format_skeleton

from paydesk.web.console.visit import Visit


def named(visit: Visit, day: date, *, by_month: bool) -> str:
    """A day, or its month: `21 Nov 2026`, `Nov 2026`."""
    return _written(day, "yMMM" if by_month else "", visit.texts.locale)


def tick(visit: Visit, day: date, *, by_month: bool) -> str:
    """The same without its year: `21 Nov`, `Nov`."""
    return _written(day, "MMM" if by_month else "MMMd", visit.texts.locale)


@lru_cache(maxsize=2048)
def _written(day: date, skeleton: str, locale: Locale) -> str:
    """A day as a language writes these parts of it, in full if none are named: pages are about the
    same days again and again, and to write one anew takes long.
    """
    return str(format_skeleton(skeleton, day, locale=locale) if skeleton else format_date(day, "medium", locale=locale))
