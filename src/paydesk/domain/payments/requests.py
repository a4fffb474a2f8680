"""The checkout request: a signed form, read strictly (interface.md §2.2).

Reading stops at the first thing that is wrong, and says what was expected. Moves no money.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from paydesk.core.card_numbers import holds_card_number, masked
from paydesk.core.email_addresses import LONGEST_EMAIL, parse_email
from paydesk.core.errors import Malformed
from paydesk.core.money import parse_amount, parse_currency
from paydesk.core.storable import refuse_card_number
from paydesk.core.urls import check_url, is_systems_own
from paydesk.domain.payments.line_items import FIELD as LINE_ITEMS
from paydesk.domain.payments.line_items import AskedItem, read_signed_items
from paydesk.domain.pingbacks.destinations import LONGEST_URL, parse_pingback_url
from paydesk.domain.subscriptions.subscription_terms import (
    OPTIONAL,
    REQUIRED,
    RecurringFields,
    Terms,
    read_terms,
    several,
)
from paydesk_client.signature import (
    CHECKOUT_FIELDS,
    Parameters,
    UnknownSignatureVersion,
    Value,
    Version,
    leaves,
    signature_version,
)

LONGEST: Mapping[str, int] = {
    "merchant_order_id": 255,
    "description": 1024,
    "email": LONGEST_EMAIL,
    "success_url": 2048,
    "pingback_url": LONGEST_URL,
    "first_name": 100,
    "last_name": 100,
    "later_charges": 200,
}
"""The most characters that a field may have."""

PREFILLS: Mapping[str, int] = {"city": 100, "zip": 20}
"""Fields that only prefill what the page asks, and the most characters that it takes;
they never refuse a form."""

RECURRING_FIELDS = (*REQUIRED, *OPTIONAL)

KNOWN_FIELDS = (
    CHECKOUT_FIELDS
    | LONGEST.keys()
    | PREFILLS.keys()
    | {"country", "country_code", "payment_flow", "quantity", "later_charges_limit"}
)
"""What means something here, by which name it comes first;
all else is ignored, since plugins send more."""

COUPON = "recurring_coupon"
"""The coupon that a form brings; it means something only where the account has switched that on."""

QUANTITY = "recurring_quantity"
"""Of how many a form's subscription is; it means something only where the account has switched that
on.
"""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LINE_BREAKS_AND_TABS = re.compile(r"[\t\r\n]+")


@dataclass(frozen=True, slots=True)
class CheckoutRequest:
    """What a valid form asks for; optional texts are empty when absent,
    and without `success_url` our page says thanks.

    `amount` is in the main unit of `currency`: for a subscription (`terms`) it is the price
    per period.
    """

    merchant_order_id: str
    amount: Decimal
    currency: str
    description: str
    success_url: str
    pingback_url: str | None
    sign_version: Version
    email: str
    first_name: str
    last_name: str
    country: str
    wants_qr_code: bool
    terms: Terms | None = None


def read_sign_version(form: Parameters) -> Version:
    """The signature version that a form asks for.

    Raises: Malformed.
    Source: interface.md §3.1.
    """
    try:
        return signature_version(form)
    except UnknownSignatureVersion as error:
        raise Malformed(str(error), "sign_version") from error


def read_required(form: Mapping[str, Value], name: str) -> str:
    """The text of a field that must be there.

    Raises: Malformed, naming the field.
    """
    text = _text(form, name)
    if not text:
        raise Malformed(f"{name} is missing", name)
    return text


def read_request(form: Mapping[str, Value]) -> CheckoutRequest:
    """Check every field of a form whose signature was verified.

    Raises: Malformed for the first field that is missing or wrong.
    """
    _refuse_nul(form)
    currency = parse_currency(read_required(form, "currency"))
    _check_later_charges(form, currency)
    amount = parse_amount(read_required(form, "amount"), currency)
    return CheckoutRequest(
        merchant_order_id=read_order_reference(form),
        amount=amount,
        currency=currency,
        description=read_description(form),
        success_url=_success_url(_text(form, "success_url")),
        pingback_url=_pingback_url(_text(form, "pingback_url")),
        sign_version=read_sign_version(form),
        email=_email(_text(form, "email")),
        first_name=_optional_line(form, "first_name"),
        last_name=_optional_line(form, "last_name"),
        country=_country(form),
        wants_qr_code=_text(form, "payment_flow") == "user_qr",
        terms=read_terms(_recurring(form), amount, currency),
    )


def _check_later_charges(form: Mapping[str, Value], currency: str) -> None:
    """What a shop asks to charge later is for something, and has a limit, or it is not asked.

    Raises: Malformed.
    """
    purpose, limit = _optional_line(form, "later_charges"), _text(form, "later_charges_limit")
    if bool(purpose) != bool(limit):
        missing = "later_charges_limit" if purpose else "later_charges"
        raise Malformed(f"{missing} is missing: what may be charged later needs a purpose and a limit", missing)
    if limit:
        try:
            parse_amount(limit, currency)
        except Malformed as error:
            raise Malformed(f"later_charges_limit: {error.message}", "later_charges_limit") from error


def _recurring(form: Mapping[str, Value]) -> RecurringFields:
    return RecurringFields(**{name: _text(form, name) for name in RECURRING_FIELDS})


def _text(form: Mapping[str, Value], name: str) -> str:
    value = form.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed(f"{name} must be a single value, not a list", name)
    return value


def read_description(form: Mapping[str, Value]) -> str:
    """What the customer reads, on one line.

    Raises: Malformed.
    """
    read_required(form, "description")
    line = _optional_line(form, "description")
    if not line:
        raise Malformed("description is blank", "description")
    return line


def read_order_reference(form: Mapping[str, Value]) -> str:
    """The merchant's own reference, to the character: pingbacks echo it.

    Raises: Malformed.
    """
    text = read_required(form, "merchant_order_id")
    refuse_card_number(text, "merchant_order_id")
    _check_line(text, "merchant_order_id")
    if not text.strip():
        raise Malformed("merchant_order_id is blank", "merchant_order_id")
    return text


def _optional_line(form: Mapping[str, Value], name: str) -> str:
    text = _LINE_BREAKS_AND_TABS.sub(" ", _text(form, name)).strip()
    _check_line(text, name)
    return masked(text)


def _check_line(text: str, name: str) -> None:
    if _CONTROL.search(text):
        raise Malformed(f"{name} contains a control character; send plain text", name)
    if len(text) > LONGEST[name]:
        raise Malformed(f"{name} has {len(text)} characters, at most {LONGEST[name]} are accepted", name)


def _success_url(url: str) -> str:
    """A customer may return to any kind of app, but never to what the browser
    or the system itself opens.
    """
    if not url:
        return ""
    refuse_card_number(url, "success_url")
    _check_length(url, "success_url")
    scheme = check_url(url, "success_url")
    if is_systems_own(scheme):
        raise Malformed(
            f'success_url must not use the scheme "{scheme}"; expected https or your app\'s own', "success_url"
        )
    return url


def _pingback_url(url: str) -> str | None:
    if not url:
        return None
    refuse_card_number(url, "pingback_url")
    return parse_pingback_url(url, "pingback_url", "pingback_url")


def _check_length(url: str, name: str) -> None:
    if len(url) > LONGEST[name]:
        raise Malformed(f"{name} has {len(url)} characters, at most {LONGEST[name]} are accepted", name)


def _email(text: str) -> str:
    if not text:
        return ""
    return parse_email(text)


def read_coupon(form: Mapping[str, Value]) -> str:
    """The coupon that a form brings, empty without one.

    Raises: Malformed.
    """
    return _text(form, COUPON).strip()


def read_items(form: Mapping[str, Value], request: CheckoutRequest) -> tuple[AskedItem, ...]:
    """The lines of the order that a form brings.

    Raises: Malformed.
    """
    return read_signed_items(_text(form, LINE_ITEMS), request.amount, request.currency)


def in_quantity(request: CheckoutRequest, form: Mapping[str, Value]) -> CheckoutRequest:
    """The request for as many as its form says, whose prices are of one.

    Raises: Malformed.
    """
    text = _text(form, QUANTITY)
    if not text:
        return request
    if request.terms is None:
        raise Malformed(f"{QUANTITY} is for subscriptions; a one-time payment has its whole amount", QUANTITY)
    terms = several(request.terms, text, QUANTITY)
    return replace(request, amount=terms.price, terms=terms)


def prefill(text: str, name: str) -> str:
    """What a shop or a customer gave for one of `PREFILLS`, on one line;
    empty if it can't be one.
    """
    line = _CONTROL.sub("", _LINE_BREAKS_AND_TABS.sub(" ", text)).strip()
    return line if len(line) <= PREFILLS[name] and not holds_card_number(line) else ""


def _country(form: Mapping[str, Value]) -> str:
    """A prefill only: what is no two-letter code is left for the customer to choose."""
    value = form.get("country") or form.get("country_code")
    return value.upper() if isinstance(value, str) and re.fullmatch(r"[A-Za-z]{2}", value) else ""


def _refuse_nul(form: Mapping[str, Value]) -> None:
    for leaf in leaves(form):
        if "\x00" in str(leaf.value) or any("\x00" in part for part in leaf.path):
            raise Malformed(f"{leaf.path[0]} contains a NUL character; send plain text", leaf.path[0])
