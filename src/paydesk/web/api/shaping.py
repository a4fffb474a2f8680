"""From what the business knows to the shapes that the API answers with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from paydesk.core.money import plain_number
from paydesk.core.payment_systems import payment_system
from paydesk.domain.deliveries.delivery_status import furthest
from paydesk.domain.deliveries.timeline import SeenDelivery
from paydesk.domain.payments.for_api import SeenAttempt, SeenCard, SeenPayment
from paydesk.domain.payments.movement_effects import PART, WHOLE
from paydesk.domain.payments.refunding import SeenRefund
from paydesk.domain.payments.states import PAID, TAKEN, MovementState, PaymentState
from paydesk.domain.pingbacks.for_api import SeenPingback
from paydesk.domain.pingbacks.resending_by_hand import PingbackAttempt
from paydesk.domain.subscriptions.for_api import SeenSubscription
from paydesk.domain.subscriptions.subscription_object import package_object, subscription_object
from paydesk.domain.test_clock.advancing import Summary
from paydesk.web.api.delivery_shapes import Delivery
from paydesk.web.api.refund_shapes import RefundLine
from paydesk.web.api.shapes import (
    Attempt,
    Card,
    ClockEvent,
    ClockJourney,
    Date,
    Package,
    Payment,
    PaymentOrder,
    PaymentWithAttempts,
    Pingback,
    PingbackWithAttempts,
    SentPingback,
    Subscription,
    User,
)

SUCCESSFUL = "successful"

STATUS_WORDS: Mapping[PaymentState, str] = {
    **dict.fromkeys(PAID, SUCCESSFUL),
    PaymentState.VOIDED: WHOLE,
    PaymentState.REFUNDED: WHOLE,
    PaymentState.PARTIALLY_REFUNDED: PART,
    PaymentState.CHARGED_BACK: "reversal_chargeback",
}
"""What pingbacks say of each state that they tell of (interface.md §6.3)."""

REFUND_WORDS: Mapping[MovementState, str] = {
    MovementState.PROCESSING: "processing",
    MovementState.DONE: SUCCESSFUL,
    MovementState.REFUSED: "refused",
    MovementState.FAILED: "failed",
}


def status_word(state: PaymentState) -> str:
    """A payment's state in the words of `payment_order.status`, as pingbacks told it,
    or in its own.
    """
    return STATUS_WORDS.get(state, str(state))


def states_of(word: str) -> frozenset[PaymentState]:
    """The states that a word of `payment_order.status` stands for."""
    return frozenset(state for state in PaymentState if status_word(state) == word)


def payment_shape(seen: SeenPayment) -> Payment:
    """A payment as lists show it."""
    return Payment(**_payment_fields(seen))


def payment_with_attempts(
    seen: SeenPayment, attempts: list[SeenAttempt], deliveries: list[SeenDelivery], refunds: list[SeenRefund]
) -> PaymentWithAttempts:
    """A payment as it is shown alone."""
    reached = furthest(one.status for one in deliveries)
    return PaymentWithAttempts(
        **_payment_fields(seen),
        attempts=[_attempt(one) for one in attempts],
        delivery_status=str(reached) if reached else "",
        deliveries=[_delivery(one) for one in deliveries],
        refunds=[_refund(one) for one in refunds],
    )


def _payment_fields(seen: SeenPayment) -> dict[str, Any]:
    at = (seen.paid_at or seen.created_at).astimezone(UTC)
    order = PaymentOrder(
        id=seen.id,
        merchant_order_id=seen.merchant_order_id,
        payment_system=payment_system(seen.card.brand),
        status=status_word(seen.state),
        paid_amount=plain_number(seen.split.paid),
        paid_currency=seen.currency,
        merchant_net_revenue=plain_number(seen.split.net),
        merchant_rolling_reserve=plain_number(seen.split.reserve),
        fees=plain_number(seen.split.fees),
        date=Date(f"{at:%Y-%m-%d %H:%M:%S.%f}", 3, "UTC"),
    )
    return {
        "payment_order": order,
        "user": User(seen.first_name, seen.last_name, seen.username, seen.country, seen.email),
        "amount": plain_number(seen.amount),
        "currency": seen.currency,
        "captured": seen.state in TAKEN,
        "refunded_amount": plain_number(seen.refunded),
        "subscription_id": seen.subscription_id,
        "card": _card(seen.card),
        "decline_reason": seen.decline_reason,
        "created_at": seconds_of(seen.created_at),
        "paid_at": seconds_of(seen.paid_at),
        "live": seen.live,
    }


def _attempt(seen: SeenAttempt) -> Attempt:
    return Attempt(
        id=seen.id,
        status=str(seen.state),
        amount=plain_number(seen.amount),
        currency=seen.currency,
        card=_card(seen.card),
        decline_reason=seen.decline_reason,
        created_at=seconds_of(seen.created_at),
        finished_at=seconds_of(seen.finished_at),
    )


def _delivery(seen: SeenDelivery) -> Delivery:
    """One line of a timeline as it is shown."""
    return Delivery(
        id=seen.id,
        status=str(seen.status),
        type=str(seen.type),
        carrier_type=seen.carrier,
        carrier_tracking_id=seen.tracking_id,
        carrier_tracking_url=seen.tracking_url,
        refundable=seen.refundable,
        notify_user=seen.notify_user,
        product_description=seen.product_description,
        details=seen.details,
        reason=seen.reason,
        estimated_delivery=seconds_of(seen.estimated_at),
        attachments=seen.attachments,
        shipping_address=seen.shipping_address,
        created_at=seconds_of(seen.created_at),
    )


def _refund(seen: SeenRefund) -> RefundLine:
    return RefundLine(seen.reference_id, plain_number(seen.amount), REFUND_WORDS[seen.state], seconds_of(seen.at))


def _card(card: SeenCard) -> Card:
    return Card(card.brand, card.last4)


def subscription_shape(seen: SeenSubscription, portal_url: str) -> Subscription:
    """The subscription object with the portal's address, and what was never charged."""
    body = subscription_object(seen.subscription, with_init=True)
    package = Package(**package_object(seen.subscription.package))
    missed = seen.subscription.missed
    return Subscription(**{**body, "package": package}, portal_url=portal_url, missed_periods=missed)


