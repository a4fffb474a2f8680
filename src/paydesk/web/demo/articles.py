"""What the sample shop sells; the currencies have 2, 2, 0 and 3 decimals, so that people see each written."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final


@dataclass(frozen=True, slots=True)
class Article:
    """One thing to buy: `slug` names it in forms, `picture` is a file of `static/`, `price` is in main units."""

    slug: str
    name: str
    text: str
    price: Decimal
    currency: str
    picture: str


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
    )
}
"""All articles by slug, in the order of the shelf."""
