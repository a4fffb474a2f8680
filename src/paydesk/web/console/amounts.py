"""Amounts as the ledger has them."""

from __future__ import annotations

from decimal import Decimal

from babel.numbers import format_decimal

from paydesk.core.money import minor_digits
from paydesk.web.console.visit import Visit

_LEDGER_DIGITS = 4


def exact(visit: Visit, currency: str, amount: Decimal) -> str:
    """An amount with the ledger's decimals where it has any, so that a payment's parts sum up
    as they stand.
    """
    digits = minor_digits(currency)
    pattern = "#,##0" + ("." if digits < _LEDGER_DIGITS else "") + "0" * digits + "#" * (_LEDGER_DIGITS - digits)
    return f"{format_decimal(amount, pattern, visit.texts.locale)}\u00a0{currency}"
