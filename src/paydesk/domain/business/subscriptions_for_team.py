"""What a merchant's team looks at: subscriptions found by one box, one with what lies ahead,
packages with versions.

Moves no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import NotFound
from paydesk.core.paging import LARGEST_ID, Page
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.business.search_for_team import id_in
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.for_api import SeenCard
from paydesk.domain.payments.states import PaymentState
from paydesk.domain.subscriptions.for_api import SeenSubscription, SubscriptionFilter, list_subscriptions
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.prorating import charges_with
from paydesk.domain.subscriptions.rows import PackageRow, SubscriptionRow, link_of, package_of, subscription_of
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Package

queries = load_statements(__package__ or "", "subscriptions_for_team.sql")

CHARGES_AHEAD = 12
FAILING = "failing"
"""Stands for a state where running subscriptions whose last charge failed are meant."""
MOST_VERSIONS = 200


@dataclass(frozen=True, slots=True)
class SubscriptionForTeam:
    """A subscription with its customer and card.

    `portal` opens the customer's page: who has it may cancel. It is `charging` just now, or was
    charged by what takes some days, until `sure_by` at the latest.
    """

    subscription: Subscription
    portal: Link
    charging: bool
    sure_by: datetime | None
    agreed: str
    name: str
    country: str
    brand: str
    last4: str
    exp_month: int
    exp_year: int


@dataclass(frozen=True, slots=True)
class DifferenceForTeam:
    """The payment (`id`) of what another plan cost for the rest of a period."""

    id: int
    state: PaymentState
    amount: Decimal
    currency: str
    at: datetime
    plan: str


@dataclass(frozen=True, slots=True)
class ChargeAhead:
    """A charge to come: for which period, when (UTC), how much in main units;
    `retry` if it was tried and failed.
    """

    period: int
    at: datetime
    amount: Decimal
    retry: bool = False


@dataclass(frozen=True, slots=True)
class ListedPackage:
    """A package by its newest version; `package.subscriptions_count` counts those
    of all `versions`.
    """

    package: Package
    versions: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PackageVersion:
    """A package in one version; `taken` is how many subscriptions were ever taken out
    on its terms, and `portal_offered` whether customers may change to it on their page.
    """

    package: Package
    taken: int
    created_at: datetime
    portal_offered: bool


@dataclass(frozen=True, slots=True)
class _CardOf:
    id: int
    brand: str
    last4: str


@dataclass(frozen=True, slots=True)
class _InState:
    state: str
    number: int


class _Subscription(SubscriptionRow, frozen=True):
    brand: str
    last4: str
    exp_month: int
    exp_year: int
    holder: str
    first_name: str
    last_name: str
    country: str
    sure_by: datetime | None


class _Package(PackageRow, frozen=True):
    created_at: datetime
    versions: int


class _Version(PackageRow, frozen=True):
    taken: int
    created_at: datetime
    portal_offered: bool


async def search_subscriptions(
    database: Database, shop: Shop, text: str, state: SubscriptionState | None, page: Page
) -> list[SeenSubscription]:
    """A page of the shop's subscriptions, newest first;
    `text` is an e-mail address, an order reference or an id.
    """
    text = text.replace("\x00", "")
    if "@" in text:
        found = await list_subscriptions(database, shop, SubscriptionFilter(state, email=text), page)
        if found:
            return found
    found = await list_subscriptions(database, shop, SubscriptionFilter(state, reference=text or None), page)
    subscription_id = id_in(text)
    if subscription_id is None:
        return found
    row = record_if_any(
        SubscriptionRow,
        await queries.of_id(database, merchant_id=shop.merchant_id, live=shop.live, id=subscription_id, state=state),
    )
    known = {one.subscription.id for one in found}
    if row is None or row.id in known or not page.since <= row.created_at < page.until:
        return found
    return [SeenSubscription(subscription_of(row), link_of(row)), *found]


async def failing_subscriptions(database: Database, shop: Shop, page: Page) -> list[SeenSubscription]:
    """A page of the shop's running subscriptions whose last charge failed, newest first;
    each is tried again.
    """
    rows = queries.failing(database, merchant_id=shop.merchant_id, live=shop.live, **page.parameters())
    return [SeenSubscription(subscription_of(row), link_of(row)) for row in await records_of(SubscriptionRow, rows)]


async def cards_charged(database: Database, shop: Shop, subscriptions: Sequence[Subscription]) -> dict[int, SeenCard]:
    """The cards that subscriptions are charged to, by the subscriptions' ids."""
    ids = [one.id for one in subscriptions]
    rows = queries.cards_of(database, merchant_id=shop.merchant_id, live=shop.live, ids=ids)
    return {row.id: SeenCard(row.brand, row.last4) for row in await records_of(_CardOf, rows)}


