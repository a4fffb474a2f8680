"""A merchant's figures: what was bought in a period, what recurs, and whether pingbacks arrive.
Moves no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta

from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "figures.sql")


class Span(StrEnum):
    """How far back figures go, today included."""

    TODAY = "today"
    WEEK = "7d"
    MONTH = "30d"
    YEAR = "12m"


NEWEST_DECLINES = 1000
"""Of so many failed payments of a period, the newest, the reasons are counted."""

_REASONS = 4
"""How many reasons are told."""

_DAYS = {Span.TODAY: 1, Span.WEEK: 7, Span.MONTH: 30}


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a time zone from `first` to `last`, both included;
    `days` begin its days, or months if `by_month`.
    """

    first: date
    last: date
    zone: ZoneInfo
    days: tuple[date, ...]
    by_month: bool

    @property
    def before(self) -> Days:
        """As many days, or months, right before."""
        if not self.by_month:
            back = timedelta(days=len(self.days))
            days = tuple(day - back for day in self.days)
            return Days(days[0], days[-1], self.zone, days, by_month=False)
        days = tuple(day - relativedelta(months=len(self.days)) for day in self.days)
        return Days(days[0], self.first - timedelta(days=1), self.zone, days, by_month=True)

    @property
    def since(self) -> datetime:
        """When the first day begins, UTC."""
        return _begin(self.first, self.zone)

    @property
    def until(self) -> datetime:
        """When the day after the last begins, UTC."""
        return _begin(self.last + timedelta(days=1), self.zone)

    @property
    def begins(self) -> list[datetime]:
        """When each of its days, or months, begins, UTC: a database may know other rules of a zone,
        or by its name a fixed offset, as of CET.
        """
        return [_begin(day, self.zone) for day in self.days]


@dataclass(frozen=True, slots=True)
class Sales:
    """What became of the payments begun on a day, or in a month:
    amounts in the currency's main unit.

    `volume` is of the `successful` ones, as paid; `refunded` is what was given back of `refunds`
    of them.
    """

    day: date
    successful: int = 0
    volume: Decimal = Decimal(0)
    failed: int = 0
    refunds: int = 0
    refunded: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class CurrencySales:
    """A currency's sales over a period: all of them, and for each of the period's days,
    none left out; and the same of the period before, up to the same moment of it.
    """

    currency: str
    total: Sales
    by_day: Sequence[Sales]
    before: Sales
    by_day_before: Sequence[Sales]


@dataclass(frozen=True, slots=True)
class Declines:
    """How many payments failed for a reason, as the acquirer said it."""

    reason: str
    payments: int


@dataclass(frozen=True, slots=True)
class Recurring:
    """Running subscriptions of a currency as they are now."""

    currency: str
    active: int
    trials: int
    failing: int


@dataclass(frozen=True, slots=True)
class PingbackHealth:
    """Pingbacks of a period by what became of them."""

    total: int
    waiting: int
    due: int
    exhausted: int

    @property
    def acknowledged(self) -> int:
        """How many the merchant's server has answered with OK."""
        return self.total - self.waiting - self.due - self.exhausted


@dataclass(frozen=True, slots=True)
class SalesRow:
    """What was sold on a day in one currency, as statements return it."""

    day: date
    currency: str
    successful: int
    volume: Decimal
    failed: int
    refunds: int
    refunded: Decimal


def period_of(span: Span, zone: ZoneInfo, *, now: datetime) -> Days:
    """The period that ends with today in a time zone:
    whole days, or for a year twelve calendar months.
    """
    last = now.astimezone(zone).date()
    if span is not Span.YEAR:
        first = last - timedelta(days=_DAYS[span] - 1)
        days = tuple(first + timedelta(days=number) for number in range(_DAYS[span]))
        return Days(first, last, zone, days, by_month=False)
    months = [last.year * 12 + last.month - 1 - back for back in range(11, -1, -1)]
    days = tuple(date(month // 12, month % 12 + 1, 1) for month in months)
    return Days(days[0], last, zone, days, by_month=True)


async def sales(database: Database, shop: Shop, period: Days, *, now: datetime) -> list[CurrencySales]:
    """The shop's sales of a period in each currency that was used in it, the most used first;
    now is the shop's time, UTC: of the period before as much is compared as of this one is over.
    """
    before = period.before
    back = relativedelta(months=len(period.days)) if period.by_month else timedelta(days=len(period.days))
    rows = queries.sales(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        before_since=before.since,
        before_until=min(now - back, period.since),
        since=period.since,
        until=period.until,
        days=[*before.days, *period.days],
        begins=[*before.begins, *period.begins],
    )
    found = by_currency(await records_of(SalesRow, rows))
    shown = [whole_of(currency, days, period) for currency, days in found.items() if max(days) >= period.first]
    return sorted(shown, key=lambda one: (-one.total.successful, one.currency))


def by_currency(rows: Sequence[SalesRow]) -> dict[str, dict[date, Sales]]:
    """The days of each currency on which something happened."""
    found: dict[str, dict[date, Sales]] = {}
    for row in rows:
        one = Sales(row.day, row.successful, row.volume, row.failed, row.refunds, row.refunded)
        found.setdefault(row.currency, {})[row.day] = one
    return found


def whole_of(currency: str, found: dict[date, Sales], period: Days) -> CurrencySales:
    """A currency's sales with the days on which nothing happened."""
    now, before = ([found.get(day, Sales(day)) for day in part.days] for part in (period, period.before))
    return CurrencySales(currency, _total(now), now, _total(before), before)


def _total(days: Sequence[Sales]) -> Sales:
    """The sales of all days together."""
    return Sales(
        days[0].day,
        sum(one.successful for one in days),
        sum((one.volume for one in days), Decimal(0)),
        sum(one.failed for one in days),
        sum(one.refunds for one in days),
        sum((one.refunded for one in days), Decimal(0)),
    )


async def declines(database: Database, shop: Shop, period: Days, currency: str) -> list[Declines]:
    """Why the newest payments of a period that failed did so, the most frequent reasons first."""
    rows = queries.declines(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        since=period.since,
        until=period.until,
        currency=currency,
        newest=NEWEST_DECLINES,
        most=_REASONS,
    )
    return await records_of(Declines, rows)


async def recurring(database: Database, shop: Shop) -> list[Recurring]:
    """The shop's running subscriptions by currency."""
    return await records_of(Recurring, queries.recurring(database, merchant_id=shop.merchant_id, live=shop.live))


async def pingback_health(database: Database, shop: Shop, period: Days) -> PingbackHealth:
    """What became of the shop's pingbacks of a period."""
    return record_of(
        PingbackHealth,
        await queries.pingback_health(
            database, merchant_id=shop.merchant_id, live=shop.live, since=period.since, until=period.until
        ),
    )


async def has_payments(database: Database, shop: Shop) -> bool:
    """Whether anybody ever tried to pay the shop."""
    return bool(await queries.has_payments(database, merchant_id=shop.merchant_id, live=shop.live))


def _begin(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
