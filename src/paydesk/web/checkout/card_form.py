"""The fields that a customer fills in, read and checked; what is wrong is named by field and code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from paydesk.adapters.acquirers.interface import CardDetails
from paydesk.core import cards
from paydesk.core.errors import Malformed
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.paying import Payer
from paydesk.domain.payments.requests import parse_email
from paydesk.web.agreement import consent_in_words
from paydesk.web.checkout.pages import COUNTRIES, texts_for
from paydesk.web.checkout.wording import AGREE
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
    agreed: bool = False


class WrongFields(Exception):
    """Some fields can't be right; `errors` maps each to the code of its text."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(", ".join(errors))
        self.errors = dict(errors)


def typed(form: Mapping[str, Value]) -> Typed:
    """The fields that may be shown again, shortened to what a field may hold."""
    return Typed(
        _text(form, "email"),
        _text(form, "holder"),
        _text(form, "country"),
        _text(form, "expiry")[:9],
        bool(_text(form, AGREE)),
    )


def read_payer(form: Mapping[str, Value], checkout: Checkout, client_address: str) -> Payer:
    """Check all fields, so that the customer hears of every mistake at once; a subscription's terms must be agreed to.

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
    month, year = checked("expiry", lambda: _expiry(_text(form, "expiry"), checkout.now), (0, 0))
    brand = cards.detect_brand(number)
    cvc = checked("cvc", lambda: cards.check_cvc(_text(form, "cvc"), brand), "")
    holder = checked("holder", lambda: cards.parse_holder(_text(form, "holder")), "")
    country = _text(form, "country").upper()
    if not email:
        errors.setdefault("email", "empty")
    if country not in COUNTRIES:
        errors["country"] = "invalid" if country else "empty"
    agreed = _agreed(form, checkout)
    if checkout.terms is not None and not agreed:
        errors[AGREE] = "empty"
    if errors:
        raise WrongFields(errors)
    return Payer(CardDetails(number, month, year, holder, cvc), email, country, client_address, agreed)


def _agreed(form: Mapping[str, Value], checkout: Checkout) -> str:
    """The sentence beside the ticked box, as the page showed it: the box's value says in which language that was.

    Empty if the box is not ticked, or there are no terms to agree to.
    """
    language = _text(form, AGREE)
    if checkout.terms is None or not language:
        return ""
    return consent_in_words(checkout.terms, checkout.merchant_name, texts_for(language))


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
