"""What an acquirer's own list says: the second witness of what became of money,
beside our books.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from paydesk.adapters.acquirers.instruments import Instrument
from paydesk.adapters.acquirers.marks import Mark


class PurchaseState(StrEnum):
    """How a purchase stands at its acquirer."""

    OPEN = "open"
    """Not decided: it waits for the customer, or the acquirer works on it."""
    PENDING = "pending"
    """Its customer has paid by a slow method, and the money is not sure yet."""
    AUTHORIZED = "authorized"
    CAPTURED = "captured"
    DECLINED = "declined"
    ENDED = "ended"
    """Let go of, canceled or undone: nothing is held or taken."""


@dataclass(frozen=True, slots=True)
class ListedPurchase:
    """A purchase as its acquirer lists it.

    `key` is our idempotency key, empty for what is none of ours; `at` (UTC) is when it was made;
    `amount` is what was asked for, `captured` what was taken and `refunded` what went back of that,
    in main units of `currency`; `mark` says whose it is, None if nobody wrote one.
    `network_reference` and `hold_until` are its approval's, `last4` the card's last digits, and
    `instrument` what was paid with, as far as the acquirer tells.
    """

    key: str
    reference: str
    at: datetime
    amount: Decimal
    currency: str
    state: PurchaseState
    captured: Decimal
    refunded: Decimal
    mark: Mark | None = None
    network_reference: str = ""
    last4: str = ""
    instrument: Instrument | None = None
    hold_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class PurchasePage:
    """Purchases; `next` is the cursor after them, empty on the last page."""

    purchases: tuple[ListedPurchase, ...]
    next: str


@dataclass(frozen=True, slots=True)
class ListedRefund:
    """A refund as its acquirer lists it; `key` is its own, empty for what is none of ours.

    `of_reference` names its purchase, `of_key` is our key of that, empty for a purchase that is
    none of ours, and `mark` says whose the purchase is, None if nobody wrote one; `number` is what
    our books called it, 0 if that is not known; `made` is false while it is on its way and once
    it failed.
    """

    key: str
    reference: str
    of_reference: str
    at: datetime
    amount: Decimal
    currency: str
    made: bool
    of_key: str = ""
    number: int = 0
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class RefundPage:
    """Refunds; `next` is the cursor after them, empty on the last page."""

    refunds: tuple[ListedRefund, ...]
    next: str
