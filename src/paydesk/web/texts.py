"""Languages: which one a visitor reads, their texts from gettext catalogues,
and amounts as they write them.

Texts are English in the source. A door keeps its translations in
`locale/<language>/LC_MESSAGES/<domain>.po`; each is read as it is when first needed (no compiled
.mo files). `make messages` collects new texts into them.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_FLOOR, Decimal
from functools import cache, lru_cache
from gettext import NullTranslations
from io import BytesIO
from pathlib import Path

from babel import Locale, UnknownLocaleError, negotiate_locale
from babel.dates import format_date, format_time, get_datetime_format
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal, get_currency_symbol
from babel.support import Translations

from paydesk.core.money import minor_digits
from paydesk.core.wording import Worded
from paydesk.web.noted_texts import NOTED, said_again

SOURCE_LANGUAGE = "en"
LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "pl", "pt", "tr", "vi", "zh")
"""The languages that pages for customers exist in; numbers and dates are written in these,
and their regions', alone.

Babel keeps what it has read of a language for ever, so no header may name one that nobody
here speaks.
"""

_LONGEST_HEADER = 256
_PLACEHOLDER = re.compile(r"%\(\w+\)s")
_ISOLATE = "\u2068{}\u2069"
"""Sets what it holds apart from the direction of the text around it
(Unicode TR 9, first strong isolate)."""

_RUN = "\u2067{}\u2069"
"""Has what it holds run right to left, whatever begins it (right-to-left isolate)."""

_LEDGER_DIGITS = 4
_OWN_SIGNS = frozenset({"€", "₹", "₪", "₫", "₺", "฿", "zł", "R$"})
"""Symbols that one currency alone has; the others don't say which dollar or pound is paid."""

_MINUS = "\u2212"
"""The one sign before what is taken: as wide as a plus, and no hyphen at which lines break."""

_LANGUAGE_RANGE = re.compile(r"\s*([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)\s*(?:;\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*)?")


def mark(text: str) -> str:
    """Mark a text for translation where it is written; it is translated where it is shown."""
    return text


@dataclass(frozen=True, slots=True)
class Texts:
    """How to speak to one visitor: the texts' language, and the locale in which they write numbers.

    The two differ where a door has fewer languages than others: English texts, but amounts as the
    visitor is used to. `region` is the two-letter country that the visitor's browser names,
    or empty.
    """

    language: str
    locale: Locale
    region: str
    translations: NullTranslations = field(repr=False)

    @property
    def direction(self) -> str:
        """The writing direction of the texts, for the `dir` attribute."""
        return _direction(self.language)

    @property
    def amount_language(self) -> str:
        """The language of amounts, for a `lang` attribute."""
        return str(self.locale).replace("_", "-")

    @property
    def accept_language(self) -> str:
        """An `Accept-Language` header that brings these very texts again,
        whatever a browser sends later.
        """
        return f"{self.amount_language},{self.language};q=0.9"

    @property
    def date_locale(self) -> Locale:
        """The visitor's own way to write dates, unless that would put another language's months
        into the text.
        """
        language = Locale.parse(self.language, sep="-")
        return self.locale if self.locale.language == language.language else language

    @property
    def mail_language(self) -> str:
        """The tag that brings the same language and way to write dates again,
        when a mail is written: `de-CH`.
        """
        return str(self.date_locale).replace("_", "-")

    def get(self, text: str) -> str:
        """Translate a text that is written here, marked with `mark`, or made by `worded`."""
        if isinstance(text, Worded):
            return text.said(self)
        return self.translations.gettext(text) if text else ""

    def noted(self, text: str) -> str:
        """A text as the books keep it, in English, in the visitor's language as far as it is one
        that was made by `noted`; the words of people, and of acquirers, stay.
        """
        patterns = getattr(self.translations, "noted", ())
        return said_again(text, patterns, self.get) if patterns else text

    def of_number(self, one: str, many: str, number: int) -> str:
        """The form of a text that the language has for a number."""
        return self.translations.ngettext(one, many, number)

    def moment(self, at: datetime) -> str:
        """A day and the time of day in the zone of `at`: `November 21, 2026, 2:05 PM`."""
        locale = self.date_locale
        date, time = format_date(at, "long", locale), format_time(at, "short", locale=locale)
        return str(get_datetime_format("medium", locale)).replace("{0}", time).replace("{1}", date)

    def apart(self, text: str) -> str:
        """A name or an amount that keeps its own order where no markup can hold it,
        if the texts run right to left.
        """
        return _ISOLATE.format(text) if self.direction == "rtl" else text

    def in_line(self, text: str) -> str:
        """A text whose parts follow one another as the page runs, whichever letter begins it."""
        return _RUN.format(text) if self.direction == "rtl" else text

    def money(self, amount: Decimal, currency: str) -> str:
        """An amount as every page and mail says it: with the currency's symbol where no other
        currency has it, else with its code; its ISO 4217 digits: `10.00 USD`, `10,00 €`.
        """
        digits = minor_digits(currency)
        return self._money(amount, currency, digits, digits)

    def money_held(self, amount: Decimal, currency: str) -> str:
        """A balance, rounded down to the currency's digits: never more than there is."""
        return self.money(amount.quantize(Decimal(1).scaleb(-minor_digits(currency)), ROUND_FLOOR), currency)

    def money_in_ledger(self, amount: Decimal, currency: str) -> str:
        """An amount with the ledger's decimals where it has any, so that a payment's parts sum up
        as they stand.
        """
        return self._money(amount, currency, minor_digits(currency), _LEDGER_DIGITS)

    def _money(self, amount: Decimal, currency: str, fewest: int, most: int) -> str:
        # Beside text from right to left a symbol of letters would be torn apart.
        # Minus zero is the same amount as zero, and is written like it.
        return _written(amount or Decimal(0), currency, fewest, most, self.locale, with_sign=self.direction != "rtl")


