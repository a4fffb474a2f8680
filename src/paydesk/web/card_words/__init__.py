"""What is wrong with a card that was typed, and why its bank declined it: every door with fields
for a card says the same.

The texts have a catalogue of their own, which lies beneath those of these doors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.web.texts import Catalogues, mark

CATALOGUES = Catalogues(Path(__file__).parent / "locale", "card_words")

CARD_ERRORS: Mapping[str, Mapping[str, str]] = {
    "number": {
        "empty": mark("Enter the card number."),
        "invalid": mark("This card number is not right. Check its digits."),
    },
    "expiry": {
        "empty": mark("Enter the expiry date."),
        "invalid": mark("Enter month and year as on the card, like 09/30."),
        "expired": mark("This card has expired. Check the date or use another card."),
    },
    "cvc": {
        "empty": mark("Enter the security code."),
        "invalid": mark("The security code has 3 digits (4 on American Express)."),
        "wrong": mark("Check the security code."),
    },
    "holder": {
        "empty": mark("Enter the name as it is on the card."),
        "invalid": mark("Enter the name with letters, as it is on the card."),
    },
}
"""The fields of a card in the order in which they are shown, with what may be wrong with each."""


DECLINES: Mapping[str, str] = {
    DeclineReason.DECLINED: mark("Your card was declined. Try another card, or ask your bank."),
    DeclineReason.INSUFFICIENT_FUNDS: mark(
        "Your card was declined: there is not enough money available on it. Try another card."
    ),
    DeclineReason.EXPIRED_CARD: mark(
        "Your card was declined because it has expired. Check the expiry date, or try another card."
    ),
    DeclineReason.WRONG_CVC: mark(
        "Your card was declined because the security code is not right. Check it and try again."
    ),
    DeclineReason.PROCESSING_ERROR: mark(
        "Your card was declined because of a technical problem. You have not been charged. Try again in a moment, or "
        "try another card."
    ),
    DeclineReason.AUTHENTICATION_FAILED: mark(
        "Your card was declined because your bank could not confirm that it is you. Try again, or try another card."
    ),
}
"""Why a bank declined a card in whose place there is no other, by the reason."""


@dataclass(frozen=True, slots=True)
class TestCard:
    """A card of the simulator and what it does."""

    number: str
    effect: str

    __test__ = False
