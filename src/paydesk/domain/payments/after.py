"""What a capture, void or refund means: the payment's next state, its ledger posting, its pingback. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from paydesk.core.money import Funds, Split, split_reversal
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import MovementKind, PaymentState
from paydesk.domain.pingbacks.destinations import account_of, body_format, destination
from paydesk.domain.pingbacks.payload import PaymentReport, ReversalReport, reversal_envelope

ZERO = Decimal(0)
Entry = tuple[str, Decimal]
"""An account and what is debited to it (credits are negative)."""

REFUND, PARTIAL_REFUND = "refund", "partial_refund"
WHOLE, PART = "reversal_refunded", "reversal_refunded_partially"
"""`payment_order.status` once all, or a part, was given back (interface.md §6.3)."""

REVERSAL_STATUS: Mapping[PaymentState, str] = {
    PaymentState.AUTHORIZED: "successful",
    PaymentState.CAPTURED: "successful",
    PaymentState.VOIDED: WHOLE,
    PaymentState.REFUNDED: WHOLE,
    PaymentState.PARTIALLY_REFUNDED: PART,
    PaymentState.CHARGED_BACK: "reversal_chargeback",
}
"""`payment_order.status` in pingbacks about what was given back or taken."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one movement changes, worked out from one `revision` of its payment; amounts in the payment's currency.

    `refunded` and the `…_taken` are added to the payment's; `event` is None if the merchant is told nothing.
    """

    shop: Shop
    movement_id: int
    revision: int
    state: PaymentState
    entries: tuple[Entry, ...] = ()
    refunded: Decimal = ZERO
    pending_taken: Decimal = ZERO
    reserve_taken: Decimal = ZERO
    fees_taken: Decimal = ZERO
    funds_due_at: datetime | None = None
    event: str | None = None
    pingback_url: str | None = None
    pingback_format: str | None = None
    payload: str | None = None


def change_of(row: Mapping[str, Any], *, now: datetime) -> Change:
    """The change that a movement brings, from a row of `movements_to_record`; now is the shop's time, UTC."""
    match MovementKind(row["kind"]):
        case MovementKind.CAPTURE:
            return _captured(row, now)
        case MovementKind.VOID:
            return _voided(row)
        case MovementKind.REFUND:
            return _refunded(row)


def capture_entries(split: Split) -> tuple[Entry, ...]:
    """The posting of a capture: the acquirer owes what was paid; the merchant's net is pending, the reserve held."""
    return ("acquirer", split.paid), ("pending", -split.net), ("reserve", -split.reserve), ("fees", -split.fees)


def state_after(amount: Decimal, refunded: Decimal, charged_back: Decimal) -> PaymentState:
    """Where a payment stands whose money was taken, by what went back since."""
    if charged_back > 0:
        return PaymentState.CHARGED_BACK
    if refunded > 0:
        return PaymentState.REFUNDED if refunded == amount else PaymentState.PARTIALLY_REFUNDED
    return PaymentState.CAPTURED


def funds_of(row: Mapping[str, Any]) -> Funds:
    """Where a payment's money is, from its columns; what a chargeback took was given back too."""
    return Funds(
        split=Split(row["amount"], row["net"], row["reserve"], row["fees"]),
        given_back=row["refunded"] + row["charged_back"],
        pending_taken=row["pending_taken"],
        reserve_taken=row["reserve_taken"],
        fees_taken=row["fees_taken"],
        settled=row["settled_at"] is not None,
        released=row["reserve_released_at"] is not None,
    )


def payment_report(row: Mapping[str, Any]) -> PaymentReport:
    """The payment as its pingbacks show it."""
    return PaymentReport(
        payment_id=row["payment_id"],
        merchant_order_id=row["merchant_order_id"],
        currency=row["currency"],
        split=Split(row["amount"], row["net"], row["reserve"], row["fees"]),
        at=row["paid_at"] or row["shop_now"],
        first_name=row["first_name"],
        last_name=row["last_name"],
        username=row["username"],
        country=row["country"],
        email=row["email"],
    )


def told(row: Mapping[str, Any], reversal: ReversalReport) -> dict[str, Any]:
    """The pingback of a reversal and where it goes, as fields of a change; nothing if the account has muted it."""
    if reversal.event in row["muted_events"]:
        return {}
    return {
        "event": reversal.event,
        "pingback_url": destination(row["form_url"], account_of(row), live=row["live"]),
        "pingback_format": body_format(row),
        "payload": reversal_envelope(payment_report(row), reversal, one_time=row["subscription_id"] is None),
    }


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "shop": Shop(row["merchant_id"], row["live"]),
        "movement_id": row["movement_id"],
        "revision": row["revision"],
    }


def _captured(row: Mapping[str, Any], now: datetime) -> Change:
    """The money is taken: it becomes pending. The merchant was told of the payment when it was authorized."""
    split = Split(row["amount"], row["net"], row["reserve"], row["fees"])
    return Change(
        **_named(row),
        state=PaymentState.CAPTURED,
        entries=capture_entries(split),
        funds_due_at=now + timedelta(days=row["settlement_days"]),
    )


def _voided(row: Mapping[str, Any]) -> Change:
    """The hold is let go: nothing was posted, and to the merchant it is a refund of all."""
    report = ReversalReport(
        event=REFUND,
        status=WHOLE,
        reference_id=row["movement_id"],
        refund_amount=row["amount"],
        total_refunded_amount=row["amount"],
    )
    return Change(**_named(row), state=PaymentState.VOIDED, **told(row, report))


def _refunded(row: Mapping[str, Any]) -> Change:
    """Money went back to the customer: out of reserve, returned fees, pending, then available money."""
    moved, before = row["moved"], PaymentState(row["state"])
    total = row["refunded"] + moved
    whole = total == row["amount"]
    after = PaymentState.REFUNDED if whole else PaymentState.PARTIALLY_REFUNDED
    funds = replace(funds_of(row), fees_returned_of=row["fees_returned_of"])
    parts = split_reversal(funds, moved, fees_returned=row["fees_returned"])
    report = ReversalReport(
        event=REFUND if whole else PARTIAL_REFUND,
        status=WHOLE if whole else PART,
        reference_id=row["movement_id"],
        refund_amount=moved,
        total_refunded_amount=total,
    )
    return Change(
        **_named(row),
        # A refund that the bank made before a chargeback may be heard of after it.
        state=before if before is PaymentState.CHARGED_BACK else after,
        entries=(
            ("acquirer", -moved),
            ("pending", parts.pending),
            ("available", parts.available),
            ("reserve", parts.reserve),
            ("fees", parts.fees),
        ),
        refunded=moved,
        pending_taken=parts.pending,
        reserve_taken=parts.reserve,
        fees_taken=parts.fees,
        **told(row, report),
    )
