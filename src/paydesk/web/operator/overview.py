"""Where an operator begins: what waits for a hand, each figure leading to its list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from babel.numbers import format_decimal
from starlette.responses import Response

from paydesk.domain.operations.alarms import alarms_waiting
from paydesk.domain.operations.chargebacks_for_operator import chargebacks_without_evidence
from paydesk.domain.operations.machinery import (
    SILENT,
    acquirer_health,
    profiles_waiting,
    queues,
    workers,
)
from paydesk.domain.operations.open_outcomes import OpenOutcome, open_outcomes
from paydesk.domain.operations.payouts import payable
from paydesk.domain.payments.lookups import ALERT_AFTER
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE
from paydesk.web.operator.queues import QUEUES, lags

section = Section(FACE)
_MOST = 100
"""Figures count up to here; then they say so."""
_WORRYING = timedelta(minutes=5)
"""An outcome that is open for longer than this is not one that is just late."""


@section.page("/operator", needs=Access.operator)
async def home(visit: Visit) -> Response:
    """The first page of the console."""
    return visit.go(visit.first_page)


@section.page("/operator/overview", needs=Access.operator)
async def show_overview(visit: Visit) -> Response:
    """What waits, and what does not work."""
    database, now = visit.database, visit.now
    late = await open_outcomes(database, begun_before=now - _WORRYING, most=_MOST + 1)
    behind = [queue for queue in await queues(database, now=now) if lags(queue, visit)]
    health = await acquirer_health(database, since=now - timedelta(hours=1))
    found = await workers(database)
    return visit.part(
        "overview.html",
        "news",
        alarms=_upto(visit, await alarms_waiting(database, most=_MOST + 1)),
        profiles=_upto(visit, await profiles_waiting(database, most=_MOST + 1)),
        payouts=_upto(visit, len(await payable(database, live=True, most=_MOST + 1, now=now))),
        chargebacks=_upto(visit, await chargebacks_without_evidence(database, most=_MOST + 1)),
        late=_upto(visit, len(late)),
        worrying=_WORRYING,
        alerts=_upto(visit, len(_of_a_day(late, visit))),
        failing=[name for name, one in health.items() if one.failing],
        asked=sorted(health),
        behind=[visit.texts.get(QUEUES[queue.name]) for queue in behind],
        alive=sum(1 for one in found if one.seen_at >= now - SILENT),
    )


def _of_a_day(late: Sequence[OpenOutcome], visit: Visit) -> list[OpenOutcome]:
    return [one for one in late if one.since < visit.now - ALERT_AFTER]


def _upto(visit: Visit, number: int) -> str:
    """A figure as a page shows it, empty for none: `7`, `100+`."""
    if not number:
        return ""
    return f"{format_decimal(min(number, _MOST), locale=visit.texts.locale)}{'+' if number > _MOST else ''}"
