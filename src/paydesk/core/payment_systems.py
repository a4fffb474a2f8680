"""What a customer paid with, as rows and pages name it: a card's brand,
or what it is instead of a card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CARDS: Final = 1
PAYMENT_SYSTEMS: Final[Mapping[str, int]] = {"bank": 2, "other": 3, "slow_bank": 4}
"""`payment_order.payment_system` of what is no card, by the name that stands in place of a brand;
a card in a wallet is a card (interface.md §5.2).
"""

WALLETS: Final[Mapping[str, str]] = {
    "amazon_pay": "Amazon Pay",
    "apple_pay": "Apple Pay",
    "google_pay": "Google Pay",
    "link": "Link",
    "samsung_pay": "Samsung Pay",
    "test_wallet": "Test Wallet",
}
"""Wallets by the names that acquirers have for them."""


def payment_system(brand: str) -> int:
    """The number by which a merchant is told what an order was paid with."""
    return PAYMENT_SYSTEMS.get(brand, CARDS)


def wallet_name(wallet: str) -> str:
    """A wallet's name for people; empty if there is none."""
    return WALLETS.get(wallet, wallet.replace("_", " ").title())
