"""What is wrong with a card that was typed, in the customer's language:
every door with fields for a card says the same.

The texts have a catalogue of their own, as those of an agreement have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paydesk.web.texts import Catalogues, Texts, mark

_CATALOGUES = Catalogues(Path(__file__).parent / "locale", "card_words")

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


@dataclass(frozen=True, slots=True)
class TestCard:
    """A card of the simulator and what it does."""

    number: str
    effect: str

    __test__ = False


def card_error(field: str, code: str, texts: Texts) -> str:
    """The text for what is wrong with a field of a card, in the language of `texts`."""
    return _translated(texts.language)[field][code]


@cache
def _translated(language: str) -> dict[str, dict[str, str]]:
    words = _CATALOGUES.texts_for(language)
    return {field: {code: words.get(text) for code, text in texts.items()} for field, texts in CARD_ERRORS.items()}
