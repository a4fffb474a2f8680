"""Where an operator begins: what waits for a hand, or that all is clear, and how the money of all
merchants moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from starlette.responses import Response

from paydesk.domain.ledger.figures import CurrencySales
from paydesk.domain.operations.figures_for_operator import MANY_DISPUTES, Share, figures_of_all
from paydesk.domain.operations.waiting import WORRYING, Machinery, machinery_now, what_waits
from paydesk.web.console.day_names import named
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import list_address
from paydesk.web.console.plots import spark
from paydesk.web.console.visit import Visit
from paydesk.web.console.volume_plots import volume_plot
from paydesk.web.operator.cells import CELLS, cell_names, heard_of_others
from paydesk.web.operator.face import FACE
from paydesk.web.operator.merchant_words import count_words, percent_change, share_words, upto
from paydesk.web.operator.queues import QUEUES
from paydesk.web.texts import mark

section = Section(FACE)

_GLANCE = 1.0
"""Seconds for which this page waits for other cells; what they say later it shows the next time."""


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
    machinery = await machinery_now(visit.database, now=visit.now)
    needs = [*await _needs(visit, machinery), *await _needs_elsewhere(visit)]
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


async def _needs(visit: Visit, machinery: Machinery) -> list[Need]:
    """What waits for a hand, the most pressing first; nothing if all is clear."""
    say, waiting = visit.texts.get, await what_waits(visit.database, now=visit.now)
    minutes = WORRYING.seconds // 60
    counted = [
        Need(say(mark("Alarms")), upto(visit, waiting.alarms), "/operator/alarms", "alert-triangle"),
        Need(
            say(mark("Unknown for a day")),
            upto(visit, waiting.unknown_for_a_day),
            "/operator/outcomes?view=day",
            "help",
        ),
        Need(
            say(mark("Unknown for %(minutes)s minutes")) % {"minutes": minutes},
            upto(visit, waiting.unknown),
            "/operator/outcomes",
            "help",
        ),
        Need(say(mark("Profiles to decide")), upto(visit, waiting.profiles), "/operator/profiles", "shield-check"),
        Need(
            say(mark("Chargebacks without evidence")),
            upto(visit, waiting.disputes),
            "/operator/chargebacks?state=open",
            "scale",
        ),
    ]
    stopped = [
        Need(say(mark("Acquirers failing")), " ", "/operator/acquirers", "building-bank", ", ".join(machinery.failing)),
        Need(
            say(mark("Queues behind")),
            " ",
            "/operator/queues",
            "activity",
            ", ".join(say(QUEUES[name]) for name in machinery.behind),
        ),
    ]
    needs = [one for one in counted if one.count] + [one for one in stopped if one.hint]
    if not machinery.alive:
        needs.append(Need(say(mark("No background work is done")), " ", "/operator/queues", "server"))
    return needs


async def _needs_elsewhere(visit: Visit) -> list[Need]:
    """Other cells that have alarms, or do not answer, as far as is known in a moment."""
    say, heard = visit.texts.get, await heard_of_others(visit, patience=_GLANCE)
    alarmed = [one for one in heard if one.answers and one.figures is not None and one.figures.alarms]
    alarms = upto(visit, sum(one.figures.alarms for one in alarmed if one.figures is not None))
    silent = [one for one in heard if one.silent_since is not None]
    needs = [
        Need(say(mark("Alarms in other cells")), alarms, CELLS, "alert-triangle", cell_names(visit, alarmed)),
        Need(say(mark("Cells that do not answer")), " ", CELLS, "server", cell_names(visit, silent)),
    ]
    return [one for one in needs if one.hint]


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
