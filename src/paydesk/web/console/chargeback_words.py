"""What is said of disputes: their states, and the banks' reasons in plain words."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.business.chargebacks_for_team import ChargebackForTeam
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.web.texts import mark

STATES: Mapping[ChargebackState, tuple[str, str]] = {
    ChargebackState.INQUIRY: (mark("Inquiry"), "yellow"),
    ChargebackState.OPEN: (mark("Money taken"), "red"),
    ChargebackState.WON: (mark("Won"), "green"),
    ChargebackState.LOST: (mark("Lost"), "red"),
    ChargebackState.DROPPED: (mark("Dropped"), "secondary"),
}
"""What a state is called, and its colour."""

_PARTLY_WON = (mark("Partly won"), "yellow")

REASONS: Mapping[str, tuple[str, str]] = {
    "fraudulent": (
        mark("The cardholder says that they did not pay this"),
        mark("Show that it was them: the same name, address or device as before, 3-D Secure, goods signed for."),
    ),
    "unrecognized": (
        mark("The cardholder does not recognise the payment"),
        mark("Show what was bought, by whom, and under which name your shop stands on the statement."),
    ),
    "product_not_received": (
        mark("The customer says that nothing arrived"),
        mark("Show the carrier, the tracking number, the day of delivery and to which address."),
    ),
    "product_unacceptable": (
        mark("The customer says that the goods are not as described, or broken"),
        mark("Show what you promised and what you sent, and what you offered when the customer complained."),
    ),
    "duplicate": (
        mark("The customer says that they paid twice"),
        mark("Show that there were two orders, or that one of the payments was given back."),
    ),
    "credit_not_processed": (
        mark("The customer waits for a refund"),
        mark("Show the refund, or your terms and why none was due."),
    ),
    "subscription_canceled": (
        mark("The customer says that the subscription was cancelled"),
        mark("Show what was agreed to and when, and that nobody cancelled before the charge."),
    ),
    "incorrect_account_details": (
        mark("The bank says that the account details are not right"),
        mark("Show what the customer entered, and that they wanted to pay."),
    ),
    "insufficient_funds": (
        mark("The customer's account did not have the money"),
        mark("Ask the customer to pay another way; evidence seldom helps."),
    ),
    "debit_not_authorized": (
        mark("The account holder says that they did not allow the debit"),
        mark("Show the consent: what was agreed to, when, and from where."),
    ),
}
"""What a bank's reason means, and what helps against it, by the acquirer's word for it."""

_OTHER = (
    mark("The bank gives no reason that we know"),
    mark("Show what was bought and by whom, how it was delivered, and what the customer was told."),
)


def reason_of(word: str) -> tuple[str, str]:
    """A reason in plain words, and what helps against it."""
    return REASONS.get(word, _OTHER)


def state_of(one: ChargebackForTeam) -> tuple[str, str]:
    """What a state is called, and its colour; one that was lost may have given a part back."""
    partly = one.state is ChargebackState.LOST and 0 < one.returned < one.taken
    return _PARTLY_WON if partly else STATES[one.state]
