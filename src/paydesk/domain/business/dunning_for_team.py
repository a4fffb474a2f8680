"""What became of renewals that failed, as a team looks at it: which are open, which try brought the
money after all, and what was lost, by the bank's reason. Moves no money.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from paydesk.core.paging import EARLIEST, LATEST, Page, Place
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "dunning_for_team.sql")

USUAL_DAYS = timedelta(days=30)
MOST_DAYS = timedelta(days=92)
"""So long a period is looked at at once: every renewal of it is."""
_AT_ONCE = 1000


class Outcome(StrEnum):
    """What became of a renewal that was declined at least once."""

    RECOVERED = "recovered"
    OPEN = "open"
    LOST = "lost"
    """Every try failed, and the subscription was stopped."""
    ENDED = "ended"
    """The subscription was ended by somebody before it was paid."""


@dataclass(frozen=True, slots=True)
class Failing:
    """Charges in one currency that are failing now by one reason; `amount` is what they are for."""

    currency: str
    reason: str
    charges: int
    amount: Decimal


@dataclass(frozen=True, slots=True)
class DunningFigure:
    """Charges of one outcome, in one currency, that failed so many times (`tries`),
    the last time by one reason.
    """

    outcome: Outcome
    tries: int
    reason: str
    currency: str
    charges: int
    amount: Decimal


@dataclass(frozen=True, slots=True)
class FailedCharge:
    """One renewal that failed `tries` times, with what became of it; `created_at` is when it was
    first tried, `paid_at` when it was paid, UTC.
    """

    payment_id: int
    subscription_id: int
    merchant_order_id: str
    period: int
    amount: Decimal
    currency: str
    created_at: datetime
    paid_at: datetime | None
    tries: int
    reason: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Sum:
    """How many charges, of how much in one currency, have one thing in common (`by`)."""

    by: int | str
    currency: str
    charges: int
    amount: Decimal


@dataclass(frozen=True, slots=True)
class DunningReport:
    """What is failing now, and what became of the charges that were first tried in a period."""

    failing: list[Failing]
    figures: list[DunningFigure]

    def count(self, outcome: Outcome) -> int:
        """How many charges came to this."""
        return sum(one.charges for one in self.figures if one.outcome == outcome)

    @property
    def recovered_by_try(self) -> list[Sum]:
        """What was paid after all, by the number of the try again that brought the money."""
        return _summed((one.tries, one) for one in self.figures if one.outcome == Outcome.RECOVERED)

    @property
    def lost_by_reason(self) -> list[Sum]:
        """What was never paid, by the bank's last reason."""
        return _summed((one.reason, one) for one in self.figures if one.outcome == Outcome.LOST)


def _summed(figures: Iterable[tuple[int | str, DunningFigure]]) -> list[Sum]:
    sums: dict[tuple[int | str, str], Sum] = {}
    for by, one in figures:
        known = sums.get((by, one.currency), Sum(by, one.currency, 0, Decimal(0)))
        more = replace(known, charges=known.charges + one.charges, amount=known.amount + one.amount)
        sums[by, one.currency] = more
    return [sums[name] for name in sorted(sums, key=lambda name: (str(name[0]).zfill(4), name[1]))]


def days_looked_at(page: Page, *, now: datetime) -> Page:
    """The period that is asked for, bounded: the last 30 days if none is, 92 at most."""
    until = page.until if page.until < LATEST else now + timedelta(microseconds=1)
    since = page.since if page.since > EARLIEST else until - USUAL_DAYS
    return replace(page, since=max(since, until - MOST_DAYS), until=until)


async def dunning_report(database: Database, shop: Shop, period: Page) -> DunningReport:
    """What is failing now, and what became of a period's charges that failed."""
    side: dict[str, object] = {"merchant_id": shop.merchant_id, "live": shop.live}
    failing = await records_of(Failing, queries.failing_now(database, **side))
    asked = queries.dunning_figures(database, **side, since=period.since, until=period.until)
    return DunningReport(failing, await records_of(DunningFigure, asked))


async def failed_charges(database: Database, shop: Shop, period: Page) -> AsyncIterator[FailedCharge]:
    """Every charge of a period that failed, newest first, read a thousand at a time."""
    following = replace(period, most=_AT_ONCE)
    while found := await _failed(database, shop, following):
        for charge in found:
            yield charge
        following = replace(following, before=Place(found[-1].created_at, found[-1].payment_id))


async def _failed(database: Database, shop: Shop, page: Page) -> Sequence[FailedCharge]:
    asked = queries.failed_charges(database, merchant_id=shop.merchant_id, live=shop.live, **page.parameters())
    return await records_of(FailedCharge, asked)
