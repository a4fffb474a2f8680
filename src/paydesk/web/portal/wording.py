"""What the portal says about states and problems, in words that a customer can act on."""

from __future__ import annotations

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.domain.billing.open_payments import Standing
from paydesk.domain.payments.states import PAGE_LEFT, PaymentState
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.web.card_words import CARD_ERRORS, DECLINES, TestCard
from paydesk.web.texts import mark

STATES: dict[SubscriptionState, str] = {
    SubscriptionState.TRIAL: mark("Trial"),
    SubscriptionState.ACTIVE: mark("Active"),
    SubscriptionState.CANCELLED: mark("Cancelled"),
    SubscriptionState.EXPIRED: mark("Ended"),
}

PAUSED = mark("Paused")
"""What a subscription is called that is paused, whatever state it is in."""

FAILING = mark("Payment failed")
"""What a subscription is called while its last charge failed and another one is to come."""

PAYMENTS: dict[PaymentState, str] = {
    PaymentState.PROCESSING: mark("being checked"),
    PaymentState.CHALLENGED: mark("being checked"),
    PaymentState.PENDING: mark("on its way"),
    PaymentState.DECLINED: mark("failed"),
    PaymentState.AUTHORIZED: mark("reserved"),
    PaymentState.CAPTURED: mark("paid"),
    PaymentState.VOIDED: mark("given back"),
    PaymentState.PARTIALLY_REFUNDED: mark("partly refunded"),
    PaymentState.REFUNDED: mark("refunded"),
    PaymentState.CHARGED_BACK: mark("taken back by your bank"),
}

CHARGE_DECLINED = "charge_declined"
"""What happened where the bank took the card, but not the charge to it."""

STANDINGS: dict[Standing, tuple[str, str]] = {
    Standing.ON_ITS_WAY: (
        mark("Your payment is on its way"),
        mark("Your bank may take some days to send the money. Nothing more is to be done."),
    ),
    Standing.PAID: (
        mark("This payment is made"),
        mark("Thank you. There is nothing left to pay for this period."),
    ),
    Standing.ENDED: (
        mark("This subscription has ended"),
        mark("Nothing more is charged, so there is nothing to pay."),
    ),
    Standing.NOTHING: (
        mark("There is nothing to pay"),
        mark("Nothing is charged for this subscription at present."),
    ),
    Standing.SUSPENDED: (
        mark("This can’t be paid just now"),
        mark("The shop takes no payments at present. Nothing was charged. Try again later, or ask the shop."),
    ),
}
"""The heading and the text for who comes to pay and can't, or need not any more."""

NOTICES: dict[str, str] = {
    CHARGE_DECLINED: mark(
        "The card was accepted, but the payment did not go through. Nothing was charged. Try another card, or ask your "
        "bank."
    ),
    DeclineReason.DECLINED: mark("The card was declined, so your old card stays. Try another card, or ask your bank."),
    DeclineReason.INSUFFICIENT_FUNDS: mark(
        "The card was declined: there is not enough money available on it. Your old card stays. Try another card."
    ),
    DeclineReason.EXPIRED_CARD: mark(
        "The card was declined because it has expired. Your old card stays. Check the date, or try another card."
    ),
    DeclineReason.WRONG_CVC: mark(
        "The card was declined because the security code is not right. Your old card stays. Check it and try again."
    ),
    DeclineReason.PROCESSING_ERROR: mark(
        "The card was declined because of a technical problem. Your old card stays. Try again in a moment."
    ),
    DeclineReason.AUTHENTICATION_FAILED: mark(
        "The card was declined because your bank could not confirm that it is you. Your old card stays. Try again, or "
        "try another card."
    ),
    DeclineReason.TOO_LATE: mark("The card was declined because the check took too long. Try again."),
    PAGE_LEFT: mark("You left the page without choosing anything, so all stays as it was. Go on when you are ready."),
    "page_failed": mark("That did not work, so all stays as it was. Try again in a moment."),
    "challenge_closed": mark(
        "You left your bank’s confirmation, so your old card stays. Try again when you are ready."
    ),
}
"""Texts by decline reason, or by what happened; `decline_words.notice_for` finds each one."""

FIRST_NOTICES: dict[str, str] = {
    **DECLINES,
    "challenge_closed": mark("You left your bank’s confirmation. Try again when you are ready."),
}
"""The same where there is no old card, as the trial began without one."""

INSTEAD: dict[str, str] = {
    "bank": mark("Bank account"),
    "slow_bank": mark("Bank account"),
    "other": mark("Another method"),
}
"""What is charged instead of a card, by the name that stands in place of its brand."""

TEST_CARDS = (
    TestCard("4242424242424242", mark("approved")),
    TestCard("5555555555554444", mark("approved")),
    TestCard("4000000000003220", mark("3-D Secure")),
    TestCard("4000000000000002", mark("declined")),
    TestCard("4000000000000341", mark("approved now, later charges fail")),
)
"""Cards of the simulator that are worth trying here, and what they do."""

FIELD_ERRORS = CARD_ERRORS
"""The texts for what is wrong with a field: all of them are the card's."""