async def count_subscriptions(database: Database, shop: Shop, states: Sequence[str], most: int) -> dict[str, int]:
    """How many subscriptions are in states other than active, or `FAILING`; past `most` each is
    not counted on.
    """
    rows = queries.in_each_state(database, merchant_id=shop.merchant_id, live=shop.live, states=list(states), most=most)
    return {row.state: row.number for row in await records_of(_InState, rows)}


async def find_subscription_for_team(database: Database, shop: Shop, subscription_id: int) -> SubscriptionForTeam:
    """A subscription with all that its page shows.

    Raises: NotFound if the shop has no such subscription in this mode.
    """
    row = record_if_any(
        _Subscription,
        await queries.find_subscription(database, merchant_id=shop.merchant_id, live=shop.live, id=subscription_id),
    )
    if row is None:
        raise NotFound(f"there is no subscription {subscription_id}")
    return SubscriptionForTeam(
        subscription=subscription_of(row),
        portal=link_of(row),
        charging=row.charging_attempt_id is not None and row.sure_by is None,
        sure_by=row.sure_by,
        agreed=row.terms_agreed,
        name=f"{row.first_name} {row.last_name}".strip() or row.holder,
        country=row.country,
        brand=row.brand,
        last4=row.last4,
        exp_month=row.exp_month,
        exp_year=row.exp_year,
    )


async def list_differences(
    database: Database, shop: Shop, subscription_id: int, most: int = 12
) -> list[DifferenceForTeam]:
    """What was charged at once for other plans of a subscription, newest first."""
    names = {"merchant_id": shop.merchant_id, "live": shop.live, "subscription_id": subscription_id}
    return await records_of(DifferenceForTeam, queries.list_differences(database, **names, most=most))


def charges_ahead(
    subscription: Subscription, most: int = CHARGES_AHEAD, balance: Decimal = Decimal(0)
) -> list[ChargeAhead]:
    """The next charges of a running subscription by its calendar, soonest first, with what they
    have of its balance; none of one that has ended.
    """
    if subscription.date_next is None or not subscription.running:
        return []
    then, number = subscription.as_charged_next, subscription.next_period
    price = then.package.terms.price
    currency = then.package.terms.currency
    first, *later = charges_with([price] * most, balance, currency, live=subscription.live)
    ahead = [ChargeAhead(number, subscription.date_next, first, retry=subscription.failures > 0)]
    for charge in later:
        if (due := then.schedule.due(number := number + 1)) is None:
            break
        ahead.append(ChargeAhead(number, due, charge))
    return ahead


async def list_packages(database: Database, shop: Shop, *, before: int = LARGEST_ID, most: int) -> list[ListedPackage]:
    """Packages, newest first, those with an id below `before`."""
    rows = queries.list_packages(database, merchant_id=shop.merchant_id, live=shop.live, before=before, most=most)
    found = await records_of(_Package, rows)
    return [ListedPackage(package_of(row), row.versions, row.created_at) for row in found]


async def list_package_versions(database: Database, shop: Shop, package_id: int) -> list[PackageVersion]:
    """The versions of a package, newest first.

    Raises: NotFound if the shop has no such package in this mode.
    """
    rows = queries.versions_of(
        database, merchant_id=shop.merchant_id, live=shop.live, package_id=package_id, most=MOST_VERSIONS
    )
    found = await records_of(_Version, rows)
    versions = [PackageVersion(package_of(row), row.taken, row.created_at, row.portal_offered) for row in found]
    if not versions:
        raise NotFound(f"there is no package {package_id}")
    return versions
