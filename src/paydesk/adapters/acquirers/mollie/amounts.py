"""Amounts as Mollie writes them: text in main units, with just the decimals that the currency has.

Source: docs.mollie.com/reference/common-data-types, "Amount"; docs.mollie.com/docs/multicurrency.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.money import minor_digits
from paydesk.core.wording import noted


def value_of(amount: Decimal, currency: str) -> str:
    """An amount in main units as Mollie writes it: "10.00" of EUR, "10" of JPY.

    Raises: AcquirerRefused if it is no sum of money of that currency.
    """
    if not amount.is_finite() or amount < 0:
        raise AcquirerRefused(noted("the amount %(amount)s is not a sum of money", amount=amount))
    written = amount.quantize(Decimal(1).scaleb(-minor_digits(currency)))
    if written != amount:
        raise AcquirerRefused(
            noted("Mollie does not take %(amount)s %(currency)s: too many decimals", amount=amount, currency=currency)
        )
    return f"{written:f}"


def main_units(value: str) -> Decimal:
    """What Mollie wrote. Raises: OutcomeUnknown if it is no number."""
    try:
        amount = Decimal(value)
    except InvalidOperation:
        raise OutcomeUnknown("Mollie writes an amount that is none") from None
    if not amount.is_finite():
        raise OutcomeUnknown("Mollie writes an amount that is none")
    return amount


def plain(amount: Decimal) -> str:
    """An amount as text for people, without trailing zeros."""
    return f"{amount.normalize() + 0:f}"
