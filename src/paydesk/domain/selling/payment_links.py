"""Payment links as customers meet them: what one offers, and whether there is any left."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from paydesk.core.currencies import is_current
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.customer_links import Link, LinkTo, OpenedLink, wrong_link
from paydesk.domain.merchants.imprints import NO_IMPRINT, Imprint, imprint_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.selling.plans import Plans, find_versions
from paydesk.domain.subscriptions.subscription_terms import Package, Terms

queries = load_statements(__package__ or "", "payment_links.sql")


class Rhythm(StrEnum):
    """How often what a link sells is paid."""

    ONCE = "once"
    MONTHLY = "monthly"
    YEARLY = "yearly"


_SKU = re.compile(r"link-([0-9]{1,16})-[a-z]+", re.ASCII)
_PERIODS = {Rhythm.MONTHLY: Period(1, "month"), Rhythm.YEARLY: Period(1, "year")}


@dataclass(frozen=True, slots=True)
class Offer:
    """What a link offers: one price, or one for each rhythm of a subscription, or packages in
    `plans`.

    Its pictures are names of stored ones, empty if there is none; `most_sales` is None for any
    number. By `coupons` who buys may use coupons where the account lets customers type them.
    """

    title: str
    description: str
    picture: str
    large_picture: str
    currency: str
    price: Decimal | None
    monthly_price: Decimal | None
    yearly_price: Decimal | None
    most_quantity: int
    most_sales: int | None
    success_url: str
    coupons: bool
    plans: Plans | None

    @property
    def prices(self) -> dict[Rhythm, Decimal]:
        """What one costs, in each rhythm that there is; none of packages."""
        given = {
            Rhythm.ONCE: self.price,
            Rhythm.MONTHLY: self.monthly_price,
            Rhythm.YEARLY: self.yearly_price,
        }
        return {rhythm: price for rhythm, price in given.items() if price is not None}


@dataclass(frozen=True, slots=True)
class Sold:
    """One of the things that a link sells: its page's form names it by `key`; `terms` are those of
    one in a subscription, None for what is paid once.
    """

    key: str
    name: str
    price: Decimal
    terms: Terms | None


@dataclass(frozen=True, slots=True)
class PaymentLink:
    """A payment link, with whose it is and how their pages look.

    `left` is how many may still be sold, None for any number; `packages` are the versions of its
    plans, and `several` says whether its shop sells subscriptions to several of a thing.
    """

    shop: Shop
    id: int
    seed: str = field(repr=False)
    offer: Offer
    active: bool
    changed_at: datetime
    left: int | None
    merchant_name: str
    suspended: bool
    branded_at: datetime | None
    has_logo: bool
    imprint: Imprint = NO_IMPRINT
    packages: Mapping[int, Package] = field(default_factory=dict)
    several: bool = False

    @property
    def link(self) -> Link:
        """By which anybody comes to it."""
        return link_to(self.shop, self.id, self.seed)

    @property
    def for_sale(self) -> bool:
        """Whether anybody may buy by it now, if any is left: nobody can in a currency that was
        withdrawn since.
        """
        return self.active and not self.suspended and is_current(self.offer.currency)

    @property
    def most(self) -> int:
        """How many somebody may buy at once, 0 if there is none left."""
        most = self.offer.most_quantity if self.several or Rhythm.ONCE in self.offer.prices else 1
        return most if self.left is None else max(0, min(most, self.left))

    @property
    def sold(self) -> dict[str, Sold]:
        """What it sells, by its key."""
        if self.offer.plans is None:
            return {rhythm: self._at(rhythm, price) for rhythm, price in self.offer.prices.items()}
        found = (self.packages[version] for version in self.offer.plans.versions if version in self.packages)
        return {
            str(one.version_id): Sold(str(one.version_id), one.terms.name, one.terms.price, one.terms) for one in found
        }

    def _at(self, rhythm: Rhythm, price: Decimal) -> Sold:
        """What it sells at a price of its own; pingbacks call it by the link and the rhythm."""
        offer, period = self.offer, _PERIODS.get(rhythm)
        if period is None:
            return Sold(rhythm, offer.title, price, None)
        terms = Terms(offer.title, f"link-{self.id}-{rhythm}", offer.currency, price, period, None, 0)
        return Sold(rhythm, offer.title, price, terms)


@dataclass(frozen=True, slots=True)
class _Row(Offer):
    seed: str
    active: bool
    changed_at: datetime
    left: int | None
    merchant_name: str
    suspended: bool
    branded_at: datetime | None
    has_logo: bool
    imprint: list[str] | None
    several: bool


@dataclass(frozen=True, slots=True)
class _Selling:
    id: int
    seed: str


def link_to(shop: Shop, link_id: int, seed: str) -> Link:
    """The link that leads to a payment link's page."""
    return Link(LinkTo.SALE, shop, link_id, seed)


async def link_selling(database: Database, shop: Shop, sku: str) -> Link | None:
    """The payment link that sells a package, by what pingbacks call that, the newest of several;
    None if none does.
    """
    named = _SKU.fullmatch(sku)
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    row = await queries.link_selling(database, **side, id=int(named[1]) if named else None, sku_id=sku)
    found = record_if_any(_Selling, row)
    return None if found is None else link_to(shop, found.id, found.seed)


async def find_payment_link(database: Database, link: OpenedLink) -> PaymentLink:
    """The payment link that somebody opens. Raises: NotFound."""
    shop = link.shop
    row = record_if_any(
        _Row, await queries.find_payment_link(database, merchant_id=shop.merchant_id, live=shop.live, id=link.row_id)
    )
    if row is None or link.row_id is None or not link.fits(row.seed):
        raise wrong_link()
    packages = await find_versions(database, shop, row.plans.versions) if row.plans is not None else {}
    return PaymentLink(
        shop=shop,
        id=link.row_id,
        seed=row.seed,
        offer=row,
        active=row.active,
        changed_at=row.changed_at,
        left=row.left,
        merchant_name=row.merchant_name,
        suspended=row.suspended,
        branded_at=row.branded_at,
        has_logo=row.has_logo,
        imprint=imprint_of(row.imprint),
        packages=packages,
        several=row.several,
    )
