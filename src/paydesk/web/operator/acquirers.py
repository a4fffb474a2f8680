"""Acquirers: which are configured, for what, and how their recent answers went.
No secret is shown.
"""

from __future__ import annotations

from datetime import timedelta

from babel.numbers import format_decimal, format_percent
from starlette.responses import Response

from paydesk.domain.operations.machinery import acquirer_health
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE

section = Section(FACE)
_ACQUIRERS = "/operator/acquirers"
PERIODS = {"hour": timedelta(hours=1), "day": timedelta(hours=24)}
"""Over what the figures are, as the address has it."""


@section.page(_ACQUIRERS, needs=Access.operator)
async def show_acquirers(visit: Visit) -> Response:
    """Each acquirer with what became of its attempts of the last hour, or day."""
    asked = "day" if visit.form.text("period", 10) == "day" else "hour"
    desk, locale = visit.services.desk, visit.texts.locale
    found = await acquirer_health(visit.database, since=visit.now - PERIODS[asked])
    return visit.page(
        "acquirers.html",
        names=sorted({*desk.acquirers, *found}),
        configured=desk.acquirers,
        test_one=desk.test_acquirer,
        live_one=desk.live_acquirer,
        health=found,
        views=[
            (_ACQUIRERS, visit.texts.get("Last hour")),
            (f"{_ACQUIRERS}?period=day", visit.texts.get("Last 24 hours")),
        ],
        current=_ACQUIRERS if asked == "hour" else f"{_ACQUIRERS}?period=day",
        count=lambda number: format_decimal(number, locale=locale),
        share=lambda part, whole: format_percent(part / whole, "#,##0.0 %", locale=locale) if whole else "–",
    )
