"""Queues: what the background work has to do by now, who does it, and how the database stands;
renewed by itself.
"""

from __future__ import annotations

from babel.numbers import format_decimal
from babel.units import format_unit
from starlette.responses import Response

from paydesk.domain.operations.machinery import FEW, PULSE, SILENT, database_now, logs, queues, workers
from paydesk.domain.operations.waiting import lags
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE
from paydesk.web.texts import mark

section = Section(FACE)
QUEUES = {
    "pingbacks": mark("Pingbacks"),
    "renewals": mark("Renewals"),
    "changes": mark("Changes of subscriptions"),
    "outcomes": mark("Outcomes of payments to ask for"),
    "movements": mark("Captures, voids and refunds to finish"),
    "shipping": mark("Shipping deadlines"),
    "settlements": mark("Settlements and reserves"),
    "mails": mark("Mails"),
}
"""What each queue is called."""
LOG_NAMES = {
    "audit_entry": mark("Audit log"),
    "pingback_attempt": mark("Pingbacks"),
    "rejected_form": mark("Refused forms"),
}
"""What each log is called."""
_MEBIBYTE = 1024 * 1024


@section.page("/operator/queues", needs=Access.operator)
async def show_queues(visit: Visit) -> Response:
    """Every queue, the workers, the database and its logs."""
    locale = visit.texts.locale
    found = await queues(visit.database, now=visit.now)
    return visit.part(
        "queues.html",
        "news",
        queues=found,
        counted_at=min(one.counted_at for one in found) if sum(one.due for one in found) > FEW else None,
        names=QUEUES,
        lags=lags,
        workers=await workers(visit.database),
        alive_since=visit.now - SILENT,
        pulse=int(PULSE.total_seconds()),
        base=await database_now(visit.database),
        logs=await logs(visit.database),
        log_names=LOG_NAMES,
        count=lambda number: format_decimal(number, locale=locale),
        size=lambda size: format_unit(round(size / _MEBIBYTE), "digital-megabyte", "short", locale=locale),
    )
