"""Recurring revenue: what subscriptions bring in a month, how that moved, and who stayed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_skeleton
from babel.numbers import format_decimal, format_percent
from starlette.responses import Response

from paydesk.core.money import plain_number
from paydesk.core.paging import Page
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import acting
from paydesk.domain.business.dunning_for_team import Outcome, days_looked_at, dunning_report
from paydesk.domain.business.revenue_for_team import (
    COHORTS,
    Cohort,
    Kind,
    Movements,
    cohorts,
    movements,
    revenue,
)
from paydesk.domain.ledger.figures import Days, Span, period_of
from paydesk.domain.merchants.test_clock import read_clock
from paydesk.web.account.face import FACE
from paydesk.web.console.exports import begin_export, csv_file
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import list_address
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

WIDTH, HEIGHT = 720, 160
"""A chart's own units; a page stretches it."""

_DAY_COLUMNS = ("day", "currency", "mrr_before", *(str(kind) for kind in SHOWN), "mrr_after")
_MOVEMENT_COLUMNS = ("subscription_id", "number", "kind", "currency", "amount", "at", "day")
_COHORT_COLUMNS = ("began", "currency", "subscriptions", *(f"month_{number}" for number in range(COHORTS)))


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart, in the chart's units; `tone` is what it is drawn as."""

    x: float
    y: float
    width: float
    height: float
    tone: str


@dataclass(frozen=True, slots=True)
class Step:
    """What a chart shows of a day or month."""

    moved: Movements
    bars: Sequence[Bar]


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
    return visit.page(
        "revenue.html",
        one=chosen,
        period=period,
        spans=[(address(span=one, currency=currency), visit.texts.get(name)) for one, name in SPANS.items()],
        currencies=[(address(span=span, currency=one.currency), one.currency) for one in found],
        current=address(span=span, currency=currency),
        export=partial(address, span=span),
        kinds=SHOWN,
        standing=standing_of(chosen.by_day) if chosen else [],
        moving=moving_of(chosen.by_day) if chosen else [],
        chart=(WIDTH, HEIGHT),
        cohorts=[one for one in await _cohorts(visit, period) if one.currency == currency],
        months=range(COHORTS),
        cohort_heads=[(str(number), "end") for number in range(COHORTS)],
        recovered=await _recovered(visit, period, currency),
        count=partial(format_decimal, locale=visit.texts.locale),
        share=partial(_share, visit),
        named=partial(_named, visit, by_month=period.by_month),
        month=partial(_named, visit, by_month=True),
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


def standing_of(days: Sequence[Movements]) -> list[Step]:
    """What stood at the end of each day as a bar; the highest fills the chart."""
    highest = max(one.after for one in days)
    steps = []
    for number, one in enumerate(days):
        height = _height(one.after, highest, HEIGHT)
        steps.append(Step(one, [_bar(number, len(days), HEIGHT - height, height, "bar")]))
    return steps


def moving_of(days: Sequence[Movements]) -> list[Step]:
    """What came on each day as a bar upwards, what went as one downwards."""
    pairs = [(_sum(one, gains=True), _sum(one, gains=False)) for one in days]
    highest = max(max(pair) for pair in pairs)
    middle, steps = HEIGHT / 2, []
    for number, (one, (gained, lost)) in enumerate(zip(days, pairs, strict=True)):
        up, down = (_height(amount, highest, middle) for amount in (gained, lost))
        bars = [_bar(number, len(days), middle - up, up, "bar"), _bar(number, len(days), middle, down, "bar loss")]
        steps.append(Step(one, bars))
    return steps


def _sum(moved: Movements, *, gains: bool) -> Decimal:
    """What came, or what went, as a positive amount."""
    amounts = [one.amount for one in moved.by_kind.values() if (one.amount > 0) == gains]
    return abs(sum(amounts, Decimal(0)))


def _height(amount: Decimal, highest: Decimal, whole: float) -> float:
    return round(float(max(amount, Decimal(0)) / highest) * whole, 2) if highest > 0 else 0.0


def _bar(number: int, of: int, y: float, height: float, tone: str) -> Bar:
    step = WIDTH / of
    return Bar(round((number + 0.1) * step, 2), round(y, 2), round(step * 0.8, 2), height, tone)


def _address(visit: Visit, below: str = "", *, span: Span, currency: str = "") -> str:
    return list_address(visit.url(f"subscriptions/revenue{below}"), {"period": span, "currency": currency})


async def _period(visit: Visit) -> tuple[Span, Days]:
    asked = visit.form.text("period", 10)
    span = next((one for one in SPANS if one == asked), Span.MONTH)
    clock = await read_clock(visit.database, visit.merchant_id, real_now=visit.now)
    return span, period_of(span, ZoneInfo(clock.time_zone), now=visit.now if visit.shop.live else clock.now)


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


def _named(visit: Visit, day: date, *, by_month: bool) -> str:
    """A day of the chart, or its month."""
    if by_month:
        return str(format_skeleton("yMMM", day, locale=visit.texts.locale))
    return str(format_date(day, "medium", locale=visit.texts.locale))


def _share(visit: Visit, share: Decimal | None) -> str:
    return "–" if share is None else str(format_percent(share, "#,##0.#%", locale=visit.texts.locale))
