"""What the checkout says about problems, in words that a customer can act on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.domain.payments.states import NOT_PAID, PAGE_LEFT
from paydesk.web.card_words import CARD_ERRORS, DECLINES, TestCard
from paydesk.web.texts import mark

FIELDS = ("email", "number", "expiry", "cvc", "holder", "country")
"""The fields of the payment form in the order in which they are shown."""

AGREE = "agree"
"""The box below them that agrees to a subscription's terms."""

KEEP, CHARGE = "save", "charge"
"""The boxes by which a card is saved; each sends the language in which its sentence was read."""

PAGE_EMAIL, PAGE_AGREE = "page-email", "page-agree"
"""The address and the box beside the way to the acquirer's page: ids, in a form of its own."""

WRONG_CODE = mark("This code is not right, or its time is over. Check the newest mail, or have a new code sent.")
"""What is said of a code, whatever is wrong with it."""

FIELD_ERRORS: dict[str, Mapping[str, str]] = {
    "email": {
        "empty": mark("Enter your e-mail address."),
        "invalid": mark("Enter an e-mail address like name@example.com."),
    },
    **CARD_ERRORS,
    "country": {
        "empty": mark("Choose your country."),
        "invalid": mark("Choose your country from the list."),
    },
    PAGE_EMAIL: {
        "empty": mark("Enter your e-mail address."),
        "invalid": mark("Enter an e-mail address like name@example.com."),
    },
    AGREE: {"empty": mark("Tick the box to agree.")},
    PAGE_AGREE: {"empty": mark("Tick the box to agree.")},
}

NOTICES: dict[str, str] = {
    **DECLINES,
    DeclineReason.TOO_LATE: mark(
        "The payment was declined because it took too long. You have not been charged. Try again."
    ),
    PAGE_LEFT: mark(
        "You have not paid yet, and you have not been charged. Go on where you left off, or pay another way."
    ),
    "page_open": mark("You have not paid yet, and you have not been charged. Go on where you left off."),
    NOT_PAID: mark("Your bank did not send the money, so the order is not paid. You can pay it again here."),
    "challenge_closed": mark(
        "You left your bank’s confirmation, so the payment was not made. You have not been charged. Try again when you "
        "are ready."
    ),
    "too_many_codes": mark("Too many codes were asked for. Please wait an hour, or pay without one."),
    "coupon_unknown": mark("There is no such coupon. Check how it is written."),
    "coupon_elsewhere": mark("This coupon is not for this order."),
    "coupon_over": mark("This coupon can’t be used, not any more or not now."),
    "coupon_used": mark(
        "You have used this coupon before, and can’t use it again. You have not been charged. Pay without it."
    ),
    "unavailable": mark(
        "The payment service does not answer just now. You have not been charged. Try again in a minute."
    ),
    "in_progress": mark("Your payment is already on its way. Please wait a moment; you will not be charged twice."),
    "connection": mark(
        "We could not reach the payment service. Check your connection and press the button again: you will not be "
        "charged twice."
    ),
}
"""Texts by decline reason (`decline_words.notice_for` finds the one for each) or by what happened.

`connection` is shown by the browser itself.
"""


ABOUT_COUPONS = frozenset(("coupon_unknown", "coupon_elsewhere", "coupon_over", "coupon_used"))
"""Of these, what is said of a coupon."""


@dataclass(frozen=True, slots=True)
class PageProblem:
    """What a page says instead of what the visitor asked for.

    `passes` if loading it again may help, `lost` if there is no such page.
    """

    title: str
    text: str
    passes: bool = False
    lost: bool = False


ERRORS: dict[int, PageProblem] = {
    400: PageProblem(mark("This request is not valid"), mark("Go back to the shop and try again.")),
    403: PageProblem(mark("This is not allowed"), mark("Go back to the shop and try again.")),
    404: PageProblem(
        mark("We can’t find this page"),
        mark("The address may be incomplete. Go back to the shop and press its pay button again."),
        lost=True,
    ),
    405: PageProblem(mark("This request is not valid"), mark("Go back to the shop and try again.")),
    409: PageProblem(
        mark("This has changed in the meantime"),
        mark("Go back to the shop to see where your order stands."),
        passes=True,
    ),
    413: PageProblem(mark("This request is too large"), mark("Go back to the shop and tell them about this problem.")),
    429: PageProblem(mark("Too many requests"), mark("Please wait a minute, then try again."), passes=True),
    500: PageProblem(
        mark("Something went wrong on our side"),
        mark(
            "The problem has been recorded. If you were paying: load the page again to see how it went. You will not "
            "be charged twice."
        ),
        passes=True,
    ),
    503: PageProblem(
        mark("The payment service is taking a short break"), mark("Please try again in a minute."), passes=True
    ),
}
"""Texts of the general error pages, by HTTP status."""

SHORTLY = PageProblem(
    mark("The payment service is taking a short break"), mark("Please try again in a few seconds."), passes=True
)
"""The same of what is away for moments, as `Retry-After` says."""

MOVING = PageProblem(mark("This shop is being moved"), mark("Please try again in a few seconds."), passes=True)
"""What a customer is told whose shop goes to another server just now."""


TEST_CARDS = (
    TestCard("4242424242424242", mark("Visa, approved")),
    TestCard("5555555555554444", mark("Mastercard, approved")),
    TestCard("378282246310005", mark("American Express, approved")),
    TestCard("4000000000003220", mark("3-D Secure")),
    TestCard("4000000000000002", mark("declined")),
    TestCard("4000000000009995", mark("not enough money")),
    TestCard("4000000000000069", mark("expired card")),
    TestCard("4000000000000127", mark("wrong CVC")),
    TestCard("4000000000000119", mark("processing error")),
    TestCard("4000000000000341", mark("approved now, later charges fail")),
    TestCard("4000000000000259", mark("approved, then charged back")),
    TestCard("4000000000009987", mark("approved, but the answer is lost")),
)
"""In the order in which they are offered."""
