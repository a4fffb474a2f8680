"""Packages: what is sold as a subscription, in versions;
the same SKU with other terms is another version.
"""

from __future__ import annotations

from datetime import datetime

from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.rows import PackageRow, package_of
from paydesk.domain.subscriptions.subscription_terms import Package, Terms

queries = load_statements(__package__ or "")


async def agree_package(database: Database, shop: Shop, terms: Terms, *, now: datetime) -> int:
    """The id of the package version with exactly these terms, made if there is none yet.
    Moves no money.
    """
    return int(await queries.agree_package(database, **_named(shop, terms), now=now))


async def find_version(database: Database, shop: Shop, terms: Terms) -> Package | None:
    """The package with exactly these terms, in its version; None if nothing was sold by them."""
    row = record_if_any(PackageRow, await queries.find_version(database, **_named(shop, terms)))
    return None if row is None else package_of(row)


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
