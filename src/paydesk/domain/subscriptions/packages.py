"""Packages: what is sold as a subscription, in versions;
the same SKU with other terms is another version.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from paydesk.core.errors import Conflict, NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.rows import PackageRow, package_of
from paydesk.domain.subscriptions.subscription_terms import Package, Terms

queries = load_statements(__package__ or "")

MOST_OFFERED = 12
"""How many plans of a currency a shop offers on its customers' pages: a choice, not a catalogue."""


class _Offered(msgspec.Struct, frozen=True):
    currency: str
    count: int


async def agree_package(database: Database, shop: Shop, terms: Terms, *, now: datetime) -> int:
    """The id of the package version with exactly these terms, made if there is none yet.
    Moves no money.
    """
    return int(await queries.agree_package(database, **_named(shop, terms), now=now))


async def find_version(database: Database, shop: Shop, terms: Terms) -> Package | None:
    """The package with exactly these terms, in its version; None if nothing was sold by them."""
    row = record_if_any(PackageRow, await queries.find_version(database, **_named(shop, terms)))
    return None if row is None else package_of(row)


async def find_offered(database: Database, shop: Shop, currency: str) -> list[Package]:
    """The plans that a shop's customers may change to on their page, the cheapest first."""
    found = queries.find_offered(
        database, merchant_id=shop.merchant_id, live=shop.live, currency=currency, most=MOST_OFFERED
    )
    return [package_of(row) for row in await records_of(PackageRow, found)]


async def offer(connection: Connection, shop: Shop, package_id: int, version_id: int, *, offered: bool) -> None:
    """Have customers change to a version on their page, or not any more. What runs stays as it is.
    Moves no money.

    Raises: NotFound; Conflict if `MOST_OFFERED` others are offered already.
    """
    row = await queries.offer(
        connection,
        merchant_id=shop.merchant_id,
        live=shop.live,
        package_id=package_id,
        id=version_id,
        offered=offered,
        most=MOST_OFFERED,
    )
    found = record_if_any(_Offered, row)
    if found is None:
        raise NotFound(f"there is no version {version_id} of package {package_id}")
    if offered and found.count > MOST_OFFERED:
        raise Conflict(f"{MOST_OFFERED} plans in {found.currency} are offered already; take another one back first")


def _named(shop: Shop, terms: Terms) -> dict[str, object]:
    """Terms as the statements name them."""
    trial = terms.trial
    return {
        "merchant_id": shop.merchant_id,
        "live": shop.live,
        "sku_id": terms.sku_id,
        "name": terms.name,
        "currency": terms.currency,
        "price": terms.price,
        "period_length": terms.period.length,
        "period_unit": terms.period.unit,
        "trial_price": trial.price if trial else 0,
        "trial_length": trial.period.length if trial else 0,
        "trial_unit": trial.period.unit if trial else "day",
        "payment_limit": terms.limit,
    }
