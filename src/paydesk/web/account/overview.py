"""Overview: a merchant's figures over a period, each of which leads to its list,
and a chart of the volume.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_skeleton
from babel.numbers import format_decimal, format_percent
from starlette.responses import Response

from paydesk.core.money import minor_digits
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.first_day import Step, find_first_day, put_first_day_away
from paydesk.domain.business.profiles import ProfileStatus
from paydesk.domain.business.revenue_for_team import revenue
from paydesk.domain.business.test_checkouts import open_test_checkout
from paydesk.domain.ledger.figures import (
    CurrencySales,
    Days,
    PingbackHealth,
    Sales,
    Span,
    has_payments,
    period_of,
    pingback_health,
    recurring,
    sales,
)
from paydesk.domain.merchants.test_clock import read_clock
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import list_address
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_OVERVIEW = "/account/{merchant_id}/overview"

SPANS = {
    Span.TODAY: mark("Today"),
    Span.WEEK: mark("7 days"),
    Span.MONTH: mark("30 days"),
    Span.YEAR: mark("12 months"),
}
"""What a period is called."""

WIDTH, HEIGHT = 720, 160
"""The chart's own units; a page stretches it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart, in the chart's units, and what it shows."""

    x: float
    y: float
    width: float
    height: float
    sales: Sales


@section.page(_OVERVIEW, needs=Permission.view)
async def show_overview(visit: Visit) -> Response:
    """The figures of the period asked for, else of 30 days;
    days are those of the merchant's time zone.
    """
    asked = visit.form.text("period", 10)
    span = Span(asked) if asked in set(Span) else Span.MONTH
    clock = await read_clock(visit.database, visit.merchant_id, real_now=visit.now)
    period = period_of(span, ZoneInfo(clock.time_zone), now=visit.now if visit.shop.live else clock.now)
    health = None
    if visit.can(Permission.view_pingbacks):
        health = await pingback_health(visit.database, visit.shop, period)
    path = visit.url("overview")
    return visit.page(
        "overview.html",
        new=not await has_payments(visit.database, visit.shop),
        day=await find_first_day(visit.database, visit.merchant_id),
        steps=Step,
        profile_states=ProfileStatus,
        views=[(list_address(path, {"period": one}), visit.texts.get(name)) for one, name in SPANS.items()],
        current=list_address(path, {"period": span}),
        period=period,
        sales=await sales(visit.database, visit.shop, period),
        recurring=await recurring(visit.database, visit.shop),
        monthly=defaultdict(Decimal, await _monthly(visit, period)),
        health=health,
        share=_share(visit, health),
        bars=bars_of,
        chart=(WIDTH, HEIGHT),
        count=partial(format_decimal, locale=visit.texts.locale),
        rounded=partial(_rounded, visit),
        named=partial(_named, visit, period),
        listed=partial(_listed, visit, period),
        other_zone=visit.zone.key != clock.time_zone,
    )


@section.action(f"{_OVERVIEW}/test-checkout", needs=Permission.manage_integration)
async def test_checkout(visit: Visit) -> Response:
    """Open a checkout of the test side, as customers see it; who has paid comes back here."""
    token = await open_test_checkout(
        visit.gate,
        visit.session,
        description=visit.texts.get("Your first test order"),
        success_url=visit.services.address + visit.url("overview"),
        now=visit.now,
    )
    return visit.go(f"/checkout/{token}")


@section.action(f"{_OVERVIEW}/first-day", needs=Permission.manage_integration)
async def put_away(visit: Visit) -> Response:
    """Show the list of a first day no more."""
    await put_first_day_away(visit.gate, visit.session, now=visit.now)
    return visit.go(visit.url("overview"), visit.texts.get("The list is put away, for all of your team."))


def bars_of(sold: CurrencySales) -> Sequence[Bar]:
    """The volume of each day as a bar; the highest fills the chart."""
    highest = max(one.volume for one in sold.by_day)
    step = WIDTH / len(sold.by_day)
    bars = []
    for number, one in enumerate(sold.by_day):
        height = float(one.volume / highest) * HEIGHT if highest else 0.0
        bars.append(Bar(round((number + 0.1) * step, 2), round(HEIGHT - height, 2), round(step * 0.8, 2),
                        round(height, 2), one))  # fmt: skip
    return bars


def _listed(visit: Visit, period: Days, page: str, **fields: str) -> str:
    """The list behind a figure, over the period's days."""
    return list_address(visit.url(page), {**fields, "since": str(period.first), "until": str(period.last)})


def _named(visit: Visit, period: Days, day: date) -> str:
    """A day of the chart, or its month."""
    if period.by_month:
        return str(format_skeleton("yMMM", day, locale=visit.texts.locale))
    return str(format_date(day, "medium", locale=visit.texts.locale))


async def _monthly(visit: Visit, period: Days) -> dict[str, Decimal]:
    """What running subscriptions bring in a month, by currency."""
    return {one.currency: one.total.after for one in await revenue(visit.database, visit.shop, period)}


def _rounded(visit: Visit, amount: Decimal, currency: str) -> str:
    """An amount that was worked out, in whole minor units."""
    return visit.money(round(amount, minor_digits(currency)), currency)


def _share(visit: Visit, health: PingbackHealth | None) -> str:
    """Which share of the pingbacks arrived; rounded down, so that 100 % means all."""
    if health is None or not health.total:
        return ""
    per_mille = health.acknowledged * 1000 // health.total
    return str(format_percent(Decimal(per_mille) / 1000, "#,##0.#%", locale=visit.texts.locale))
