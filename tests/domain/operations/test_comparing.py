"""What counts as a difference between an acquirer's list and our books."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from paydesk.adapters.acquirers.listing import ListedPurchase, PurchaseState
from paydesk.domain.operations.comparing import difference

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
TEN, SIX, FOUR, NOTHING = Decimal(10), Decimal(6), Decimal(4), Decimal(0)


def listed(state: PurchaseState, captured: Decimal = NOTHING, refunded: Decimal = NOTHING) -> ListedPurchase:
    return ListedPurchase("key", "pi_1", NOON, TEN, "USD", state, captured, refunded)


def booked(payment: str, refunded: Decimal = NOTHING, **changes: Any) -> dict[str, Any]:
    row = {"state": "approved", "holds": True, "payment_state": payment, "amount": TEN, "currency": "USD"}
    return row | {"refunded": refunded, "refunding": NOTHING, "moving": False} | changes


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
def test_what_agrees_or_is_on_its_way_is_none(there: ListedPurchase, here: dict[str, Any]) -> None:
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
def test_what_differs_is_said_in_words(there: ListedPurchase, here: dict[str, Any], words: str) -> None:
    said = difference(there, here)
    assert said is not None
    assert said.startswith(words)
