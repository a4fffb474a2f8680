"""What a capture, void or refund means: the payment's next state, its ledger posting, its pingback.
Pure, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from paydesk.core.money import Funds, Split, split_reversal
from paydesk.core.payment_systems import payment_system
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import MovementKind, PaymentState
from paydesk.domain.pingbacks.destinations import Addressed
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
class Told:
    """A pingback, and where it goes; None all over if the merchant is told nothing."""

    event: str | None = None
    send_to: str | None = None
    pingback_format: str | None = None
    payload: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What one movement changes, worked out from one `revision` of its payment;
    amounts in the payment's currency.

    `refunded` and the `…_taken` are added to the payment's.
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
    told: Told = Told()


class Reversible(Addressed, frozen=True):
    """A payment as it stands, with what a reversal of it changes and tells.

    `net`, `reserve` and `fees` are null, and not asked for, before it is paid. `shop_now` is its
    shop's time, UTC.
    """

    merchant_id: int
    payment_id: int
    merchant_order_id: str
    state: PaymentState
    revision: int
    amount: Decimal
    currency: str
    net: Decimal
    reserve: Decimal
    fees: Decimal
    refunded: Decimal
    charged_back: Decimal
    pending_taken: Decimal
    reserve_taken: Decimal
    fees_taken: Decimal
    settled_at: datetime | None
    reserve_released_at: datetime | None
    paid_at: datetime | None
    subscription_id: int | None
    first_name: str
    last_name: str
    username: str
    country: str
    email: str
    brand: str
    muted_events: list[str]
    shop_now: datetime

    @property
    def shop(self) -> Shop:
        """Whose payment it is."""
        return Shop(self.merchant_id, self.live)


class ToRecord(Reversible, frozen=True):
    """A movement that is still open, and its payment: a row of `movements_to_record`."""

    movement_id: int
    kind: MovementKind
    moved: Decimal
    fees_returned: bool
    fees_returned_of: Decimal
    settlement_days: int


def change_of(row: ToRecord, *, now: datetime) -> Change:
    """The change that a movement brings; now is the shop's time, UTC."""
    match row.kind:
        case MovementKind.CAPTURE:
            return _captured(row, now)
        case MovementKind.VOID:
            return _voided(row)
        case MovementKind.REFUND:
            return _refunded(row)


def capture_entries(split: Split) -> tuple[Entry, ...]:
    """The posting of a capture: the acquirer owes what was paid; the merchant's net is pending,
    the reserve held.
    """
    return ("acquirer", split.paid), ("pending", -split.net), ("reserve", -split.reserve), ("fees", -split.fees)


def state_after(amount: Decimal, refunded: Decimal, charged_back: Decimal) -> PaymentState:
    """Where a payment stands whose money was taken, by what went back since."""
    if charged_back > 0:
        return PaymentState.CHARGED_BACK
    if refunded > 0:
        return PaymentState.REFUNDED if refunded == amount else PaymentState.PARTIALLY_REFUNDED
    return PaymentState.CAPTURED


def funds_of(row: Reversible) -> Funds:
    """Where a payment's money is, from its columns; what a chargeback took was given back too."""
    return Funds(
        split=Split(row.amount, row.net, row.reserve, row.fees),
        given_back=row.refunded + row.charged_back,
        pending_taken=row.pending_taken,
        reserve_taken=row.reserve_taken,
        fees_taken=row.fees_taken,
        settled=row.settled_at is not None,
        released=row.reserve_released_at is not None,
    )


def payment_report(row: Reversible) -> PaymentReport:
    """The payment as its pingbacks show it."""
    return PaymentReport(
        payment_id=row.payment_id,
        merchant_order_id=row.merchant_order_id,
        currency=row.currency,
        split=Split(row.amount, row.net, row.reserve, row.fees),
        at=row.paid_at or row.shop_now,
        first_name=row.first_name,
        last_name=row.last_name,
        username=row.username,
        country=row.country,
        email=row.email,
        payment_system=payment_system(row.brand),
    )


def told(row: Reversible, reversal: ReversalReport) -> Told:
    """The pingback of a reversal and where it goes; nothing if the account has muted it."""
    if reversal.event in row.muted_events:
        return Told()
    return Told(
        event=reversal.event,
        send_to=row.send_to,
        pingback_format=row.body_format,
        payload=reversal_envelope(payment_report(row), reversal, one_time=row.subscription_id is None),
    )


def _captured(row: ToRecord, now: datetime) -> Change:
    """The money is taken: it becomes pending. The merchant was told of the payment
    when it was authorized.
    """
    split = Split(row.amount, row.net, row.reserve, row.fees)
    return Change(
        shop=row.shop,
        movement_id=row.movement_id,
        revision=row.revision,
        state=PaymentState.CAPTURED,
        entries=capture_entries(split),
        funds_due_at=now + timedelta(days=row.settlement_days),
    )


def _voided(row: ToRecord) -> Change:
    """The hold is let go: nothing was posted, and to the merchant it is a refund of all."""
    report = ReversalReport(
        event=REFUND,
        status=WHOLE,
        reference_id=row.movement_id,
        refund_amount=row.amount,
        total_refunded_amount=row.amount,
    )
    return Change(
        shop=row.shop,
        movement_id=row.movement_id,
        revision=row.revision,
        state=PaymentState.VOIDED,
        told=told(row, report),
    )


def _refunded(row: ToRecord) -> Change:
    """Money went back to the customer: out of reserve, returned fees, pending,
    then available money.
    """
    moved, before = row.moved, row.state
    total = row.refunded + moved
    whole = total == row.amount
    after = PaymentState.REFUNDED if whole else PaymentState.PARTIALLY_REFUNDED
    funds = replace(funds_of(row), fees_returned_of=row.fees_returned_of)
    parts = split_reversal(funds, moved, fees_returned=row.fees_returned)
    report = ReversalReport(
        event=REFUND if whole else PARTIAL_REFUND,
        status=WHOLE if whole else PART,
        reference_id=row.movement_id,
        refund_amount=moved,
        total_refunded_amount=total,
    )
    return Change(
        shop=row.shop,
        movement_id=row.movement_id,
        revision=row.revision,
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
        told=told(row, report),
    )
