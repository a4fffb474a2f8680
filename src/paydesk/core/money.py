"""Amounts of money: decimals with their currency's digits, never floats."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache

from iso4217 import Currency

from paydesk.core.errors import Malformed

LEDGER_DIGITS = Decimal("0.0001")
"""Every amount in the ledger has four decimals (wire.md §2, Money)."""

LARGEST = Decimal("999999999999.9999")
"""What a `numeric(20,4)` column and a JSON number both hold without loss."""

_PLAIN_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,18})?")


@cache
def minor_digits(currency: str) -> int:
    """How many decimals the currency has (ISO 4217): 2 for USD, 0 for JPY, 3 for BHD."""
    return Currency(currency).exponent or 0


def parse_currency(text: str, field: str = "currency") -> str:
    """Check an ISO 4217 code of a currency that people pay with.

    Raises: Malformed, naming the field.
    """
    try:
        known = Currency(text)
    except ValueError:
        known = None
    if known is None or known.exponent is None:
        raise Malformed(f'{field} "{text[:20]}" is not an ISO 4217 currency code; write it like "USD" or "EUR"', field)
    return text


def parse_amount(text: str, currency: str, field: str = "amount") -> Decimal:
    """Read a positive amount in main units of `currency`: plain digits, a dot, at most the currency's decimals.

    Raises: Malformed, saying what is wrong and what was expected.
    """
    if not _PLAIN_NUMBER.fullmatch(text):
        raise Malformed(f'{field} "{text[:40]}" is not a plain decimal number; write it like "10.00"', field)
    digits = minor_digits(currency)
    given = len(text.partition(".")[2])
    if given > digits:
        raise Malformed(f'{field} "{text}" has {given} decimals, {currency} allows {digits}', field)
    amount = Decimal(text)
    if amount <= 0:
        raise Malformed(f'{field} "{text}" must be greater than 0', field)
    if amount > LARGEST:
        raise Malformed(f'{field} "{text}" is larger than {LARGEST}', field)
    return amount


def plain_number(amount: Decimal) -> Decimal:
    """The same amount, written without trailing zeros, an exponent, or a minus before zero, as JSON shows it."""
    return Decimal(format((amount + 0).normalize(), "f"))


@dataclass(frozen=True, slots=True)
class FeePlan:
    """What a merchant pays for a payment: `rate` and `reserve_rate` are fractions, `fixed` is in main units."""

    rate: Decimal = Decimal("0.03")
    fixed: Decimal = Decimal("0.30")
    reserve_rate: Decimal = Decimal("0.05")


@dataclass(frozen=True, slots=True)
class Split:
    """How a paid amount divides; `net + reserve + fees == paid` always, and `net` may be negative (wire.md §2)."""

    paid: Decimal
    net: Decimal
    reserve: Decimal
    fees: Decimal


def split_payment(paid: Decimal, plan: FeePlan) -> Split:
    """Divide a paid amount by the fee plan, four decimals, half-even; nothing is due on a payment of 0."""
    if paid == 0:
        return Split(paid, Decimal(0), Decimal(0), Decimal(0))
    fees = (paid * plan.rate + plan.fixed).quantize(LEDGER_DIGITS, ROUND_HALF_EVEN)
    reserve = (paid * plan.reserve_rate).quantize(LEDGER_DIGITS, ROUND_HALF_EVEN)
    return Split(paid, paid - fees - reserve, reserve, fees)
