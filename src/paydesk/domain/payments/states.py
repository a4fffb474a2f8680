"""The states of a payment and of the attempts to make it, with the one table of allowed transitions
for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class PaymentState(StrEnum):
    """Where an order's payment stands."""

    PROCESSING = "processing"
    """An attempt is committed and its outcome is not known yet."""
    CHALLENGED = "challenged"
    """The customer is asked to confirm with their bank (3-D Secure)."""
    PENDING = "pending"
    """The customer has paid by a slow method: their bank will say in some days whether it pays."""
    DECLINED = "declined"
    """The last attempt took nothing; the customer may try again."""
    AUTHORIZED = "authorized"
    """The money is held, not taken."""
    CAPTURED = "captured"
    """The money is taken."""
    VOIDED = "voided"
    """The hold was let go."""
    PARTIALLY_REFUNDED = "partially_refunded"
    """Some of the money was given back."""
    REFUNDED = "refunded"
    """All of the money was given back."""
    CHARGED_BACK = "charged_back"
    """The customer's bank took money back, a part or all;
    if the merchant wins the dispute it comes again."""


PAYMENT_TRANSITIONS: Mapping[PaymentState, frozenset[PaymentState]] = {
    PaymentState.PROCESSING: frozenset(
        {
            PaymentState.CAPTURED,
            PaymentState.AUTHORIZED,
            PaymentState.DECLINED,
            PaymentState.CHALLENGED,
            PaymentState.PENDING,
        }
    ),
    PaymentState.CHALLENGED: frozenset(
        {PaymentState.CAPTURED, PaymentState.AUTHORIZED, PaymentState.DECLINED, PaymentState.PENDING}
    ),
    PaymentState.PENDING: frozenset({PaymentState.CAPTURED, PaymentState.DECLINED}),
    PaymentState.DECLINED: frozenset({PaymentState.PROCESSING}),
    PaymentState.AUTHORIZED: frozenset({PaymentState.CAPTURED, PaymentState.VOIDED}),
    PaymentState.CAPTURED: frozenset(
        {PaymentState.PARTIALLY_REFUNDED, PaymentState.REFUNDED, PaymentState.CHARGED_BACK}
    ),
    PaymentState.PARTIALLY_REFUNDED: frozenset(
        {PaymentState.REFUNDED, PaymentState.CHARGED_BACK, PaymentState.CAPTURED}
    ),
    PaymentState.REFUNDED: frozenset(
        {PaymentState.CHARGED_BACK, PaymentState.PARTIALLY_REFUNDED, PaymentState.CAPTURED}
    ),
    PaymentState.CHARGED_BACK: frozenset(
        {PaymentState.CAPTURED, PaymentState.PARTIALLY_REFUNDED, PaymentState.REFUNDED}
    ),
    PaymentState.VOIDED: frozenset(),
}

PAID = frozenset({PaymentState.AUTHORIZED, PaymentState.CAPTURED})
"""The merchant has been told that the customer paid, and nothing was undone since."""

TAKEN = frozenset(
    {PaymentState.CAPTURED, PaymentState.PARTIALLY_REFUNDED, PaymentState.REFUNDED, PaymentState.CHARGED_BACK}
)
"""The money was captured once, whatever became of it."""

REPORTED = TAKEN | {PaymentState.AUTHORIZED, PaymentState.VOIDED}
"""The merchant has been told that the customer paid, whatever was undone since."""


REVERSED = frozenset({PaymentState.VOIDED, PaymentState.REFUNDED, PaymentState.CHARGED_BACK})
"""The customer paid, and has all of the money again."""


class AttemptState(StrEnum):
    """Where one attempt stands, as far as we know."""

    PROCESSING = "processing"
    """The intent is committed; the acquirer may or may not have acted."""
    CHALLENGED = "challenged"
    """The acquirer waits for the customer."""
    PENDING = "pending"
    """The acquirer waits for the customer's bank, for some days."""
    APPROVED = "approved"
    DECLINED = "declined"
    FAILED = "failed"
    """The acquirer holds nothing under the key, and can't accept it any more; or what was pending
    has come to nothing."""
    ABANDONED = "abandoned"
    """A challenge ended: the customer chose another way to pay, or did not come back."""
    VOIDING = "voiding"
    """Approved after we had given it up: the approval is being undone."""
    VOIDED = "voided"


PAGE_LEFT = "page_left"
"""Why an attempt was abandoned whose customer did not pay on the acquirer's page
while that was open: no bank has declined anything.
"""

NOT_PAID = "not_paid"
"""Why a pending attempt failed: its customer's bank has not sent the money after all."""

UNSETTLED = frozenset({AttemptState.PROCESSING, AttemptState.CHALLENGED, AttemptState.PENDING})
"""Attempts that hold their payment, and whose outcome the janitor finds."""

ATTEMPT_TRANSITIONS: Mapping[AttemptState, frozenset[AttemptState]] = {
    AttemptState.PROCESSING: frozenset(
        {
            AttemptState.APPROVED,
            AttemptState.DECLINED,
            AttemptState.CHALLENGED,
            AttemptState.PENDING,
            AttemptState.FAILED,
        }
    ),
    AttemptState.CHALLENGED: frozenset(
        {AttemptState.APPROVED, AttemptState.DECLINED, AttemptState.PENDING, AttemptState.ABANDONED}
    ),
    AttemptState.PENDING: frozenset({AttemptState.APPROVED, AttemptState.DECLINED, AttemptState.FAILED}),
    AttemptState.FAILED: frozenset({AttemptState.VOIDING}),
    AttemptState.ABANDONED: frozenset({AttemptState.VOIDING}),
    AttemptState.VOIDING: frozenset({AttemptState.VOIDED}),
    AttemptState.APPROVED: frozenset(),
    AttemptState.DECLINED: frozenset(),
    AttemptState.VOIDED: frozenset(),
}


class MovementKind(StrEnum):
    """How money moves after the authorization."""

    CAPTURE = "capture"
    VOID = "void"
    REFUND = "refund"


class MovementState(StrEnum):
    """Where a capture, a void or a refund stands."""

    PROCESSING = "processing"
    """The intent is committed; the acquirer may or may not have acted."""
    DONE = "done"
    REFUSED = "refused"
    """The acquirer would not; nothing moved."""
    FAILED = "failed"
    """A refund that was made, and that the customer's bank did not take: the money is back."""


MOVEMENT_TRANSITIONS: Mapping[MovementState, frozenset[MovementState]] = {
    MovementState.PROCESSING: frozenset({MovementState.DONE, MovementState.REFUSED}),
    MovementState.DONE: frozenset({MovementState.FAILED}),
    MovementState.REFUSED: frozenset(),
    MovementState.FAILED: frozenset(),
}
