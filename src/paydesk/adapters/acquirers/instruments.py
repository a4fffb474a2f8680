"""What a customer paid with on a page of an acquirer's, as far as it may be shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class InstrumentKind(StrEnum):
    """What kind of instrument it is; a card in a wallet is a card."""

    CARD = "card"
    BANK = "bank"
    """A payment from a bank account that its bank confirms at once."""
    SLOW_BANK = "slow_bank"
    """A transfer or direct debit, whose money is sure only in some days."""
    OTHER = "other"
    """A method of which we have no word of our own."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument: a card's `brand` (a name of ours, such as `visa`) and last four digits,
    and the `wallet` that it came from, such as `apple_pay`; each is empty if there is none.

    `reference` is what its acquirer keeps it under, to charge it again; empty if it is not kept. A
    kept card ends with the month `exp_month` of `exp_year`; both are 0 where that is not known.
    `authenticated` if its bank has seen the customer (3-D Secure) when it was paid with. `slow` if
    the money of a later charge is sure only in some days.
    """

    kind: InstrumentKind
    brand: str = ""
    last4: str = ""
    wallet: str = ""
    reference: str = field(default="", repr=False)
    exp_month: int = 0
    exp_year: int = 0
    authenticated: bool = field(default=False, compare=False)
    slow: bool = field(default=False, compare=False)