def pingback_shape(seen: SeenPingback) -> Pingback:
    """A pingback as lists show it."""
    return Pingback(**_pingback_fields(seen))


def pingback_with_attempts(seen: SeenPingback, attempts: list[PingbackAttempt]) -> PingbackWithAttempts:
    """A pingback as it is shown alone."""
    sent = [
        SentPingback(
            number=one.number,
            at=seconds_of(one.at),
            url=one.url,
            request_headers=one.request_headers,
            request_body=one.request_body,
            status=one.status,
            response_body=one.response_body,
            error=one.error,
            duration_ms=one.duration_ms,
        )
        for one in attempts
    ]
    return PingbackWithAttempts(**_pingback_fields(seen), attempts=sent)


def _pingback_fields(pingback: SeenPingback) -> dict[str, Any]:
    return {
        "id": pingback.id,
        "event": pingback.event,
        "status": str(pingback.state),
        "payment_id": pingback.payment_id,
        "subscription_id": pingback.subscription_id,
        "url": pingback.url,
        "sign_version": pingback.sign_version,
        "format": pingback.format,
        "attempts_count": pingback.attempts,
        "due_at": seconds_of(pingback.due_at),
        "created_at": seconds_of(pingback.created_at),
        "finished_at": seconds_of(pingback.finished_at),
        "payload": msgspec.Raw(pingback.payload.encode()),
        "live": pingback.live,
    }


def summary_shape(summary: Summary) -> ClockJourney:
    """What an advance of the test clock did."""
    return ClockJourney(
        started_at=seconds_of(summary.started_at),
        now=seconds_of(summary.now),
        events=[
            ClockEvent(
                seconds_of(event.at), str(event.what), event.subscription_id, event.payment_id, event.pingback_id
            )
            for event in summary.events
        ],
        counts={str(what): times for what, times in summary.counts.items()},
        unsettled=list(summary.unsettled),
        pingbacks_in_hand=summary.pingbacks_in_hand,
    )


def seconds_of(at: datetime | None) -> int:
    """A moment in Unix seconds, 0 when unset (interface.md §1.3)."""
    return int(at.timestamp()) if at is not None else 0
