"""What account and console call the states of payments and subscriptions, why a bank said no,
and how a badge is coloured.
"""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.cards import BRAND_RULES, Brand
from paydesk.core.payment_systems import wallet_name
from paydesk.domain.payments.states import NOT_PAID, PAGE_LEFT, TAKEN, PaymentState
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.web.texts import Texts, mark

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
    PaymentState.PENDING: (mark("Pending"), "yellow"),
    PaymentState.PROCESSING: (mark("Processing"), "yellow"),
}

SUBSCRIPTION_STATES: Mapping[SubscriptionState, Badge] = {
    SubscriptionState.TRIAL: (mark("Trial"), "blue"),
    SubscriptionState.ACTIVE: (mark("Active"), "green"),
    SubscriptionState.CANCELLED: (mark("Cancelled"), "secondary"),
    SubscriptionState.EXPIRED: (mark("Completed"), "secondary"),
}

PAYMENT_GROUPS: Mapping[str, tuple[str, frozenset[PaymentState]]] = {
    "taken": (mark("Successful, refunded or not"), TAKEN),
    "given_back": (
        mark("Refunded"),
        frozenset({PaymentState.PARTIALLY_REFUNDED, PaymentState.REFUNDED}),
    ),
    "open": (
        mark("Not sure yet"),
        frozenset({PaymentState.CHALLENGED, PaymentState.PENDING, PaymentState.PROCESSING}),
    ),
}
"""Several states that a list shows together."""

PAYMENT_VIEWS = ("", PaymentState.CAPTURED, PaymentState.AUTHORIZED, "given_back", PaymentState.CHARGED_BACK,
                 PaymentState.DECLINED, PaymentState.VOIDED, "open")  # fmt: skip
"""The tabs of the list: all, then states and groups; between them they show every payment."""

DECLINES: Mapping[DeclineReason, str] = {
    DeclineReason.DECLINED: mark("The bank declined without a reason"),
    DeclineReason.INSUFFICIENT_FUNDS: mark("Not enough money on the card"),
    DeclineReason.EXPIRED_CARD: mark("The card has expired"),
    DeclineReason.WRONG_CVC: mark("The security code was wrong"),
    DeclineReason.PROCESSING_ERROR: mark("The bank could not process it"),
    DeclineReason.AUTHENTICATION_FAILED: mark("The customer was not confirmed by their bank"),
    DeclineReason.STOLEN_CARD: mark("The card was reported stolen"),
    DeclineReason.CLOSED_ACCOUNT: mark("The account behind the card is closed"),
    DeclineReason.TOO_LATE: mark("It came too late"),
    DeclineReason.REQUEST_REFUSED: mark("The acquirer refused the request; nothing was charged"),
    DeclineReason.NOT_REACHED: mark("The acquirer could not be reached; nothing was charged"),
}


METHODS = {
    "bank": mark("Bank payment"),
    "slow_bank": mark("Bank transfer or direct debit"),
    "other": mark("Another method"),
}
"""What was paid with instead of a card, by the name that stands in place of its brand."""


def decline_words(reason: str) -> str:
    """Why a bank said no, to be translated; a reason that is not known stands as it came."""
    if reason == PAGE_LEFT:
        return mark("The customer left the payment page without paying")
    if reason == NOT_PAID:
        return mark("The customer’s bank did not send the money")
    known = DECLINES[DeclineReason(reason)] if reason in set(DeclineReason) else ""
    return known or reason.replace("_", " ").capitalize()


def brand_name(brand: str) -> str:
    """The name of a card scheme; empty for an unknown one."""
    known = Brand(brand) if brand in set(Brand) else Brand.UNKNOWN
    return BRAND_RULES[known].label if known is not Brand.UNKNOWN else ""


def instrument_words(brand: str, last4: str, wallet: str = "") -> str:
    """What was paid with: a card by its brand and last digits, which stay on one line with the dots
    before them, and the wallet that it was in.
    """
    if brand in METHODS:
        return METHODS[brand]
    card = f"{brand_name(brand)} ••••\u00a0{last4}".strip() if last4 else "–"
    return f"{card} ({wallet_name(wallet)})" if wallet else card


def refusal_in_words(texts: Texts, refusal: str) -> str:
    """Why a bank refused to capture, void or refund, in the reader's language as far as the words
    are ours; a bank's own word is said without its underscores.
    """
    said = texts.noted(refusal)
    return said if said != refusal or " " in refusal else refusal.replace("_", " ")
