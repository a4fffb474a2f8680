"""Proration of a period whose plan changes within it: pure arithmetic, by the second.

Sums are kept exact, as fractions; what is written down are differences of their roundings to four
decimals, so that the parts of a period sum to its time-weighted price, however often it changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from paydesk.core.currencies import charge_digits
from paydesk.core.money import LEDGER_DIGITS
from paydesk.domain.merchants.live_amounts import taken

LEAST_CHARGES: Mapping[str, Decimal] = {
    **dict.fromkeys(("AUD", "BRL", "CAD", "CHF", "EUR", "INR", "NZD", "SGD", "USD"), Decimal("0.50")),
    **dict.fromkeys(("AED", "MYR", "PLN", "RON"), Decimal(2)),
    **dict.fromkeys(("NOK", "SEK"), Decimal(3)),
    "BGN": Decimal(1), "CZK": Decimal(15), "DKK": Decimal("2.50"), "GBP": Decimal("0.30"), "HKD": Decimal(4),
    "HUF": Decimal(175), "JPY": Decimal(50), "MXN": Decimal(10),
}  # fmt: skip
"""The least that acquirers charge, by currency; what is less waits in the balance."""

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Proration:
    """A change of plan within a period that is paid: from `old_price` to `new_price` a period.

    `given_back` of what was paid for the period was refunded or charged back, and counts with this
    change for the first time. `amount` is put into the subscription's balance; a credit is less
    than 0. With a change that `begins` another period at once the rest of this one is given up: it
    costs nothing from then on, or (without credit) what it cost.
    """

    period_number: int
    began_at: datetime
    ends_at: datetime
    at: datetime
    old_price: Decimal
    new_price: Decimal
    given_back: Decimal
    amount: Decimal = Decimal(0)
    begins: bool = False

    @property
    def unused(self) -> Fraction:
        """Which share of the period is to come, counted in whole seconds."""
        whole = (self.ends_at - self.began_at) // _SECOND
        left = (self.ends_at - self.at) // _SECOND
        return Fraction(min(max(left, 0), whole), whole)

    @property
    def kept(self) -> Decimal:
        """What was paid for a whole period, and not given back."""
        return max(self.old_price - self.given_back, Decimal(0))

    @property
    def exact(self) -> Fraction:
        """What is new less what is given up, before rounding."""
        return (Fraction(self.new_price) - Fraction(self.kept)) * self.unused


def difference(earlier: Sequence[Proration], latest: Proration) -> Decimal:
    """What the latest change of a period puts into the balance, after the earlier ones."""
    before = sum((one.exact for one in earlier), Fraction(0))
    return _rounded(before + latest.exact) - _rounded(before)


def _rounded(exact: Fraction) -> Decimal:
    """Four decimals, half-even."""
    return Decimal(round(exact / Fraction(LEDGER_DIGITS))) * LEDGER_DIGITS


def charge_for(price: Decimal, balance: Decimal, currency: str, *, live: bool) -> Decimal:
    """What a renewal charges, its subscription's balance included: nothing if that covers it, or
    leaves less than acquirers charge. `renewal_charge` of the schema is the same.
    """
    if balance == 0:
        return taken(price, currency, live=live)
    charge = (price + balance).quantize(Decimal(1).scaleb(-charge_digits(currency)), ROUND_HALF_EVEN)
    return charge if charge > 0 and charge >= least_charge(currency) else Decimal(0)


def least_charge(currency: str) -> Decimal:
    """The least that a renewal with a balance charges."""
    return LEAST_CHARGES.get(currency, Decimal(0))


def charges_with(prices: Sequence[Decimal], balance: Decimal, currency: str, *, live: bool) -> list[Decimal]:
    """What the next renewals charge at these prices, each with what the one before has left."""
    charges: list[Decimal] = []
    for price in prices:
        charges.append(charge_for(price, balance, currency, live=live))
        balance += price - charges[-1]
    return charges


def counted_back(earlier: Sequence[Proration]) -> Decimal:
    """What of the money given back the earlier changes of a period have counted."""
    return sum((one.given_back for one in earlier), Decimal(0))
