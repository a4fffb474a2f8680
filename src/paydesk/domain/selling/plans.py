"""Plans: packages that a payment link sells side by side, each in versions that its team chose.

A version's terms never change, and neither does what a link sells when its package gets another
one: until somebody chooses that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import msgspec

from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.rows import PackageRow, package_of
from paydesk.domain.subscriptions.subscription_terms import Package

queries = load_statements(__package__ or "", "plans.sql")

MOST_PLANS = 6
"""Packages of one page: a choice, not a catalogue."""
LONGEST_ABOUT = 500
"""Characters of what a page says of a package."""

_DAYS = {"day": Decimal(1), "week": Decimal(7), "month": Decimal("30.4375"), "year": Decimal("365.25")}


@dataclass(frozen=True, slots=True)
class Plan:
    """A package that a link sells: its versions, one for each length of a period, and what the page
    says of it, a line for each thing.
    """

    versions: tuple[int, ...]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Plans:
    """All plans of a link, as its row has them, in the order of its page."""

    plans: tuple[Plan, ...]

    @property
    def versions(self) -> tuple[int, ...]:
        """Every version that is sold."""
        return tuple(version for plan in self.plans for version in plan.versions)


def stored(plans: Plans | None) -> str | None:
    """The plans as a link's row has them."""
    return msgspec.json.encode(plans).decode() if plans is not None else None


def replaced(plans: Plans, gone: Collection[int], wanted: int) -> Plans:
    """The plans with one version in the place of others."""
    return Plans(
        tuple(
            replace(plan, versions=tuple(dict.fromkeys(wanted if one in gone else one for one in plan.versions)))
            for plan in plans.plans
        )
    )


def rough_days(period: Period) -> Decimal:
    """About how long a period is: to put lengths and prices in order, never to charge by."""
    return period.length * _DAYS[period.unit]


def in_order(packages: Iterable[Package]) -> list[Package]:
    """Versions by the lengths of their periods, the shortest first."""
    return sorted(packages, key=lambda one: (rough_days(one.terms.period), one.version_id))


def by_price(packages: Sequence[Package]) -> Decimal:
    """What puts packages side by side in order: the lowest price for the same time."""
    return min(one.terms.price / rough_days(one.terms.period) for one in packages)


async def find_versions(database: Database | Connection, shop: Shop, ids: Iterable[int]) -> dict[int, Package]:
    """Versions of a shop's packages that a link may sell, by their ids; none that a coupon has
    made, or that is for several of a thing.
    """
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    rows = await records_of(PackageRow, queries.find_versions(database, **side, ids=sorted(set(ids))))
    return {row.package_version_id: package_of(row) for row in rows}
