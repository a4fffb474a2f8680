"""The fields that a customer fills in, read and checked; what is wrong is named by field and code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from paydesk.adapters.acquirers.interface import CardDetails
from paydesk.core import cards
from paydesk.core.errors import Malformed
from paydesk.domain.payments.paying import Payer
from paydesk.domain.payments.requests import parse_email
from paydesk.web.checkout.pages import COUNTRIES
from paydesk_client.signature import Value

_CODES = {"missing": "empty", "expired": "expired"}
"""Which of the page's texts a card error reads as; every other code is "invalid"."""

_Checked = TypeVar("_Checked")


@dataclass(frozen=True, slots=True)
class Typed:
    """What may be shown again after an error: never the number, never the CVC."""

    email: str
    holder: str
    country: str
    expiry: str


class WrongFields(Exception):
    """Some fields can't be right; `errors` maps each to the code of its text."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(", ".join(errors))
        self.errors = dict(errors)


def typed(form: Mapping[str, Value]) -> Typed:
    """The fields that may be shown again, shortened to what a field may hold."""
    return Typed(_text(form, "email"), _text(form, "holder"), _text(form, "country"), _text(form, "expiry")[:9])


def read_payer(form: Mapping[str, Value], client_address: str, now: datetime) -> Payer:
    """Check all fields, so that the customer hears of every mistake at once.

    Raises: WrongFields.
    """
    errors: dict[str, str] = {}

    def checked(field: str, read: Callable[[], _Checked], otherwise: _Checked) -> _Checked:
        try:
            return read()
        except cards.CardError as error:
            errors[field] = _CODES.get(error.code, "invalid")
        except Malformed:
            errors[field] = "invalid"
        return otherwise

    email = checked("email", lambda: _email(form), "")
    number = checked("number", lambda: cards.parse_number(_text(form, "number")), "")
    month, year = checked("expiry", lambda: _expiry(_text(form, "expiry"), now), (0, 0))
    brand = cards.detect_brand(number)
    cvc = checked("cvc", lambda: cards.check_cvc(_text(form, "cvc"), brand), "")
    holder = checked("holder", lambda: cards.parse_holder(_text(form, "holder")), "")
    country = _text(form, "country").upper()
    if not email:
        errors.setdefault("email", "empty")
    if country not in COUNTRIES:
        errors["country"] = "invalid" if country else "empty"
    if errors:
        raise WrongFields(errors)
    return Payer(CardDetails(number, month, year, holder, cvc), email, country, client_address)


def _text(form: Mapping[str, Value], name: str) -> str:
    value = form.get(name, "")
    return value.strip()[:300] if isinstance(value, str) and "\x00" not in value else ""


def _email(form: Mapping[str, Value]) -> str:
    text = _text(form, "email")
    return parse_email(text) if text else ""


def _expiry(text: str, now: datetime) -> tuple[int, int]:
    month, year = cards.parse_expiry(text)
    cards.check_expiry(month, year, now)
    return month, year
