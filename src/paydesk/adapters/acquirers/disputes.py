"""What comes back later at an acquirer: customers' disputes, and refunds that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


class DisputeStatus(StrEnum):
    """How a dispute stands, apart from what it took; a bank may change its mind."""

    INQUIRY = "inquiry"
    """The bank asks what the charge was for; no money has moved."""
    OPEN = "open"
    WON = "won"
    """The bank decided for the merchant."""
    LOST = "lost"
    """The bank decided for the customer; a part may have come back all the same."""
    DROPPED = "dropped"
    """It ended before money moved: an inquiry that was closed, a dispute that was prevented."""


class EvidenceKind(StrEnum):
    """What a file shows that belongs to the merchant's side of a dispute."""

    RECEIPT = "receipt"
    DELIVERY = "delivery"
    MESSAGES = "messages"
    """What was written to and by the customer."""
    SERVICE = "service"
    """That what is no goods was provided."""
    SIGNATURE = "signature"
    REFUND_TERMS = "refund_terms"
    CANCELLATION_TERMS = "cancellation_terms"
    OTHER_PAYMENT = "other_payment"
    """That the payment which looks the same is another one."""
    OTHER = "other"


MEDIA_TYPES: Mapping[str, str] = {"application/pdf": "pdf", "image/png": "png", "image/jpeg": "jpg"}
"""What such a file may be, and how its name ends."""


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """A file of the merchant's side, under a `key` of its own; all in it is seen."""

    key: str
    kind: EvidenceKind
    media_type: str
    content: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """What it is called at the bank."""
        return f"{self.kind}.{MEDIA_TYPES[self.media_type]}"


@dataclass(frozen=True, slots=True)
class Dispute:
    """How a dispute stands: a customer's bank wants the money back, or asks what it was for.

    `of_key` is the purchase's own idempotency key, and `of_merchant` the tag of its merchant, as
    the purchase is marked; empty if it is not. `amount` is what is disputed, in the main unit
    of `currency`, which may be another than the purchase's, and may be more than was paid; `reason`
    is the acquirer's word for it, such as "fraudulent" or "product_not_received"; `at` (UTC) is
    when it stood so.

    `taken` and `returned` are all that the bank took for it so far, and all that it gave back, in
    `currency`. None means what the status says: all of `amount` is taken once it is open, and
    returned once it is won. `of_payment` is `amount` in the purchase's currency as the acquirer
    reckons it, None if it does not say.

    `respond_by` (UTC) is until when the acquirer takes the merchant's side, and `answered` whether
    it was given; each is None if it does not say.

    (At Stripe `taken` and `returned` are the dispute's balance transactions, and a partial win is a
    lost one of which a part came back. At Mollie a payment may have several chargebacks, each taken
    when it is created and returned at its `reversedAt`.)
    """

    reference: str
    of_key: str
    amount: Decimal
    currency: str
    reason: str
    status: DisputeStatus
    at: datetime
    taken: Decimal | None = None
    returned: Decimal | None = None
    of_payment: Decimal | None = None
    respond_by: datetime | None = None
    answered: bool | None = None
    of_merchant: str = ""


@dataclass(frozen=True, slots=True)
class DisputePage:
    """Disputes in the order in which they changed; `next` is the cursor after the last of them.

    An empty page means that there are no more for now; `next` may have moved on all the same.
    """

    disputes: tuple[Dispute, ...]
    next: str


@dataclass(frozen=True, slots=True)
class FailedRefund:
    """A refund that failed after it was made: the customer's bank did not take it.

    `key` is the refund's own idempotency key, empty for one of a purchase of ours that was made in
    the acquirer's own pages; `amount` is in the main unit of `currency`; `reason` is the acquirer's
    word for it, such as "expired_or_canceled_card"; `at` (UTC) is when it failed.
    """

    reference: str
    key: str
    amount: Decimal
    currency: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class FailedRefundPage:
    """Refunds in the order in which they failed; `next` is the cursor after the last of them."""

    refunds: tuple[FailedRefund, ...]
    next: str
