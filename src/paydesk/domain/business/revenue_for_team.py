"""Monthly recurring revenue as a team looks at it: how it stands, how it moved, who stayed.
Moves no money.

What a subscription brings in a month counts from its first paid period until its end, and not while
it is paused; a trial brings nothing, and one whose charge is failing counts until it ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum

from paydesk.core.money import minor_digits
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.ledger.figures import Days
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "revenue_for_team.sql")

COHORTS = 12
"""So many months are looked at."""
_AT_ONCE = 1000


class Kind(StrEnum):
    """What moved."""

    TRIAL = "trial"
    """A trial began, which brings nothing yet."""
    TRIAL_LOST = "trial_lost"
    NEW = "new"
    CONVERTED = "converted"
    """A trial ended with a payment: new, too."""
    EXPANSION = "expansion"
    REACTIVATION = "reactivation"
    """A pause is over."""
    CONTRACTION = "contraction"
    CHURN = "churn"
    """It ended, or is paused."""


@dataclass(frozen=True, slots=True)
class Moved:
    """How many movements there were of one kind, and what they sum to."""

    amount: Decimal = Decimal(0)
    movements: int = 0

    def and_(self, other: Moved) -> Moved:
        """Both together."""
        return Moved(self.amount + other.amount, self.movements + other.movements)


@dataclass(frozen=True, slots=True)
class Movements:
    """All that moved on a day, or in a month or a range, by kind."""

    day: date
    before: Decimal
    by_kind: Mapping[Kind, Moved] = field(default_factory=dict)

    def of(self, kind: Kind) -> Moved:
        """What moved so; of what is new also that after a trial."""
        found = self.by_kind.get(kind, Moved())
        return found.and_(self.by_kind.get(Kind.CONVERTED, Moved())) if kind is Kind.NEW else found

    @property
    def net(self) -> Decimal:
        """By how much all of it moved."""
        return sum((one.amount for one in self.by_kind.values()), Decimal(0))

    @property
    def after(self) -> Decimal:
        """What all subscriptions bring in a month at its end."""
        return self.before + self.net


@dataclass(frozen=True, slots=True)
class Revenue:
    """A currency's monthly recurring revenue over a range of days.

    `counted_before` is how many subscriptions counted when the range began.
    """

    currency: str
    total: Movements
    by_day: Sequence[Movements]
    counted_before: int

    @property
    def counted(self) -> int:
        """How many subscriptions count at the end of the range."""
        moved = self.total.of
        return (
            self.counted_before
            + moved(Kind.NEW).movements
            + moved(Kind.REACTIVATION).movements
            - moved(Kind.CHURN).movements
        )

    @property
    def customer_churn(self) -> Decimal | None:
        """How many that ended or were paused there were, for each that counted at the beginning."""
        return _share(Decimal(self.total.of(Kind.CHURN).movements), Decimal(self.counted_before))

    @property
    def revenue_churn(self) -> Decimal | None:
        """What churned, as a share of what came in a month at the beginning."""
        return _share(-self.total.of(Kind.CHURN).amount, self.total.before)

    @property
    def trial_conversion(self) -> Decimal | None:
        """Of the trials that came to their end, how many were paid."""
        paid = self.total.by_kind.get(Kind.CONVERTED, Moved()).movements
        return _share(Decimal(paid), Decimal(paid + self.total.of(Kind.TRIAL_LOST).movements))


@dataclass(frozen=True, slots=True)
class Cohort:
    """The subscriptions of a currency that began to count in a month, and how many of them counted
    at the end of it and of each month since.
    """

    currency: str
    began: date
    size: int
    left: tuple[int, ...]

    @property
    def shares(self) -> list[Decimal]:
        """The same as shares of all of them."""
        return [Decimal(one) / self.size for one in self.left] if self.size else []


@dataclass(frozen=True, slots=True)
class Movement:
    """One movement of one subscription."""

    subscription_id: int
    number: int
    kind: Kind
    currency: str
    amount: Decimal
    at: datetime
    day: date


@dataclass(frozen=True, slots=True)
class FigureRow:
    """Movements of one kind on a day, or in a month; without a day those before a range."""

    currency: str
    day: date | None
    kind: Kind
    amount: Decimal
    movements: int


@dataclass(frozen=True, slots=True)
class _MonthlyRow:
    currency: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class _CohortRow:
    currency: str
    began: date
    month: date
    began_then: int
    more: int
    amount: Decimal


async def revenue(database: Database, shop: Shop, period: Days) -> list[Revenue]:
    """How the shop's monthly recurring revenue stood and moved in a period, in each currency."""
    rows = queries.revenue_figures(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        since=period.first,
        until=period.last,
        by_month=period.by_month,
    )
    found: dict[str, list[FigureRow]] = {}
    for row in await records_of(FigureRow, rows):
        found.setdefault(row.currency, []).append(row)
    return [whole(currency, rows, period.days) for currency, rows in found.items()]