@lru_cache(maxsize=64)
def _direction(language: str) -> str:
    """Which way a language of ours runs: every amount of a page asks for it."""
    return str(Locale.parse(language, sep="-").text_direction)


@lru_cache(maxsize=4096)
def _written(amount: Decimal, currency: str, fewest: int, most: int, locale: Locale, *, with_sign: bool) -> str:
    """An amount with so many decimals: shops have few prices, and to write one anew takes long."""
    if not with_sign or get_currency_symbol(currency, locale) not in _OWN_SIGNS:
        decimals = "0" * fewest + "#" * (most - fewest)
        written = format_decimal(amount, f"#,##0.{decimals}" if decimals else "#,##0", locale)
        return f"{_with_minus(written)}\u00a0{currency}"
    pattern = copy.copy(locale.currency_formats["standard"])
    pattern.frac_prec = (fewest, most)
    return _with_minus(str(pattern.apply(amount, locale, currency=currency, currency_digits=False)))


def _with_minus(written: str) -> str:
    """A number as Babel wrote it, with our minus: languages differ in it."""
    return written.replace("-", _MINUS)


class Catalogues:
    """The translations of one door: every language that has a catalogue, and English."""

    def __init__(self, folder: Path, domain: str, *, beneath: Catalogues | None = None) -> None:
        """Find `folder/<language>/LC_MESSAGES/<domain>.po` of every language;
        each is read when it is first spoken. A text that is not there is looked for `beneath`.
        """
        self._beneath = beneath
        self._paths: dict[str, Path | None] = {SOURCE_LANGUAGE: None}
        for path in sorted(folder.glob(f"*/LC_MESSAGES/{domain}.po")):
            self._paths[path.parent.parent.name.replace("_", "-")] = path
        self._known = {language.lower(): language for language in self._paths}
        self._chosen = lru_cache(maxsize=1024)(self._choose)
        # Strangers write as many headers as they like: a bounded number is kept.
        self._heard = lru_cache(maxsize=1024)(self._hear)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that texts exist in, as in `<html lang>`."""
        return tuple(self._paths)

    def texts_for(self, accept_language: str) -> Texts:
        """The texts for a visitor by the header `Accept-Language` (RFC 9110 §12.5.4);
        English when nothing fits.
        """
        return self._heard(accept_language[:_LONGEST_HEADER])

    def speaks(self, accept_language: str) -> bool:
        """Whether the language that such a header likes best is one that texts exist in."""
        best = preferred_languages(accept_language[:_LONGEST_HEADER])[:1]
        return negotiate_locale(best, list(self._known), sep="-") is not None

    def _hear(self, accept_language: str) -> Texts:
        wanted = preferred_languages(accept_language)
        best = negotiate_locale(wanted, list(self._known), sep="-") or SOURCE_LANGUAGE
        language = self._known[best.lower()]
        return self._chosen(language, _first_locale([*wanted, language]), _first_region(wanted))

    def _choose(self, language: str, locale: str, region: str) -> Texts:
        return Texts(language, Locale.parse(locale), region, _translations(self._files(language)))

    def _files(self, language: str) -> tuple[Path, ...]:
        """Where a language's texts are looked for, in this order."""
        own = self._paths.get(language)
        return ((own,) if own else ()) + (self._beneath._files(language) if self._beneath else ())


