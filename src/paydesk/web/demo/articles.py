"""What the sample shop sells, once or every month; the currencies have 2, 2, 0 and 3 decimals,
to see each written.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import msgspec

COUPON_CODE: Final = "WELCOME"
"""What a subscriber may type at the checkout: `COUPON_PERCENT` off the first `COUPON_PERIODS`
regular payments.
"""
COUPON_PERCENT: Final = 20
COUPON_PERIODS: Final = 3

_MONTHS_OF_A_YEAR: Final = 10
"""For so many months' price the shop sells a year."""


class Plan(msgspec.Struct, frozen=True):
    """How an article is sold as a subscription, in the words of the checkout request:
    `price` every `period`.

    The first payment is `trial_price` (0 is a free trial) and lasts `trial_period`. `offer` says so
    in the shop's words, with `{first}` and `{price}` where the amounts go, and `hint` what else
    there is to know before the checkout.
    """

    sku: str
    price: Decimal
    period: str
    trial_price: Decimal
    trial_period: str
    offer: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan that a subscriber may change to, with what it costs how often; it is of `quantity`
    parcels at once.
    """

    wish: str
    title: str
    price: Decimal
    period: str
    quantity: int = 1

    @property
    def unit_price(self) -> Decimal:
        """What one of them costs."""
        return self.price / self.quantity


def offers_of(plan: Plan) -> list[Offer]:
    """What a subscriber of an article may choose from."""
    return [
        Offer("usual", "The usual parcel", plan.price, plan.period),
        Offer("double", "Two parcels each time", 2 * plan.price, plan.period, quantity=2),
        Offer("yearly", "A year at the price of ten months", _MONTHS_OF_A_YEAR * plan.price, "1y"),
    ]


def prices_of(plan: Plan) -> set[Decimal]:
    """What a regular payment of an article may be: of any offer, with the shop's coupon or
    without.
    """
    prices = {offer.price for offer in offers_of(plan)}
    return prices | {price * (100 - COUPON_PERCENT) / 100 for price in prices}


@dataclass(frozen=True, slots=True)
class Article:
    """One thing to buy: `slug` names it in forms, `picture` is a file of `static/`,
    `price` is in main units.

    `price` is what is paid when it is ordered; with a `plan` more follows. What is `shipped` is
    sold under the key pair of an account with shipped goods: its money is held until the shop
    confirms the shipment.
    """

    slug: str
    name: str
    text: str
    price: Decimal
    currency: str
    picture: str
    plan: Plan | None = None
    shipped: bool = False


ARTICLES: Final = {
    article.slug: article
    for article in (
        Article(
            "coffee",
            "House espresso",
            "Cocoa, hazelnut, a little orange. 250 g, roasted on Tuesdays.",
            Decimal("10.00"),
            "USD",
            "shop-coffee.svg",
        ),
        Article(
            "mug",
            "Stoneware mug",
            "Holds 300 ml and the warmth. Every glaze runs its own way.",
            Decimal("24.90"),
            "EUR",
            "shop-mug.svg",
        ),
        Article(
            "tea",
            "Sencha, first flush",
            "Fresh and grassy, in a tin that keeps it so. 80 g.",
            Decimal(1500),
            "JPY",
            "shop-tea.svg",
        ),
        Article(
            "pot",
            "Brass coffee pot",
            "For coffee with cardamom, and for guests. Half a litre.",
            Decimal("12.500"),
            "KWD",
            "shop-pot.svg",
        ),
        Article(
            "grinder",
            "Hand grinder",
            "Walnut and steel, made when you order it. Sent by parcel: paid when it leaves us.",
            Decimal("89.00"),
            "EUR",
            "shop-grinder.svg",
            shipped=True,
        ),
        Article(
            "club",
            "Coffee club",
            "The roast of the month in your letter box, before the month has thought of it.",
            Decimal("5.00"),
            "USD",
            "shop-club.svg",
            Plan(
                sku="coffee-club",
                price=Decimal("12.00"),
                period="1m",
                trial_price=Decimal("5.00"),
                trial_period="1m",
                offer="{first} for the first month, then {price} a month",
            ),
        ),
        Article(
            "letter",
            "Tea letter",
            "Three small teas and a page about where they grew. The first one is on us.",
            Decimal("0.00"),
            "EUR",
            "shop-letter.svg",
            Plan(
                sku="tea-letter",
                price=Decimal("9.00"),
                period="1m",
                trial_price=Decimal("0.00"),
                trial_period="14d",
                offer="Free for 14 days, then {price} a month",
                hint="No card is asked for until you stay.",
            ),
        ),
    )
}
"""All articles by slug, in the order of the shelf."""
