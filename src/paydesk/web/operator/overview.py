"""Where an operator begins: what waits for a hand, or that all is clear, and how the money of all
merchants moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import partial

from babel.numbers import format_decimal
from starlette.responses import Response

from paydesk.domain.ledger.figures import CurrencySales
from paydesk.domain.operations.alarms import alarms_waiting
from paydesk.domain.operations.chargebacks_for_operator import chargebacks_without_evidence
from paydesk.domain.operations.figures_for_operator import MANY_DISPUTES, Share, figures_of_all
from paydesk.domain.operations.machinery import (
    SILENT,
    acquirer_health,
    profiles_waiting,
    queues,
    workers,
)
from paydesk.domain.operations.open_outcomes import OpenOutcome, open_outcomes
from paydesk.domain.payments.lookups import ALERT_AFTER
from paydesk.web.console.day_names import named
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import list_address
from paydesk.web.console.plots import spark
from paydesk.web.console.visit import Visit
from paydesk.web.console.volume_plots import volume_plot
from paydesk.web.operator.face import FACE
from paydesk.web.operator.merchant_words import count_words, percent_change, share_words
from paydesk.web.operator.queues import QUEUES, lags
from paydesk.web.texts import mark

section = Section(FACE)
_MOST = 100
"""Figures count up to here; then they say so."""
_WORRYING = timedelta(minutes=5)
"""An outcome that is open for longer than this is not one that is just late."""


@section.page("/operator", needs=Access.operator)
async def home(visit: Visit) -> Response:
    """The first page of the console."""
    return visit.go(visit.first_page)


@dataclass(frozen=True, slots=True)
class Need:
    """Something that waits for an operator: how many, as a page shows it, and where they are."""

    words: str
    count: str
    url: str
    sign: str
    hint: str = ""


@section.page("/operator/overview", needs=Access.operator)
async def show_overview(visit: Visit) -> Response:
    """What waits, else that all is clear, and above the machinery the money of all merchants."""
    machinery = await _machinery(visit)
    needs = await _needs(visit, machinery)
    if "hx-request" in visit.request.headers:
        return visit.part("overview.html", "news", needs=needs, machinery=machinery)
    figures = await figures_of_all(visit.database, now=visit.now)
    wanted = visit.form.text("currency", 3)
    chosen = next((one for one in figures.sold if one.currency == wanted), next(iter(figures.sold), None))
    return visit.page(
        "overview.html",
        needs=needs,
        machinery=machinery,
        figures=figures,
        currencies=[(list_address(visit.path, {"currency": one.currency}), one.currency) for one in figures.sold],
        current=list_address(visit.path, {"currency": chosen.currency}) if chosen else "",
        one=chosen,
        plot=volume_plot(visit, figures.period, chosen) if chosen else None,
        rows=list(zip(chosen.by_day, chosen.by_day_before, strict=True)) if chosen else [],
        spark=spark,
        change=partial(_change, visit, chosen) if chosen else None,
        share=partial(share_words, visit),
        succeeded=_succeeded(chosen) if chosen else None,
        disputed=Share(figures.crowd.disputes, sum(one.total.successful for one in figures.sold), MANY_DISPUTES),
        count=partial(count_words, visit),
        named=partial(named, visit, by_month=False),
    )


@dataclass(frozen=True, slots=True)
class Machinery:
    """How the acquirers, the queues and the workers are just now."""

    failing: Sequence[str]
    asked: Sequence[str]
    behind: Sequence[str]
    alive: int


async def _machinery(visit: Visit) -> Machinery:
    database, now = visit.database, visit.now
    health = await acquirer_health(database, since=now - timedelta(hours=1))
    return Machinery(
        [name for name, one in health.items() if one.failing],
        sorted(health),
        [visit.texts.get(QUEUES[one.name]) for one in await queues(database, now=now) if lags(one, visit)],
        sum(1 for one in await workers(database) if one.seen_at >= now - SILENT),
    )


async def _needs(visit: Visit, machinery: Machinery) -> list[Need]:
    """What waits for a hand, the most pressing first; nothing if all is clear."""
    database, now, say = visit.database, visit.now, visit.texts.get
    late = await open_outcomes(database, begun_before=now - _WORRYING, most=_MOST + 1)
    alarms = await alarms_waiting(database, most=_MOST + 1)
    profiles = await profiles_waiting(database, most=_MOST + 1)
    disputes = await chargebacks_without_evidence(database, most=_MOST + 1)
    minutes = _WORRYING.seconds // 60
    day = len(_of_a_day(late, visit))
    counted = [
        Need(say(mark("Alarms")), _upto(visit, alarms), "/operator/alarms", "alert-triangle"),
        Need(say(mark("Unknown for a day")), _upto(visit, day), "/operator/outcomes?view=day", "help"),
        Need(
            say(mark("Unknown for %(minutes)s minutes")) % {"minutes": minutes},
            _upto(visit, len(late)),
            "/operator/outcomes",
            "help",
        ),
        Need(say(mark("Profiles to decide")), _upto(visit, profiles), "/operator/profiles", "shield-check"),
        Need(
            say(mark("Chargebacks without evidence")),
            _upto(visit, disputes),
            "/operator/chargebacks?state=open",
            "scale",
        ),
    ]
    stopped = [
        Need(say(mark("Acquirers failing")), " ", "/operator/acquirers", "building-bank", ", ".join(machinery.failing)),
        Need(say(mark("Queues behind")), " ", "/operator/queues", "activity", ", ".join(machinery.behind)),
    ]
    needs = [one for one in counted if one.count] + [one for one in stopped if one.hint]
    if not machinery.alive:
        needs.append(Need(say(mark("No background work is done")), " ", "/operator/queues", "server"))
    return needs


def _succeeded(sold: CurrencySales) -> Share:
    """How many of the payments that were decided succeeded."""
    return Share(sold.total.successful, sold.total.successful + sold.total.failed, Decimal(1))


def _change(visit: Visit, sold: CurrencySales, what: str) -> str:
    """By how much a figure moved, of whole days: neither today counts, nor its counterpart."""
    now, before = (
        sum((Decimal(getattr(one, what)) for one in days[:-1]), Decimal(0))
        for days in (sold.by_day, sold.by_day_before)
    )
    return percent_change(visit, now, before)


def _of_a_day(late: Sequence[OpenOutcome], visit: Visit) -> list[OpenOutcome]:
    return [one for one in late if one.since < visit.now - ALERT_AFTER]


def _upto(visit: Visit, number: int) -> str:
    """A figure as a page shows it, empty for none: `7`, `100+`."""
    if not number:
        return ""
    return f"{format_decimal(min(number, _MOST), locale=visit.texts.locale)}{'+' if number > _MOST else ''}"