def preferred_languages(accept_language: str) -> list[str]:
    """The language tags of an `Accept-Language` header, best first;
    refused (`q=0`) and malformed ones are left out.
    """
    weighed = []
    for part in accept_language.split(","):
        match = _LANGUAGE_RANGE.fullmatch(part)
        if match and (quality := float(match[2] or 1)) > 0:
            weighed.append((quality, match[1]))
    return [tag for _, tag in sorted(weighed, key=lambda pair: -pair[0])]


def _first_locale(tags: list[str]) -> str:
    """The name of the first of the tags that is in a language that we have,
    without its private parts.
    """
    for tag in tags:
        language = tag.partition("-")[0].lower()
        for candidate in (tag, language) if language in LANGUAGES else ():
            try:
                return str(Locale.parse(candidate, sep="-"))
            except (UnknownLocaleError, ValueError):
                continue
    return SOURCE_LANGUAGE


def _first_region(tags: list[str]) -> str:
    """The country that the first of the tags names, if it is one."""
    regions = [part.upper() for part in (tags[0].split("-")[1:] if tags else []) if len(part) == 2]
    return regions[0] if regions and regions[0] in Locale(SOURCE_LANGUAGE).territories else ""


@cache
def _translations(paths: tuple[Path, ...]) -> NullTranslations:
    """The texts of .po files, the first one's before the others';
    without any they stay as they are.
    """
    if not paths:
        return NullTranslations()
    found, beneath = _translations_in(paths[0]), _translations(paths[1:])
    found.add_fallback(beneath)
    found.noted += getattr(beneath, "noted", ())
    return found


class _Translations(Translations):
    """What a .po file says, and which of its texts the books keep in English."""

    noted: tuple[str, ...] = ()


def _translations_in(path: Path) -> _Translations:
    """Read a .po file; entries marked fuzzy don't count."""
    compiled = BytesIO()
    with path.open("rb") as source:
        catalogue = read_po(source)
    if Locale.parse(path.parent.parent.name).text_direction == "rtl":
        _isolate_placeholders(catalogue)
    write_mo(compiled, catalogue)
    compiled.seek(0)
    found = _Translations(compiled)
    found.noted = tuple(str(one.id) for one in catalogue if one.id and NOTED in one.auto_comments)
    return found


def _isolate_placeholders(catalogue: Catalog) -> None:
    """Keep names and amounts whole in texts that run right to left:
    a Latin name's dots and brackets would stray.
    """
    for message in catalogue:
        if message.id and isinstance(message.string, str):
            message.string = _isolated(message.string)
        elif message.id:
            message.string = tuple(_isolated(form) for form in message.string or ())


def _isolated(text: str) -> str:
    return _PLACEHOLDER.sub(lambda placeholder: _ISOLATE.format(placeholder[0]), text)
