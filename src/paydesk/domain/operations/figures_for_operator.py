"""Live money as an operator reads it: what some merchants sold, hold and risk, and what all do
together, day by day. By sums that are kept, never by counting all payments. Moves no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.ledger.figures import CurrencySales, Days, SalesRow, Span, by_currency, period_of, whole_of

queries = load_statements(__package__ or "", "figures_for_operator.sql")

UTC_DAYS = ZoneInfo("UTC")
_NEWEST = 200
"""Among so many of the newest payments the last that was paid is looked for."""

MANY_DISPUTES, MANY_DECLINES, MANY_REFUNDS = Decimal("0.01"), Decimal("0.4"), Decimal("0.15")
"""From which shares of the payments on a merchant is worth a look: card networks warn at one
dispute in a hundred."""

_FEW = 20
"""Of fewer payments no share says anything."""


@dataclass(frozen=True, slots=True)
class Sold:
    """What a merchant sold in one currency."""

    merchant_id: int
    currency: str
    successful: int
    volume: Decimal
    failed: int
    refunds: int
    refunded: Decimal


@dataclass(frozen=True, slots=True)
class Held:
    """What merchants have in one currency."""

    currency: str
    pending: Decimal
    available: Decimal
    reserve: Decimal


@dataclass(frozen=True, slots=True)
class _HeldFor:
    merchant_id: int
    currency: str
    pending: Decimal
    available: Decimal
    reserve: Decimal


@dataclass(frozen=True, slots=True)
class _Standing:
    merchant_id: int
    last_paid_at: datetime | None
    disputes: int


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a merchant's payments, and whether it is worth a look."""

    part: int
    of: int
    most: Decimal

    @property
    def rate(self) -> Decimal | None:
        """The share, None of nothing."""
        return Decimal(self.part) / self.of if self.of else None

    @property
    def high(self) -> bool:
        """Whether it is worth a look."""
        return self.of >= _FEW and Decimal(self.part) >= self.most * self.of


@dataclass(frozen=True, slots=True)
class MerchantFigures:
    """A merchant's last 30 days, today included, and what it has now; `sold` begins with the
    currency that is used most.
    """

    sold: Sequence[Sold] = ()
    held: Sequence[Held] = ()
    last_paid_at: datetime | None = None
    disputes: int = 0

    @property
    def successful(self) -> int:
        """How many payments succeeded, in all currencies."""
        return sum(one.successful for one in self.sold)

    @property
    def declined(self) -> Share:
        """How many payments failed."""
        failed = sum(one.failed for one in self.sold)
        return Share(failed, failed + self.successful, MANY_DECLINES)

    @property
    def disputed(self) -> Share:
        """How many payments were disputed, by when the banks said so."""
        return Share(self.disputes, self.successful, MANY_DISPUTES)

    @property
    def refunded(self) -> Share:
        """How many payments were given back, some or all of each."""
        return Share(sum(one.refunds for one in self.sold), self.successful, MANY_REFUNDS)


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many merchants there are, and what their customers' banks dispute."""

    live: int
    new: int
    suspended: int
    disputes: int


@dataclass(frozen=True, slots=True)
class AllFigures:
    """What all merchants sold in a period, by currency and day, and what they have now."""

    period: Days
    sold: Sequence[CurrencySales]
    held: Sequence[Held]
    crowd: Crowd


@dataclass(slots=True)
class _Gathered:
    sold: list[Sold] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)


async def figures_of_merchants(
    database: Database, merchant_ids: Sequence[int], *, now: datetime
) -> dict[int, MerchantFigures]:
    """The figures of some merchants, each of them included."""
    since = period_of(Span.MONTH, UTC_DAYS, now=now).since
    found = {merchant_id: _Gathered() for merchant_id in merchant_ids}
    asked = list(merchant_ids)
    for sold in await records_of(Sold, queries.sales_of_merchants(database, merchant_ids=asked, since=since)):
        found[sold.merchant_id].sold.append(sold)
    for one in await records_of(_HeldFor, queries.held_for_merchants(database, merchant_ids=asked)):
        found[one.merchant_id].held.append(Held(one.currency, one.pending, one.available, one.reserve))
    rows = queries.standings_of_merchants(database, merchant_ids=asked, since=since, newest=_NEWEST)
    return {
        one.merchant_id: MerchantFigures(
            found[one.merchant_id].sold, found[one.merchant_id].held, one.last_paid_at, one.disputes
        )
        for one in await records_of(_Standing, rows)
    }


async def figures_of_all(database: Database, *, now: datetime) -> AllFigures:
    """Thirty days of all merchants, UTC, today included, and the thirty before."""
    period = period_of(Span.MONTH, UTC_DAYS, now=now)
    found = by_currency(await records_of(SalesRow, queries.sales_of_all(database, since=period.before.since)))
    sold = [whole_of(currency, days, period) for currency, days in found.items()]
    return AllFigures(
        period,
        sorted(sold, key=lambda one: (-one.total.successful, one.currency)),
        await records_of(Held, queries.held_for_all(database)),
        record_of(Crowd, await queries.crowd(database, since=now - timedelta(days=len(period.days)))),
    )
