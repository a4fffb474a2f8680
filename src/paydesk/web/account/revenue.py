"""Recurring revenue: what subscriptions bring in a month, how that moved, and who stayed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial

from babel.numbers import format_decimal, format_percent
from starlette.responses import Response

from paydesk.core.money import plain_number
from paydesk.core.paging import Page
from paydesk.core.periods import zone_named
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import acting
from paydesk.domain.business.dunning_for_team import Outcome, days_looked_at, dunning_report
from paydesk.domain.business.revenue_for_team import (
    COHORTS,
    Cohort,
    Kind,
    Movements,
    Revenue,
    cohorts,
    movements,
    revenue,
)
from paydesk.domain.ledger.figures import Days, Span, period_of
from paydesk.domain.merchants.test_clock import read_clock
from paydesk.web.account.face import FACE
from paydesk.web.console.day_names import named, tick
from paydesk.web.console.exports import begin_export, csv_file
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import list_address
from paydesk.web.console.plots import Line, Plot
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_REVENUE = "/account/{merchant_id}/subscriptions/revenue"

SPANS = {Span.WEEK: mark("7 days"), Span.MONTH: mark("30 days"), Span.YEAR: mark("12 months")}
"""What a range is called."""

SHOWN: Mapping[Kind, str] = {
    Kind.NEW: mark("New"),
    Kind.EXPANSION: mark("Expansion"),
    Kind.REACTIVATION: mark("Reactivation"),
    Kind.CONTRACTION: mark("Contraction"),
    Kind.CHURN: mark("Churn"),
}
"""What movements are called; one after a trial is new."""

_DAY_COLUMNS = ("day", "currency", "mrr_before", *(str(kind) for kind in SHOWN), "mrr_after")
_MOVEMENT_COLUMNS = ("subscription_id", "number", "kind", "currency", "amount", "at", "day")
_COHORT_COLUMNS = ("began", "currency", "subscriptions", *(f"month_{number}" for number in range(COHORTS)))


@section.page(_REVENUE, needs=Permission.view)
async def show_revenue(visit: Visit) -> Response:
    """Recurring revenue of one currency over the range asked for, else of 30 days;
    days are those of the merchant's time zone.
    """
    span, period = await _period(visit)
    found = sorted(await revenue(visit.database, visit.shop, period), key=lambda one: -one.counted)
    asked = visit.form.text("currency", 3)
    chosen = next((one for one in found if one.currency == asked), found[0] if found else None)
    currency = chosen.currency if chosen else ""
    address = partial(_address, visit)
    shown = [one for one in await _cohorts(visit, period) if one.currency == currency]
    months = range(max((len(one.shares) for one in shown), default=0))
    return visit.page(
        "revenue.html",
        one=chosen,
        period=period,
        spans=[(address(span=one, currency=currency), visit.texts.get(name)) for one, name in SPANS.items()],
        currencies=[(address(span=span, currency=one.currency), one.currency) for one in found],
        current=address(span=span, currency=currency),
        export=partial(address, span=span),
        kinds=SHOWN,
        standing=_standing(visit, period, chosen) if chosen else None,
        moving=_moving(visit, period, chosen) if chosen else None,
        cohorts=shown,
        months=months,
        cohort_heads=[(str(number), "end") for number in months],
        recovered=await _recovered(visit, period, currency),
        count=partial(format_decimal, locale=visit.texts.locale),
        share=partial(_share, visit),
        named=partial(named, visit, by_month=period.by_month),
        month=partial(named, visit, by_month=True),
    )


@section.page(f"{_REVENUE}/export", needs=Permission.export)
async def export_days(visit: Visit) -> Response:
    """Recurring revenue and its movements by day or month, in every currency, as a file."""
    span, period = await _period(visit)
    return await _file(visit, "revenue", _DAY_COLUMNS, _day_cells(visit, period), period=span)


@section.page(f"{_REVENUE}/movements/export", needs=Permission.export)
async def export_movements(visit: Visit) -> Response:
    """Every movement of every subscription, one by one, as a file."""
    span, period = await _period(visit)
    return await _file(visit, "movements", _MOVEMENT_COLUMNS, _movement_cells(visit, period), period=span)


@section.page(f"{_REVENUE}/cohorts/export", needs=Permission.export)
async def export_cohorts(visit: Visit) -> Response:
    """How many of each month's beginners were there at the end of each month since, as a file."""
    _, period = await _period(visit)
    return await _file(visit, "cohorts", _COHORT_COLUMNS, _cohort_cells(visit, period))


