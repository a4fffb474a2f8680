"""Amounts as Stripe writes them: whole numbers of a currency's smallest unit,
with Stripe's own exceptions.

Source: docs.stripe.com/currencies, "Zero-decimal currencies", "Three-decimal currencies" and
    "Special cases".
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.core.money import minor_digits
from paydesk.core.wording import noted

_DIGITS_AT_STRIPE: Final = {"ISK": 2, "UGX": 2, "MGA": 0}
"""Where Stripe counts otherwise than ISO 4217."""
_STEP: Final = {"ISK": 100, "UGX": 100, "BHD": 10, "JOD": 10, "KWD": 10, "OMR": 10, "TND": 10}
"""What the number must be a multiple of: no fraction of a króna or a shilling,
two of a dinar's three decimals."""


def minor_units(amount: Decimal, currency: str) -> int:
    """An amount in main units of `currency` as Stripe counts it: 10.00 USD is 1000, 10 JPY is 10.

    Raises: AcquirerRefused if it is no sum of money that Stripe can take.
    """
    if not amount.is_finite() or amount < 0:
        raise AcquirerRefused(noted("the amount %(amount)s is not a sum of money", amount=amount))
    scaled = amount.scaleb(_digits(currency))
    units = int(scaled)
    if units != scaled or units % _STEP.get(currency, 1):
        raise AcquirerRefused(
            noted("Stripe does not take %(amount)s %(currency)s: too many decimals", amount=amount, currency=currency)
        )
    return units


def main_units(units: int, currency: str) -> Decimal:
    """What Stripe counted, in main units of `currency`."""
    return Decimal(units).scaleb(-_digits(currency.upper()))


def plain(units: int, currency: str) -> str:
    """What Stripe counted as text for people, without trailing zeros."""
    return f"{main_units(units, currency).normalize() + 0:f}"


def _digits(currency: str) -> int:
    """How many decimals Stripe counts."""
    digits = _DIGITS_AT_STRIPE.get(currency)
    return minor_digits(currency) if digits is None else digits
