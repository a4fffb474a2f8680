"""What counts as a difference between an acquirer's list and our books."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from paydesk.adapters.acquirers.listing import ListedPurchase, PurchaseState
from paydesk.domain.operations.comparing import difference
from paydesk.domain.operations.differences import BookedAttempt
from paydesk.domain.payments.states import AttemptState, PaymentState

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
TEN, SIX, FOUR, NOTHING = Decimal(10), Decimal(6), Decimal(4), Decimal(0)


def listed(state: PurchaseState, captured: Decimal = NOTHING, refunded: Decimal = NOTHING) -> ListedPurchase:
    return ListedPurchase("key", "pi_1", NOON, TEN, "USD", state, captured, refunded)


def booked(
    payment: str,
    refunded: Decimal = NOTHING,
    *,
    state: str = "approved",
    holds: bool = True,
    refunding: Decimal = NOTHING,
    moving: bool = False,
) -> BookedAttempt:
    return BookedAttempt(
        key="key",
        merchant_id=1,
        live=True,
        id=1,
        payment_id=1,
        state=AttemptState(state),
        amount=TEN,
        currency="USD",
        holds=holds,
        payment_state=PaymentState(payment),
        refunded=refunded,
        refunding=refunding,
        moving=moving,
        clock=timedelta(0),
    )


@pytest.mark.parametrize(
    ("there", "here"),
    [
        (listed(PurchaseState.CAPTURED, TEN), booked("captured")),
        (listed(PurchaseState.CAPTURED, TEN, FOUR), booked("partially_refunded", FOUR)),
        (listed(PurchaseState.CAPTURED, SIX), booked("partially_refunded", FOUR)),
        (listed(PurchaseState.CAPTURED, TEN), booked("charged_back")),
        (listed(PurchaseState.AUTHORIZED), booked("authorized")),
        (listed(PurchaseState.ENDED), booked("voided")),
        (listed(PurchaseState.CAPTURED, TEN, TEN), booked("voided")),
        (listed(PurchaseState.DECLINED), booked("declined", state="declined")),
        (listed(PurchaseState.CAPTURED, TEN, TEN), booked("captured", state="voided", holds=False)),
        (listed(PurchaseState.CAPTURED, TEN), booked("authorized", moving=True)),
        (listed(PurchaseState.CAPTURED, TEN, FOUR), booked("captured", refunding=FOUR)),
        (listed(PurchaseState.CAPTURED, TEN), booked("processing", state="processing")),
    ],
)
def test_what_agrees_or_is_on_its_way_is_none(there: ListedPurchase, here: BookedAttempt) -> None:
    assert difference(there, here) is None


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        (listed(PurchaseState.CAPTURED, TEN, FOUR), booked("captured"), "4.00 USD were given back there, and 0.00 USD"),
        (listed(PurchaseState.CAPTURED, SIX), booked("captured"), "6.00 USD were captured there, and 10.00 USD"),
        (listed(PurchaseState.ENDED), booked("captured"), "it is ended there, and captured in our books"),
        (listed(PurchaseState.CAPTURED, TEN), booked("authorized"), "it is captured there, and only authorized"),
        (listed(PurchaseState.AUTHORIZED), booked("voided"), "it has 10.00 USD, and is voided in our books"),
        (listed(PurchaseState.CAPTURED, TEN), booked("captured", state="failed"), "it has 10.00 USD of the customer's"),
    ],
)
def test_what_differs_is_said_in_words(there: ListedPurchase, here: BookedAttempt, words: str) -> None:
    said = difference(there, here)
    assert said is not None
    assert said.startswith(words)
