"""Payment links as customers meet them: what one offers, and whether there is any left."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.customer_links import Link, LinkTo, OpenedLink, wrong_link
from paydesk.domain.merchants.imprints import NO_IMPRINT, Imprint, imprint_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.subscription_terms import Terms

queries = load_statements(__package__ or "", "payment_links.sql")


class Rhythm(StrEnum):
    """How often what a link sells is paid."""

    ONCE = "once"
    MONTHLY = "monthly"
    YEARLY = "yearly"


_SKU = re.compile(r"link-([0-9]{1,15})-[a-z]+", re.ASCII)
_PERIODS = {Rhythm.MONTHLY: Period(1, "month"), Rhythm.YEARLY: Period(1, "year")}
_WRITTEN = {Rhythm.MONTHLY: "1m", Rhythm.YEARLY: "1y"}


@dataclass(frozen=True, slots=True)
class Offer:
    """What a link offers: one price, or one for each rhythm of a subscription.

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

    @property
    def prices(self) -> dict[Rhythm, Decimal]:
        """What one costs, in each rhythm that there is."""
        given = {
            Rhythm.ONCE: self.price,
            Rhythm.MONTHLY: self.monthly_price,
            Rhythm.YEARLY: self.yearly_price,
        }
        return {rhythm: price for rhythm, price in given.items() if price is not None}


@dataclass(frozen=True, slots=True)
class PaymentLink:
    """A payment link, with whose it is and how their pages look; `left` is how many may still be
    sold, None for any number.
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

    @property
    def link(self) -> Link:
        """By which anybody comes to it."""
        return link_to(self.shop, self.id, self.seed)

    @property
    def most(self) -> int:
        """How many somebody may buy at once, 0 if there is none left."""
        return self.offer.most_quantity if self.left is None else max(0, min(self.offer.most_quantity, self.left))

    def sku(self, rhythm: Rhythm) -> str:
        """What pingbacks call the package that it sells."""
        return f"link-{self.id}-{rhythm}"

    def terms(self, rhythm: Rhythm) -> Terms | None:
        """The terms of a subscription that it sells; None for what is paid once."""
        if rhythm is Rhythm.ONCE:
            return None
        offer, price = self.offer, self.offer.prices[rhythm]
        return Terms(offer.title, self.sku(rhythm), offer.currency, price, _PERIODS[rhythm], None, 0)

    def recurring_fields(self, rhythm: Rhythm) -> dict[str, str]:
        """The same as a form says it."""
        if rhythm is Rhythm.ONCE:
            return {}
        return {
            "recurring_name": self.offer.title,
            "recurring_sku_id": self.sku(rhythm),
            "recurring_period": _WRITTEN[rhythm],
        }


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


def link_to(shop: Shop, link_id: int, seed: str) -> Link:
    """The link that leads to a payment link's page."""
    return Link(LinkTo.SALE, shop, link_id, seed)


async def link_selling(database: Database, shop: Shop, sku: str) -> Link | None:
    """The payment link that sells a package, by what pingbacks call that; None if none does."""
    named = _SKU.fullmatch(sku)
    if named is None:
        return None
    seed = await queries.seed_of_open(database, merchant_id=shop.merchant_id, live=shop.live, id=int(named[1]))
    return None if seed is None else link_to(shop, int(named[1]), str(seed))


async def find_payment_link(database: Database, link: OpenedLink) -> PaymentLink:
    """The payment link that somebody opens. Raises: NotFound."""
    shop = link.shop
    row = record_if_any(
        _Row, await queries.find_payment_link(database, merchant_id=shop.merchant_id, live=shop.live, id=link.row_id)
    )
    if row is None or link.row_id is None or not link.fits(row.seed):
        raise wrong_link()
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
    )
