"""What the account calls the states of payments, why a bank said no, and how a badge is coloured."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.core.cards import BRAND_RULES, Brand
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.deliveries.states import DeliveryStatus
from paydesk.domain.payments.states import TAKEN, PaymentState
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.web.texts import mark

Badge = tuple[str, str]
"""A text, to be translated, and the tone of its badge."""

PAYMENT_STATES: Mapping[PaymentState, Badge] = {
    PaymentState.CAPTURED: (mark("Paid"), "green"),
    PaymentState.AUTHORIZED: (mark("Authorized"), "blue"),
    PaymentState.PARTIALLY_REFUNDED: (mark("Partly refunded"), "yellow"),
    PaymentState.REFUNDED: (mark("Refunded"), "secondary"),
    PaymentState.CHARGED_BACK: (mark("Charged back"), "red"),
    PaymentState.VOIDED: (mark("Voided"), "secondary"),
    PaymentState.DECLINED: (mark("Declined"), "red"),
    PaymentState.CHALLENGED: (mark("3-D Secure"), "yellow"),
    PaymentState.PROCESSING: (mark("Processing"), "yellow"),
}

PAYMENT_GROUPS: Mapping[str, tuple[str, frozenset[PaymentState]]] = {
    "taken": (mark("Successful, refunded or not"), TAKEN),
    "given_back": (
        mark("Refunded, in part or whole"),
        frozenset({PaymentState.PARTIALLY_REFUNDED, PaymentState.REFUNDED}),
    ),
}
"""Several states that a list shows together."""

_DECLINES: Mapping[str, str] = {
    "declined": mark("The bank declined without a reason"),
    "insufficient_funds": mark("Not enough money on the card"),
    "expired_card": mark("The card has expired"),
    "wrong_cvc": mark("The security code was wrong"),
    "processing_error": mark("The bank could not process it"),
    "authentication_failed": mark("The customer was not confirmed by their bank"),
    "stolen_card": mark("The card was reported stolen"),
    "closed_account": mark("The account behind the card is closed"),
    "too_late": mark("It came too late"),
    "request_refused": mark("The acquirer refused the request; nothing was charged"),
}

PINGBACK_STATES: Mapping[PingbackState, Badge] = {
    PingbackState.WAITING: (mark("Waits for a URL"), "yellow"),
    PingbackState.DUE: (mark("Being sent"), "blue"),
    PingbackState.ACKNOWLEDGED: (mark("Delivered"), "green"),
    PingbackState.EXHAUSTED: (mark("Failed"), "red"),
    PingbackState.MUTED: (mark("Muted"), "secondary"),
}

DELIVERY_STATUSES: Mapping[DeliveryStatus, str] = {
    DeliveryStatus.ORDER_SHIPPED: mark("Shipped"),
    DeliveryStatus.DELIVERED: mark("Arrived"),
    DeliveryStatus.ORDER_PLACED: mark("In preparation"),
}

CHARGEBACK_STATES: Mapping[ChargebackState, Badge] = {
    ChargebackState.OPEN: (mark("Open"), "yellow"),
    ChargebackState.WON: (mark("Won"), "green"),
    ChargebackState.LOST: (mark("Lost"), "red"),
    ChargebackState.INQUIRY: (mark("Inquiry"), "yellow"),
    ChargebackState.DROPPED: (mark("Dropped"), "secondary"),
}


def decline_words(reason: str) -> str:
    """Why a bank said no, to be translated; a reason that is not known stands as it came."""
    return _DECLINES.get(reason) or reason.replace("_", " ").capitalize()


def brand_name(brand: str) -> str:
    """The name of a card scheme; empty for an unknown one."""
    known = Brand(brand) if brand in set(Brand) else Brand.UNKNOWN
    return BRAND_RULES[known].label if known is not Brand.UNKNOWN else ""
