"""What an acquirer's own list says of a purchase or refund, against what is in the books.
Pure, no I/O.
"""

from __future__ import annotations

from decimal import Decimal

from paydesk.adapters.acquirers.listing import ListedPurchase, ListedRefund, PurchaseState
from paydesk.core.money import written
from paydesk.core.wording import noted
from paydesk.domain.operations.differences import BookedAttempt, BookedMovement
from paydesk.domain.payments.states import UNSETTLED, AttemptState, MovementKind, MovementState, PaymentState

_OPEN = UNSETTLED | {AttemptState.VOIDING}
"""Attempts that the janitor asks about: whatever the list says of them will be recorded."""

_TAKEN = frozenset(
    {PaymentState.CAPTURED, PaymentState.PARTIALLY_REFUNDED, PaymentState.REFUNDED, PaymentState.CHARGED_BACK}
)
_ON_THEIR_WAY = frozenset({MovementState.PROCESSING})

UNKNOWN_HERE = noted("it is not in our books, and its mark says that it is ours")


def difference(listed: ListedPurchase, attempt: BookedAttempt) -> str | None:
    """What differs between a purchase in the list and its attempt, in words;
    None if both agree or nobody knows yet.
    """
    state = attempt.state
    if (listed.amount, listed.currency) != (attempt.amount, attempt.currency):
        return noted(
            "it is of %(amount)s, and of %(ours)s in our books",
            amount=_money(listed.amount, listed),
            ours=f"{attempt.amount} {attempt.currency}",
        )
    if state in _OPEN or attempt.moving or attempt.refunding:
        return None
    if state is AttemptState.APPROVED:
        return _of_approved(listed, attempt) if attempt.holds else None
    if _net(listed) > 0 and not attempt.given_back_otherwise:
        return noted(
            "it has %(amount)s of the customer's, and its attempt is %(state)s in our books",
            amount=_money(_net(listed), listed),
            state=state,
        )
    return None


def _of_approved(listed: ListedPurchase, attempt: BookedAttempt) -> str | None:
    payment = attempt.payment_state
    if payment is PaymentState.VOIDED:
        return (
            noted("it has %(amount)s, and is voided in our books", amount=_money(_net(listed), listed))
            if _net(listed) > 0
            else None
        )
    if payment is PaymentState.AUTHORIZED and listed.state is not PurchaseState.AUTHORIZED:
        return noted("it is %(state)s there, and only authorized in our books", state=listed.state)
    if payment in _TAKEN and listed.state is not PurchaseState.CAPTURED:
        return noted("it is %(state)s there, and %(payment)s in our books", state=listed.state, payment=payment)
    # A part that was captured is a capture of all in our books, and a refund of what was let go of.
    if payment not in _TAKEN or _net(listed) == attempt.amount - attempt.refunded:
        return None
    if listed.captured != attempt.amount:
        return noted(
            "%(there)s were captured there, and %(here)s in our books",
            there=_money(listed.captured, listed),
            here=_money(attempt.amount, listed),
        )
    there, here = _money(listed.refunded, listed), _money(attempt.refunded, listed)
    return noted("%(there)s were given back there, and %(here)s in our books", there=there, here=here)


def refund_difference(listed: ListedRefund, movement: BookedMovement | None) -> str | None:
    """What differs between a refund in the list and its movement, in words;
    None if both agree or nobody knows yet.

    `movement` is None for a key that nobody here knows.
    """
    if movement is None:
        unknown = noted(
            "%(amount)s were given back by it, and our books don't know it", amount=_money(listed.amount, listed)
        )
        return unknown if listed.made else None
    state = movement.state
    if state in _ON_THEIR_WAY or movement.kind is not MovementKind.REFUND:
        return None
    if (listed.amount, listed.currency) != (movement.amount, movement.currency):
        return noted(
            "it is of %(amount)s, and of %(ours)s in our books",
            amount=_money(listed.amount, listed),
            ours=f"{movement.amount} {movement.currency}",
        )
    if listed.made != (state is MovementState.DONE):
        if listed.made:
            return noted("it is made there, and %(state)s in our books", state=state)
        return noted("it is not made there, and %(state)s in our books", state=state)
    return None


def had_money(listed: ListedPurchase) -> bool:
    """Whether a purchase holds or took anything, or is about to, whatever was given back of it."""
    return listed.state in (PurchaseState.AUTHORIZED, PurchaseState.CAPTURED, PurchaseState.PENDING)


def has_money(listed: ListedPurchase) -> bool:
    """Whether a purchase holds or took anything that was not given back, or is about to."""
    return _net(listed) > 0 or listed.state is PurchaseState.PENDING


def _net(listed: ListedPurchase) -> Decimal:
    """What the acquirer has, or holds, of the customer's money."""
    if listed.state is PurchaseState.AUTHORIZED:
        return listed.amount
    return listed.captured - listed.refunded if listed.state is PurchaseState.CAPTURED else Decimal(0)


def _money(amount: Decimal, listed: ListedPurchase | ListedRefund) -> str:
    return f"{written(amount, listed.currency)} {listed.currency}"