async def monthly(database: Database, shop: Shop, *, until: date) -> dict[str, Decimal]:
    """What the shop's subscriptions bring in a month at the end of a day, by currency,
    as `revenue` says it of a period that ends so.
    """
    rows = queries.monthly(database, merchant_id=shop.merchant_id, live=shop.live, until=until)
    return {one.currency: round(one.amount, minor_digits(one.currency)) for one in await records_of(_MonthlyRow, rows)}


def whole(currency: str, rows: Iterable[FigureRow], days: Sequence[date]) -> Revenue:
    """A currency's figures in whole minor units, with the days on which nothing moved.

    What stands is rounded, and each movement is the difference of what stood before and after it:
    so the movements add up to the difference of the ends, of any range.
    """
    by_day: dict[date | None, dict[Kind, Moved]] = {}
    for row in rows:
        by_day.setdefault(row.day, {})[row.kind] = Moved(row.amount, row.movements)
    earlier = Movements(days[0], Decimal(0), by_day.get(None, {}))
    exactly, digits = earlier.after, minor_digits(currency)
    stands = before = round(exactly, digits)
    each: list[Movements] = []
    total: dict[Kind, Moved] = {}
    for day in days:
        told = {}
        for kind, moved in by_day.get(day, {}).items():
            exactly += moved.amount
            told[kind] = Moved(round(exactly, digits) - stands, moved.movements)
            total[kind] = total.get(kind, Moved()).and_(told[kind])
            stands = round(exactly, digits)
        each.append(Movements(day, stands - sum((one.amount for one in told.values()), Decimal(0)), told))
    counted = Revenue(currency, earlier, (), 0).counted
    return Revenue(currency, Movements(days[0], before, total), each, counted)


async def cohorts(database: Database, shop: Shop, *, today: date) -> list[Cohort]:
    """Who stayed of those that began in each of the last months, this one included."""
    months = _months(today)
    rows = queries.cohorts(database, merchant_id=shop.merchant_id, live=shop.live, since=months[0])
    found: dict[tuple[str, date], dict[date, _CohortRow]] = {}
    for row in await records_of(_CohortRow, rows):
        found.setdefault((row.currency, row.began), {})[row.month] = row
    return [_cohort(currency, began, rows, months) for (currency, began), rows in found.items()]


def _cohort(currency: str, began: date, rows: Mapping[date, _CohortRow], months: Sequence[date]) -> Cohort:
    stands, left = 0, []
    for month in months:
        stands += rows[month].more if month in rows else 0
        if month >= began:
            left.append(stands)
    return Cohort(currency, began, sum(row.began_then for row in rows.values()), tuple(left))


def _months(today: date) -> list[date]:
    """The first days of the last months, oldest first."""
    this = today.year * 12 + today.month - 1
    return [date(month // 12, month % 12 + 1, 1) for month in range(this - COHORTS + 1, this + 1)]


async def movements(database: Database, shop: Shop, period: Days) -> AsyncIterator[Movement]:
    """Every movement of a period, by its days, read a thousand at a time."""
    after: tuple[date, int, int] = (date.min, 0, 0)
    while found := await _movements(database, shop, period, after):
        for one in found:
            yield one
        after = (found[-1].day, found[-1].subscription_id, found[-1].number)


async def _movements(database: Database, shop: Shop, period: Days, after: tuple[date, int, int]) -> Sequence[Movement]:
    found = queries.movements(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        since=period.first,
        until=period.last,
        after_day=after[0],
        after_id=after[1],
        after_number=after[2],
        most=_AT_ONCE,
    )
    return await records_of(Movement, found)


def _share(part: Decimal, of: Decimal) -> Decimal | None:
    """A share of what there was; None of nothing."""
    return part / of if of > 0 else None