def _standing(visit: Visit, period: Days, one: Revenue) -> Plot:
    """What stood at the end of each day, or month."""
    name = mark("MRR at the end of each month") if period.by_month else mark("MRR at the end of each day")
    stood = [day.after for day in one.by_day]
    return _plot(visit, period, name, [_line(visit, one, mark("MRR"), "now", "area", stood)])


def _moving(visit: Visit, period: Days, one: Revenue) -> Plot:
    """What came on each day upwards, what went downwards."""
    name = mark("Movements of each month") if period.by_month else mark("Movements of each day")
    came = [_sum(day, gains=True) for day in one.by_day]
    went = [_sum(day, gains=False) for day in one.by_day]
    lines = [
        _line(visit, one, mark("What came"), "gain", "bars", came),
        _line(visit, one, mark("What went"), "loss", "bars", went),
    ]
    return _plot(visit, period, name, lines)


def _plot(visit: Visit, period: Days, name: str, lines: Sequence[Line]) -> Plot:
    names = [named(visit, day, by_month=period.by_month) for day in period.days]
    ticks = [tick(visit, day, by_month=period.by_month) for day in period.days]
    return Plot(visit.texts.get(name), names, ticks, lines)


def _line(visit: Visit, one: Revenue, name: str, tone: str, shape: str, amounts: Sequence[Decimal]) -> Line:
    said = [visit.money(amount, one.currency) for amount in amounts]
    return Line(visit.texts.get(name), tone, shape, amounts, said)


def _sum(moved: Movements, *, gains: bool) -> Decimal:
    """What came, or what went, which is negative."""
    amounts = (one.amount for one in moved.by_kind.values() if (one.amount > 0) == gains)
    return sum(amounts, Decimal(0))


def _address(visit: Visit, below: str = "", *, span: Span, currency: str = "") -> str:
    return list_address(visit.url(f"subscriptions/revenue{below}"), {"period": span, "currency": currency})


async def _period(visit: Visit) -> tuple[Span, Days]:
    asked = visit.form.text("period", 10)
    span = next((one for one in SPANS if one == asked), Span.MONTH)
    clock = await read_clock(visit.database, visit.merchant_id, real_now=visit.now)
    return span, period_of(span, zone_named(clock.time_zone), now=visit.now if visit.shop.live else clock.now)


async def _cohorts(visit: Visit, period: Days) -> list[Cohort]:
    return await cohorts(visit.database, visit.shop, today=period.last)


async def _recovered(visit: Visit, period: Days, currency: str) -> Decimal:
    """What was paid after all of charges that failed, as the page of dunning has it."""
    looked_at = days_looked_at(Page(1, since=period.since, until=period.until), now=period.until)
    report = await dunning_report(visit.database, visit.shop, looked_at)
    recovered = (one for one in report.figures if one.outcome == Outcome.RECOVERED and one.currency == currency)
    return sum((one.amount for one in recovered), Decimal(0))


async def _file(
    visit: Visit, what: str, columns: Sequence[str], cells: AsyncIterator[Iterable[object]], **asked: str
) -> Response:
    share = await begin_export(visit)
    await acting.note_export(visit.database, visit.session, what, asked, now=visit.now)
    name = f"{what}-{visit.merchant_id}{'' if visit.shop.live else '-test'}.csv"
    return csv_file(share, name, columns, cells)


async def _day_cells(visit: Visit, period: Days) -> AsyncIterator[Iterable[object]]:
    for one in await revenue(visit.database, visit.shop, period):
        for day in one.by_day:
            moved = (plain_number(day.of(kind).amount) for kind in SHOWN)
            yield (day.day, one.currency, plain_number(day.before), *moved, plain_number(day.after))


async def _movement_cells(visit: Visit, period: Days) -> AsyncIterator[Iterable[object]]:
    async for one in movements(visit.database, visit.shop, period):
        yield (one.subscription_id, one.number, one.kind, one.currency, plain_number(one.amount), one.at, one.day)


async def _cohort_cells(visit: Visit, period: Days) -> AsyncIterator[Iterable[object]]:
    for one in await _cohorts(visit, period):
        yield (one.began, one.currency, one.size, *one.left)


def _share(visit: Visit, share: Decimal | None) -> str:
    return "–" if share is None else str(format_percent(share, "#,##0.#%", locale=visit.texts.locale))
