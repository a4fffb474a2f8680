"""A card as a customer types it into a form, read and checked;
what is wrong is named by field and code.

The fields are `number`, `expiry` (`MM / YY`, or as it was written), `cvc` and `holder`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar
from unicodedata import decimal, normalize

from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.core import cards
from paydesk.core.errors import Malformed
from paydesk_client.signature import Value

_CODES = {"missing": "empty", "expired": "expired"}
"""Which of a page's texts a card error reads as; every other code is "invalid"."""

_Checked = TypeVar("_Checked")


class WrongFields(Exception):
    """Some fields can't be right; `errors` maps each to the code of its text."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(", ".join(errors))
        self.errors = dict(errors)


def text_of(form: Mapping[str, Value], name: str) -> str:
    """A field's text without surrounding spaces, shortened to what a field may hold;
    empty if it is no text.
    """
    value = form.get(name, "")
    return value.strip()[:300] if isinstance(value, str) and "\x00" not in value else ""


def checked(errors: dict[str, str], field: str, read: Callable[[], _Checked], otherwise: _Checked) -> _Checked:
    """What `read` makes of a field; if it can't be right, its code goes to `errors`
    and `otherwise` is the answer.
    """
    try:
        return read()
    except cards.CardError as error:
        errors[field] = _CODES.get(error.code, "invalid")
    except Malformed:
        errors[field] = "invalid"
    return otherwise


def read_card(form: Mapping[str, Value], errors: dict[str, str], now: datetime) -> CardDetails:
    """The card that was typed; its mistakes go to `errors`, all at once, and then the card is not
    to be used.
    """
    number = checked(errors, "number", lambda: cards.parse_number(_digits_of(form, "number")), "")
    month, year = checked(errors, "expiry", lambda: _expiry(_digits_of(form, "expiry"), now), (0, 0))
    brand = cards.detect_brand(number)
    cvc = checked(errors, "cvc", lambda: cards.check_cvc(_digits_of(form, "cvc"), brand), "")
    holder = checked(errors, "holder", lambda: cards.parse_holder(text_of(form, "holder")), "")
    return CardDetails(number, month, year, holder, cvc)


def _digits_of(form: Mapping[str, Value], name: str) -> str:
    """A field's text with digits as cards print them: some keyboards type them Arabic,
    Persian or full-width.
    """
    return "".join(str(decimal(letter, letter)) for letter in normalize("NFKC", text_of(form, name)))


def _expiry(text: str, now: datetime) -> tuple[int, int]:
    month, year = cards.parse_expiry(text)
    cards.check_expiry(month, year, now)
    return month, year
