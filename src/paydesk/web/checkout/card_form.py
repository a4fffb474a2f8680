"""The fields that a customer fills in, read and checked;
what is wrong is named by field and code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from paydesk.core.email_addresses import parse_email
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.hosting import Guest
from paydesk.domain.payments.paying import Payer
from paydesk.domain.payments.requests import prefill
from paydesk.web.agreement import consent_in_words
from paydesk.web.card_fields import WrongFields, checked, read_card, text_of
from paydesk.web.checkout.consents import ticked
from paydesk.web.checkout.pages import COUNTRIES, texts_for
from paydesk.web.checkout.wording import AGREE, CHARGE, KEEP, PAGE_AGREE, PAGE_EMAIL
from paydesk_client.signature import Value


@dataclass(frozen=True, slots=True)
class Typed:
    """What may be shown again after an error: never the number, never the CVC."""

    email: str
    holder: str
    country: str
    expiry: str
    agreed: bool = False
    city: str = ""
    postal_code: str = ""
    ticked: tuple[str, ...] = ()


def typed(form: Mapping[str, Value], *, on_page: bool = False) -> Typed:
    """The fields that may be shown again, shortened to what a field may hold; with `on_page` those
    of the form that leads to the acquirer's page.
    """
    return Typed(
        email=text_of(form, "email"),
        holder=text_of(form, "holder"),
        country=text_of(form, "country"),
        expiry=text_of(form, "expiry")[:9],
        agreed=bool(ticked(form, AGREE)),
        city=prefill(text_of(form, "city"), "city"),
        postal_code=prefill(text_of(form, "zip"), "zip"),
        ticked=tuple(f"page-{box}" if on_page else box for box in (KEEP, CHARGE) if ticked(form, box)),
    )


def asks_place(checkout: Checkout) -> bool:
    """Whether the page asks for city and postal code:
    where the shop knows one, its customer may correct it.
    """
    return bool(checkout.entered.city or checkout.entered.postal_code)


def read_payer(form: Mapping[str, Value], checkout: Checkout, client_address: str, language: str) -> Payer:
    """Check all fields, so that the customer hears of every mistake at once;
    a subscription's terms must be agreed to.

    Raises: WrongFields.
    """
    errors: dict[str, str] = {}
    email = checked(errors, "email", lambda: _email(form), "")
    card = read_card(form, errors, checkout.now)
    country = text_of(form, "country").upper()
    if not email:
        errors.setdefault("email", "empty")
    if country not in COUNTRIES:
        errors["country"] = "invalid" if country else "empty"
    agreed = _agreed(form, checkout)
    if checkout.terms is not None and not agreed:
        errors[AGREE] = "empty"
    if errors:
        raise WrongFields(errors)
    if asks_place(checkout):
        place = typed(form)
        card = replace(card, city=place.city, postal_code=place.postal_code)
    return Payer(card, email, country, client_address, agreed, language)


def read_guest(
    form: Mapping[str, Value], checkout: Checkout, client_address: str, language: str, *, without_card: bool = False
) -> Guest:
    """Who goes on to the acquirer's page, or begins a trial `without_card`: their e-mail address is
    all that we ask for, and that a subscription's terms are agreed to.

    Raises: WrongFields.
    """
    errors: dict[str, str] = {}
    email = checked(errors, PAGE_EMAIL, lambda: _email(form), "")
    if not email:
        errors.setdefault(PAGE_EMAIL, "empty")
    agreed = _agreed(form, checkout, on_page=not without_card, without_card=without_card)
    if checkout.terms is not None and not agreed:
        errors[PAGE_AGREE] = "empty"
    if errors:
        raise WrongFields(errors)
    return Guest(email, client_address, language, agreed)


def _agreed(form: Mapping[str, Value], checkout: Checkout, *, on_page: bool = False, without_card: bool = False) -> str:
    """The sentence beside the ticked box, as the page showed it:
    the box's value says in which language that was.

    Empty if the box is not ticked, or there are no terms to agree to.
    """
    language = ticked(form, AGREE)
    if checkout.terms is None or not language:
        return ""
    how = {"on_page": on_page, "without_card": without_card}
    return consent_in_words(checkout.terms, checkout.merchant_name, texts_for(language), **how)


def _email(form: Mapping[str, Value]) -> str:
    text = text_of(form, "email")
    return parse_email(text) if text else ""
