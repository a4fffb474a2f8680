"""What the days, or months, of a period are called: in full, and below a chart."""

from __future__ import annotations

from datetime import date

from babel.dates import format_date, format_skeleton

from paydesk.web.console.visit import Visit


def named(visit: Visit, day: date, *, by_month: bool) -> str:
    """A day, or its month: `21 Nov 2026`, `Nov 2026`."""
    if by_month:
        return str(format_skeleton("yMMM", day, locale=visit.texts.locale))
    return str(format_date(day, "medium", locale=visit.texts.locale))


def tick(visit: Visit, day: date, *, by_month: bool) -> str:
    """The same without its year: `21 Nov`, `Nov`."""
    return str(format_skeleton("MMM" if by_month else "MMMd", day, locale=visit.texts.locale))
