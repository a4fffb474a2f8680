"""Overview: what waits for the team, a merchant's figures over a period beside those of the one
before, each of which leads to its list, a chart of the volume, and the newest payments.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from babel.numbers import format_decimal, format_percent
from starlette.responses import Response

from paydesk.core.money import minor_digits
from paydesk.core.paging import Page
from paydesk.core.periods import zone_named
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.first_day import FirstDay, Step, find_first_day, put_first_day_away
from paydesk.domain.business.needs_you import MOST_WAITING, Waiting, failing_endpoints, read_waiting
from paydesk.domain.business.profiles import ProfileStatus
from paydesk.domain.business.revenue_for_team import monthly
from paydesk.domain.business.test_checkouts import open_test_checkout
from paydesk.domain.ledger.figures import (
    NEWEST_DECLINES,
    CurrencySales,
    Days,
    Declines,
    PingbackHealth,
    Recurring,
    Sales,
    Span,
    declines,
    has_payments,
    period_of,
    pingback_health,
    recurring,
    sales,
)
from paydesk.domain.merchants.test_clock import read_clock
from paydesk.domain.payments.for_api import PaymentFilter, SeenPayment, list_payments
from paydesk.domain.pingbacks.health import Endpoint
from paydesk.web.account.face import FACE
from paydesk.web.console.day_names import named
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import list_address
from paydesk.web.console.payment_words import PAYMENT_STATES, decline_words, instrument_words
from paydesk.web.console.plots import spark
from paydesk.web.console.visit import Visit
from paydesk.web.console.volume_plots import volume_plot
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

_LAST = 5
"""How many of the newest payments are shown."""


@dataclass(frozen=True, slots=True)
class Change:
    """By how much a figure moved against the period before, and how that looks."""

    text: str
    tone: str


@dataclass(frozen=True, slots=True)
class _Standing:
    """How the shop stands now, whatever period is looked at."""

    new: bool
    day: FirstDay
    waiting: Waiting
    failing: Sequence[Endpoint]
    last: Sequence[SeenPayment]
    recurring: Sequence[Recurring]
    monthly: dict[str, Decimal]


@dataclass(frozen=True, slots=True)
class _Course:
    """What became of payments and pingbacks of a period; `chosen` is what is shown of `sold`."""

    sold: Sequence[CurrencySales]
    chosen: CurrencySales | None
    declines: Sequence[Declines]
    health: PingbackHealth | None


@section.page(_OVERVIEW, needs=Permission.view)
async def show_overview(visit: Visit) -> Response:
    """The figures of the period asked for, else of 30 days, in the currency asked for, else in the
    most used; days are those of the merchant's time zone.
    """
    asked = visit.form.text("period", 10)
    span = Span(asked) if asked in set(Span) else Span.MONTH
    clock = await read_clock(visit.database, visit.merchant_id, real_now=visit.now)
    now = visit.now if visit.shop.live else clock.now
    period = period_of(span, zone_named(clock.time_zone), now=now)
    # Neither needs the other: side by side they take half as long, on two connections.
    standing, course = await asyncio.gather(_standing(visit, period.last), _course(visit, period, now))
    chosen, waiting, health = course.chosen, standing.waiting, course.health
    currency = chosen.currency if chosen else ""
    address = partial(_address, visit)
    return visit.page(
        "overview.html",
        new=standing.new,
        day=standing.day,
        steps=Step,
        profile_states=ProfileStatus,
        views=[(address(one, currency), visit.texts.get(name)) for one, name in SPANS.items()],
        currencies=[(address(span, one.currency), one.currency) for one in course.sold],
        current=address(span, currency),
        period=period,
        one=chosen,
        plot=volume_plot(visit, period, chosen) if chosen and len(period.days) > 1 else None,
        rows=list(zip(chosen.by_day, chosen.by_day_before, strict=True)) if chosen else [],
        spark=spark,
        change=partial(_change, visit),
        rate=_rate(visit, chosen.total) if chosen else "",
        declines=course.declines,
        most_declines=NEWEST_DECLINES,
        waiting=waiting,
        # The bank goes by real time; beside a test clock its day is one of the shop's own.
        answer_until=waiting.respond_by and waiting.respond_by + (now - visit.now),
        most_waiting=MOST_WAITING,
        failing=standing.failing,
        last=standing.last,
        states=PAYMENT_STATES,
        instrument_words=instrument_words,
        decline_words=decline_words,
        now=now,
        recurring=standing.recurring,
        monthly=defaultdict(Decimal, standing.monthly),
        health=health,
        share=_share(visit, health),
        count=partial(format_decimal, locale=visit.texts.locale),
        rounded=partial(_rounded, visit),
        named=partial(named, visit, by_month=period.by_month),
        listed=partial(_listed, visit, period),
        other_zone=visit.zone.key != clock.time_zone,
    )


async def _standing(visit: Visit, today: date) -> _Standing:
    """How the shop stands now; what pingbacks say only to who may see them."""
    return _Standing(
        new=not await has_payments(visit.database, visit.shop),
        day=await find_first_day(visit.database, visit.merchant_id),
        waiting=await read_waiting(visit.database, visit.shop, real_now=visit.now),
        failing=await failing_endpoints(visit.database, visit.shop) if visit.can(Permission.view_pingbacks) else [],
        last=await list_payments(visit.database, visit.shop, PaymentFilter(), Page(_LAST)),
        recurring=await recurring(visit.database, visit.shop),
        monthly=await monthly(visit.database, visit.shop, until=today),
    )


async def _course(visit: Visit, period: Days, now: datetime) -> _Course:
    """What became of a period; `now` is the shop's time, UTC."""
    sold = await sales(visit.database, visit.shop, period, now=now)
    wanted = visit.form.text("currency", 3)
    chosen = next((one for one in sold if one.currency == wanted), sold[0] if sold else None)
    may_see = visit.can(Permission.view_pingbacks)
    return _Course(
        sold,
        chosen,
        await declines(visit.database, visit.shop, period, chosen.currency) if chosen else [],
        await pingback_health(visit.database, visit.shop, period) if may_see else None,
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


def _change(visit: Visit, now: Decimal | int, before: Decimal | int, *, better: bool = True) -> Change | None:
    """By which share a figure moved; nothing can be said where it was nothing.
    `better`: whether more of it is.
    """
    if not before:
        return None
    moved = round(Decimal(now - before) / before, 2)
    text = str(format_percent(moved, "+#,##0%;−#,##0%" if moved else "0%", locale=visit.texts.locale))
    return Change(visit.texts.apart(text), "secondary" if not moved else "green" if (moved > 0) == better else "red")


def _rate(visit: Visit, total: Sales) -> str:
    """Which share of the payments succeeded, of those that did or failed;
    rounded down, so that 100 % means all.
    """
    decided = total.successful + total.failed
    return _percent(visit, total.successful, decided) if decided else ""


def _address(visit: Visit, span: Span, currency: str) -> str:
    return list_address(visit.url("overview"), {"period": span, "currency": currency})


def _listed(visit: Visit, period: Days, page: str, **fields: str) -> str:
    """The list behind a figure, over the period's days."""
    return list_address(visit.url(page), {**fields, "since": str(period.first), "until": str(period.last)})


def _rounded(visit: Visit, amount: Decimal, currency: str) -> str:
    """An amount that was worked out, in whole minor units."""
    return visit.money(round(amount, minor_digits(currency)), currency)


def _share(visit: Visit, health: PingbackHealth | None) -> str:
    """Which share of the pingbacks arrived; rounded down, so that 100 % means all."""
    if health is None or not health.total:
        return ""
    return _percent(visit, health.acknowledged, health.total)


def _percent(visit: Visit, part: int, of: int) -> str:
    """A share with one decimal, rounded down."""
    return str(format_percent(Decimal(part * 1000 // of) / 1000, "#,##0.#%", locale=visit.texts.locale))
