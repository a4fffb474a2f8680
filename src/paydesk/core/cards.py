"""Rules of payment cards: numbers, brands, expiry dates, security codes, names;
nothing here keeps or logs a card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from stdnum import luhn

Field = Literal["number", "expiry", "cvc", "holder"]
Code = Literal[
    "missing", "not_digits", "length", "luhn", "format", "month", "expired", "too_far", "too_long", "characters"
]

MAX_HOLDER: Final = 100
MAX_YEARS_AHEAD: Final = 20


class CardError(ValueError):
    """A card detail that can't be right; `field` and `code` are stable,
    so that a page can put it into any language.

    The message never contains what was typed.
    """

    def __init__(self, field: Field, code: Code) -> None:
        super().__init__(f"card {field}: {code}")
        self.field: Final = field
        self.code: Final = code


class Brand(StrEnum):
    """A card scheme, by the name that a page or a row uses."""

    VISA = "visa"
    MASTERCARD = "mastercard"
    AMEX = "amex"
    DISCOVER = "discover"
    DINERS = "diners"
    JCB = "jcb"
    UNIONPAY = "unionpay"
    MAESTRO = "maestro"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BrandRule:
    """What a brand's cards look like: the name to show, the digits of a number
    and of a security code.
    """

    label: str
    number_lengths: tuple[int, ...]
    cvc_lengths: tuple[int, ...] = (3,)


BRAND_RULES: Final[Mapping[Brand, BrandRule]] = {
    Brand.VISA: BrandRule("Visa", (13, 16, 19)),
    Brand.MASTERCARD: BrandRule("Mastercard", (16,)),
    Brand.AMEX: BrandRule("American Express", (15,), (3, 4)),
    Brand.DISCOVER: BrandRule("Discover", (16, 17, 18, 19)),
    Brand.DINERS: BrandRule("Diners Club", (14, 15, 16, 17, 18, 19)),
    Brand.JCB: BrandRule("JCB", (16, 17, 18, 19)),
    Brand.UNIONPAY: BrandRule("UnionPay", (16, 17, 18, 19)),
    Brand.MAESTRO: BrandRule("Maestro", (12, 13, 14, 15, 16, 17, 18, 19)),
    Brand.UNKNOWN: BrandRule("Card", (12, 13, 14, 15, 16, 17, 18, 19), (3, 4)),
}

# First digits, from and to inclusive, both of the same length; the longest match wins.
_PREFIXES: Final[tuple[tuple[str, str, Brand], ...]] = (
    ("4", "4", Brand.VISA),
    ("51", "55", Brand.MASTERCARD),
    ("2221", "2720", Brand.MASTERCARD),
    ("34", "34", Brand.AMEX),
    ("37", "37", Brand.AMEX),
    ("6011", "6011", Brand.DISCOVER),
    ("644", "649", Brand.DISCOVER),
    ("65", "65", Brand.DISCOVER),
    ("300", "305", Brand.DINERS),
    ("3095", "3095", Brand.DINERS),
    ("36", "36", Brand.DINERS),
    ("38", "39", Brand.DINERS),
    ("3528", "3589", Brand.JCB),
    ("62", "62", Brand.UNIONPAY),
    ("81", "81", Brand.UNIONPAY),
    ("50", "50", Brand.MAESTRO),
    ("56", "58", Brand.MAESTRO),
    ("639", "639", Brand.MAESTRO),
    ("6304", "6304", Brand.MAESTRO),
    ("67", "67", Brand.MAESTRO),
)

_SEPARATORS: Final = re.compile(r"[\s\-\u2010-\u2015]")
_NO_LETTERS_OR_DIGITS: Final = re.compile(r"[\W_]+")
_EXPIRY: Final = re.compile(r"([0-9]{1,2})\s*[/.\-]\s*([0-9]{4}|[0-9]{2})|([0-9]{2})([0-9]{4}|[0-9]{2})")


def parse_number(text: str) -> str:
    """The digits of a card number typed with or without spaces and dashes.

    Raises: CardError on `number`: missing, not_digits, length (12 to 19, and of its brand), luhn (a
        mistyped digit).
    """
    number = _SEPARATORS.sub("", text)
    if not number:
        raise CardError("number", "missing")
    if not _is_digits(number):
        raise CardError("number", "not_digits")
    if len(number) not in BRAND_RULES[detect_brand(number)].number_lengths:
        raise CardError("number", "length")
    if not luhn.is_valid(number):
        raise CardError("number", "luhn")
    return number


def detect_brand(number: str) -> Brand:
    """The brand that the first digits belong to, UNKNOWN if to none;
    works on a number that is still being typed.
    """
    matches = [(len(low), brand) for low, high, brand in _PREFIXES if low <= number[: len(low)] <= high]
    return max(matches, default=(0, Brand.UNKNOWN))[1]


def parse_expiry(text: str) -> tuple[int, int]:
    """Month and four-digit year of an expiry date typed as 12/30, 12 / 2030, 12-30, 1230 or 122030.

    Raises: CardError on `expiry`: missing, format, month.
    """
    trimmed = text.strip()
    if not trimmed:
        raise CardError("expiry", "missing")
    match = _EXPIRY.fullmatch(trimmed)
    if match is None:
        raise CardError("expiry", "format")
    month, year = (int(part) for part in match.groups() if part is not None)
    if not 1 <= month <= 12:
        raise CardError("expiry", "month")
    return month, year if year > 99 else 2000 + year


def check_expiry(month: int, year: int, now: datetime) -> None:
    """Make sure that a card is good on the day of `now` (UTC):
    it is through the last day of its month.

    Raises: CardError on `expiry`: expired, too_far (more than 20 years ahead, surely a slip of
        the finger).
    """
    if (year, month) < (now.year, now.month):
        raise CardError("expiry", "expired")
    if year > now.year + MAX_YEARS_AHEAD:
        raise CardError("expiry", "too_far")


def check_cvc(text: str, brand: Brand) -> str:
    """The security code without surrounding spaces, once it has the digits that its brand prints.

    Raises: CardError on `cvc`: missing, not_digits, length.
    """
    cvc = text.strip()
    if not cvc:
        raise CardError("cvc", "missing")
    if not _is_digits(cvc):
        raise CardError("cvc", "not_digits")
    if len(cvc) not in BRAND_RULES[brand].cvc_lengths:
        raise CardError("cvc", "length")
    return cvc


def parse_holder(text: str) -> str:
    """The name on the card with its spaces tidied.

    Names are stored readable, so one with a run of digits like a card number (typed into the wrong
    field) is refused.
    Raises: CardError on `holder`: missing, too_long (over 100 characters), characters.
    """
    holder = " ".join(text.split())
    if not holder:
        raise CardError("holder", "missing")
    if len(holder) > MAX_HOLDER:
        raise CardError("holder", "too_long")
    if not holder.isprintable() or re.search(r"\d{12}", _NO_LETTERS_OR_DIGITS.sub("", holder)):
        raise CardError("holder", "characters")
    return holder


def split_name(holder: str) -> tuple[str, str]:
    """First and last name out of one line, split at its last space;
    a single word is a first name.
    """
    first, _, last = " ".join(holder.split()).rpartition(" ")
    return (first, last) if first else (last, "")


def _is_digits(text: str) -> bool:
    """Whether `text` is made of ASCII digits (str.isdigit alone also takes other
    scripts' digits).
    """
    return text.isascii() and text.isdigit()
