"""Made-up pingbacks, to try a merchant's server with:
true in every field, and about nothing that exists.

What no real pingback carries marks them: the order reference, the e-mail address, and an id that is
out of reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType

from msgspec.structs import replace

from paydesk.core.money import Split
from paydesk.core.periods import Period
from paydesk.domain.pingbacks.payload import (
    PaymentReport,
    ReversalReport,
    payment_envelope,
    reversal_envelope,
    subscription_envelope,
)
from paydesk.domain.subscriptions.changing import PAUSED_EVENT, RESUMED_EVENT
from paydesk.domain.subscriptions.lifecycle import Subscription, begin, paused, resumed
from paydesk.domain.subscriptions.retry_times import MOST_RETRIES
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_object import subscription_object
from paydesk.domain.subscriptions.subscription_terms import Package, Terms

ORDER = "paydesk-test-event"
"""The order reference of every made-up pingback."""

EMAIL = "test-event@example.com"

NOBODYS_ID = 2**31 - 1
"""An id that no payment has: the largest that a 32-bit column of a shop's database holds."""

_SPLIT = Split(Decimal("10.00"), Decimal("8.93"), Decimal("0.50"), Decimal("0.57"))
_TERMS = Terms("Test event", ORDER, "USD", Decimal("10.00"), Period(1, "month"), None, 0)


def make_up(event: str, now: datetime) -> str:
    """The made-up pingback of an event, as JSON text without `pingback_ts`;
    `now` is when it would have happened.

    Raises: KeyError if there is no such event; EVENTS has them all.
    """
    return EVENTS[event](event, now)


def _payment(_: str, now: datetime) -> str:
    return payment_envelope(_report(now))


def _reversal(event: str, now: datetime) -> str:
    return reversal_envelope(_report(now), _REVERSALS[event], one_time=True)


def _ended(event: str, now: datetime) -> str:
    began = _subscription(now - timedelta(days=31))
    state = SubscriptionState.EXPIRED if event == "subscription_expired" else SubscriptionState.CANCELLED
    ended = replace(began, state=state, date_next=None)
    if event == "subscription_expired":
        ended = replace(ended, date_end=now, date_expired=now)
    elif event == "subscription_stopped":
        ended = replace(ended, failures=MOST_RETRIES + 1, date_cancelled=now, date_stopped=now, cancelled_by="retries")
    else:
        ended = replace(ended, date_cancelled=now, cancelled_by="customer")
    return subscription_envelope(event, subscription_object(ended))


def _paused(event: str, now: datetime) -> str:
    """A pause, or its end a day later."""
    asking = replace(_subscription(now - timedelta(days=10)), tells_pauses=True)
    if event == RESUMED_EVENT:
        told = resumed(paused(asking, until=now, by="customer", at=now - timedelta(days=1)), at=now)
    else:
        told = paused(asking, until=None, by="customer", at=now)
    return subscription_envelope(event, subscription_object(told))


def _report(now: datetime) -> PaymentReport:
    return PaymentReport(NOBODYS_ID, ORDER, "USD", _SPLIT, now, "Test", "Event", "", "US", EMAIL)


def _subscription(at: datetime) -> Subscription:
    return begin(
        Package(NOBODYS_ID, NOBODYS_ID, _TERMS, 0),
        merchant_id=0,
        live=False,
        subscription_id=NOBODYS_ID,
        payment_id=NOBODYS_ID,
        merchant_order_id=ORDER,
        email=EMAIL,
        time_zone="UTC",
        at=at,
    )


_REVERSALS: Mapping[str, ReversalReport] = {
    "refund": ReversalReport(
        "refund", "reversal_refunded", NOBODYS_ID,
        refund_amount=Decimal("10.00"), total_refunded_amount=Decimal("10.00"),
    ),
    "partial_refund": ReversalReport(
        "partial_refund", "reversal_refunded_partially", NOBODYS_ID,
        refund_amount=Decimal("4.00"), total_refunded_amount=Decimal("4.00"),
    ),
    "refund_failed": ReversalReport(
        "refund_failed", "successful", NOBODYS_ID,
        refund_amount=Decimal("4.00"), total_refunded_amount=Decimal("0.00"), reason="expired_or_canceled_card",
    ),
    "chargeback": ReversalReport(
        "chargeback", "reversal_chargeback", NOBODYS_ID, chargeback_amount=Decimal("10.00"), reason="fraudulent"
    ),
    "chargeback_reversed": ReversalReport(
        "chargeback_reversed", "successful", NOBODYS_ID, chargeback_amount=Decimal("10.00")
    ),
}  # fmt: skip

EVENTS: Mapping[str, Callable[[str, datetime], str]] = MappingProxyType(
    {
        "payment": _payment,
        "subscription_stopped": _ended,
        "subscription_cancelled": _ended,
        "subscription_expired": _ended,
        PAUSED_EVENT: _paused,
        RESUMED_EVENT: _paused,
        "refund": _reversal,
        "partial_refund": _reversal,
        "refund_failed": _reversal,
        "chargeback": _reversal,
        "chargeback_reversed": _reversal,
    }
)
"""Every event that a merchant may be told of, and how it is made up (interface.md §6.1)."""
