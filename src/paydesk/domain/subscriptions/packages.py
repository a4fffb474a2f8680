"""Packages: what is sold as a subscription, in versions;
the same SKU with other terms is another version.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from paydesk.core.errors import Conflict, NotFound
from paydesk.core.wording import plural, worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.live_amounts import require_taken
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.rows import PackageRow, package_of
from paydesk.domain.subscriptions.subscription_terms import Package, Terms

queries = load_statements(__package__ or "")

MOST_OFFERED = 12
"""How many plans of a currency a shop offers on its customers' pages: a choice, not a catalogue."""


@dataclass(frozen=True, slots=True)
class MadeVersion:
    """A version of a package; `fresh` if it was not there before."""

    package_id: int
    version_id: int
    fresh: bool


class _Offered(msgspec.Struct, frozen=True):
    currency: str
    count: int


async def agree_package(database: Connection, shop: Shop, terms: Terms, *, now: datetime) -> int:
    """The id of the package version with exactly these terms, made if there is none yet.
    Moves no money.
    """
    return int(await queries.agree_package(database, **_named(shop, terms), now=now))


async def find_version(database: Connection, shop: Shop, terms: Terms) -> Package | None:
    """The package with exactly these terms, in its version; None if nothing was sold by them."""
    row = record_if_any(PackageRow, await queries.find_version(database, **_named(shop, terms)))
    return None if row is None else package_of(row)


async def make_package(connection: Connection, shop: Shop, terms: Terms, *, now: datetime) -> MadeVersion:
    """A package with its first version; the one with exactly these terms, if it is there.
    Moves no money.

    Raises: Conflict if its SKU is another package's, or as `make_version` raises it.
    """
    known = await find_version(connection, shop, terms)
    if known is None:
        side = {"merchant_id": shop.merchant_id, "live": shop.live}
        if await queries.find_package_id(connection, **side, sku_id=terms.sku_id) is not None:
            raise Conflict(
                worded(
                    "there is a package %(sku_id)s already; make a version of that, or take another SKU",
                    sku_id=terms.sku_id,
                )
            )
    return await make_version(connection, shop, terms, now=now)


async def make_version(connection: Connection, shop: Shop, terms: Terms, *, now: datetime) -> MadeVersion:
    """A version of the package of a SKU; the one with exactly these terms, if it is there.
    Moves no money.

    Raises: Conflict for a live price with more decimals than acquirers take.
    """
    require_taken(shop, terms.currency, terms.price, terms.first_amount)
    known = await find_version(connection, shop, terms)
    if known is not None:
        return MadeVersion(known.id, known.version_id, fresh=False)
    await agree_package(connection, shop, terms, now=now)
    made = await find_version(connection, shop, terms)
    assert made is not None, "it was agreed just now"
    return MadeVersion(made.id, made.version_id, fresh=True)


async def find_sku(database: Database, shop: Shop, package_id: int) -> str:
    """What the shop calls a package. Raises: NotFound."""
    sku_id = await queries.find_sku(database, merchant_id=shop.merchant_id, live=shop.live, id=package_id)
    if sku_id is None:
        raise NotFound(f"there is no package {package_id}")
    return str(sku_id)


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
        raise Conflict(
            plural(
                "%(count)s plan in %(currency)s is offered already; take another one back first",
                "%(count)s plans in %(currency)s are offered already; take another one back first",
                count=MOST_OFFERED,
                currency=found.currency,
            )
        )


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
        "quantity": terms.quantity,
    }
