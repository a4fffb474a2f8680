"""What a customer paid with on a page of an acquirer's, as far as it may be shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class InstrumentKind(StrEnum):
    """What kind of instrument it is; a card in a wallet is a card."""

    CARD = "card"
    BANK = "bank"
    """A payment from a bank account that its bank confirms at once."""
    OTHER = "other"
    """A method of which we have no word of our own."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument: a card's `brand` (a name of ours, such as `visa`) and last four digits,
    and the `wallet` that it came from, such as `apple_pay`; each is empty if there is none.
    """

    kind: InstrumentKind
    brand: str = ""
    last4: str = ""
    wallet: str = ""
