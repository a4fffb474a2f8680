"""What a merchant says of its business, as it is typed: details, bank account number, and the
operator's reason to send them back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from paydesk.core.email_addresses import parse_email
from paydesk.core.errors import Malformed
from paydesk.core.urls import check_url
from paydesk.core.wording import plural, worded

_PHONE = re.compile(r"\+?[0-9][0-9 ()/.-]{4,30}")
_COUNTRY = re.compile(r"[A-Z]{2}")
_LINE, _TEXT = 200, 2000
_JOINERS = str.maketrans("", "", "\u200c\u200d")
_BLANKS = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
"""Letters by their kind that look like nothing: fillers of Hangul and Khmer, Braille without a
dot."""
_FLAG = re.compile(
    "(\U0001f3f4)\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
"""The flags of England, Scotland and Wales: a black one, and letters that nobody sees."""
_STRAY = str.maketrans("", "", "\u00ad\u061c\u200b\u200e\u200f\u2060\ufeff")
"""What comes along with copied text and can't be found to delete it: soft hyphens, spaces of no
width, marks of a direction."""
_BREAKS = "\t\n\v\f\r"
_UNSEEN = {"Cc", "Cf", "Co", "Cs"}
_NO_LETTERS = 0xE0000
"""From here on no new letter stands; what this Python does not know below may be one."""


@dataclass(frozen=True, slots=True)
class Details:
    """What a merchant says: texts, empty while unsaid; `country` is an ISO 3166 code."""

    legal_name: str = ""
    street: str = ""
    postal_code: str = ""
    city: str = ""
    country: str = ""
    registration: str = ""
    vat_number: str = ""
    website: str = ""
    support_email: str = ""
    support_phone: str = ""
    terms_url: str = ""
    privacy_url: str = ""
    description: str = ""
    goods: str = ""
    account_holder: str = ""


REQUIRED = (
    "legal_name",
    "street",
    "postal_code",
    "city",
    "country",
    "website",
    "support_email",
    "description",
    "goods",
    "account_holder",
)
"""The details without which nobody goes live; besides them the bank account
and a confirmed e-mail address."""


STEPS: Mapping[str, tuple[str, ...]] = {
    "business": ("legal_name", "website", "registration", "vat_number", "description", "goods"),
    "address": ("street", "postal_code", "city", "country"),
    "support": ("support_email", "support_phone", "terms_url", "privacy_url"),
    "bank": ("account_holder", "iban"),
}
"""The parts in which a profile is filled in and saved, with their fields."""


@dataclass(frozen=True, slots=True)
class DetailsRow:
    """The details in a row of a profile, or of a change of one."""

    legal_name: str
    street: str
    postal_code: str
    city: str
    country: str
    registration: str
    vat_number: str
    website: str
    support_email: str
    support_phone: str
    terms_url: str
    privacy_url: str
    description: str
    goods: str
    account_holder: str

    @property
    def details(self) -> Details:
        """The same, as it is looked at."""
        return Details(**{name: getattr(self, name) for name in Details.__slots__})


def parse_details(fields: Mapping[str, str]) -> tuple[Details, dict[str, str]]:
    """What can be said of the fields, and what is wrong with the others, by name.
    An empty field is not wrong.
    """
    parsed, errors = Details(), {}
    for name in Details.__slots__:
        typed = fields.get(name, "").translate(_STRAY)
        text = typed if name in ("description", "goods") else " ".join(typed.split())
        try:
            parsed = replace(parsed, **{name: _PARSERS.get(name, str)(_bounded(name, text.strip()))})
        except Malformed as error:
            errors[name] = error.message
            parsed = replace(parsed, **{name: text[:_LINE]})
    return parsed, errors


def _bounded(name: str, text: str) -> str:
    most = _TEXT if name in ("description", "goods") else _LINE
    if len(text) > most:
        raise Malformed(
            plural(
                "this has %(count)s character; at most %(most)s are kept",
                "this has %(count)s characters; at most %(most)s are kept",
                count=len(text),
                most=most,
            ),
            name,
        )
    # What nobody sees may turn around how the letters beside it read, to customers and operators.
    seen = _FLAG.sub(r"\1", text).translate(_JOINERS)
    if (text and not seen.strip()) or any(map(_is_unseen, seen)):
        raise Malformed(worded("this has characters that nobody sees; type it anew, as plain text"), name)
    return text


def _is_unseen(letter: str) -> bool:
    kind = unicodedata.category(letter)
    return (
        letter in _BLANKS
        or (kind in _UNSEEN and letter not in _BREAKS)
        or (kind == "Cn" and ord(letter) >= _NO_LETTERS)
    )


def _website(text: str) -> str:
    if text and check_url(text, "website") not in ("https", "http"):
        raise Malformed(worded("this must be a web address, like https://shop.example"), "website")
    return text


def _secure(text: str) -> str:
    if text and check_url(text, "the address") != "https":
        raise Malformed(worded("this must be an https address, like https://shop.example/terms"))
    return text


def _phone(text: str) -> str:
    if text and not _PHONE.fullmatch(text):
        raise Malformed(worded("this must be a telephone number, like +49 30 901820"), "support_phone")
    return text


def _country(text: str) -> str:
    if text and not _COUNTRY.fullmatch(text):
        raise Malformed(worded("choose a country of the list"), "country")
    return text


_PARSERS: dict[str, Callable[[str], str]] = {
    "website": _website,
    "support_email": lambda text: parse_email(text) if text else "",
    "support_phone": _phone,
    "terms_url": _secure,
    "privacy_url": _secure,
    "country": _country,
}


def unsaid(details: Details) -> tuple[str, ...]:
    """The names of what is required, and not said."""
    return tuple(name for name in REQUIRED if not getattr(details, name))


def parse_despite(reason: str, missing: Sequence[str]) -> str:
    """Why an operator accepts what is not complete.

    Raises: Malformed, naming what is missing, if nothing is said.
    """
    words = reason.strip()[:_TEXT]
    if not words:
        raise Malformed(
            worded(
                "the profile lacks %(missing)s; send it back, or say why it is accepted all the same",
                missing=", ".join(missing),
            ),
            "despite",
        )
    return words


def parse_reason(reason: str) -> str:
    """Why something is sent back, as the merchant reads it.

    Raises: Malformed if nothing is said.
    """
    words = reason.strip()[:_TEXT]
    if not words:
        raise Malformed(worded("say why, so that the merchant knows what to change"), "reason")
    return words
