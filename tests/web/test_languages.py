"""Every page speaks every language: all of it, with its money and dates,
and nothing is left in English.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel import Locale
from babel.dates import format_date
from babel.messages.pofile import read_po
from tests.lengths import one_of
from tests.web.every_page import LATER, NOW, PAGES

from paydesk.web import messages
from paydesk.web.checkout import pages as checkout
from paydesk.web.portal import pages as portal

PROMISED = ("ar", "de", "en", "es", "fr", "it", "ja", "pl", "pt", "tr", "vi", "zh")
FOREIGN = [language for language in checkout.CATALOGUES.languages if language != "en"]
CUSTOMERS_DOORS = [door for door in messages.doors() if door.name not in ("account", "console", "operator")]
SHOWN_ATTRIBUTES = ("placeholder", "aria-label", "title", "alt")
VOID = frozenset(["meta", "link", "input", "br", "img", "path", "circle", "rect", "option", "li", "th", "td", "tr"])
WORD = re.compile(r"[A-Za-z]{2,}")


class Shown(HTMLParser):
    """What a page says in its own language: its text and what attributes show,
    without the list of countries.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html: dict[str, str | None] = {}
        self.said: list[str] = []
        self._hidden: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "html":
            self.html = attributes
        elif (
            tag in ("select", "code", "script") or attributes.get("lang") == "en" or (self._hidden and tag not in VOID)
        ):
            self._hidden.append(tag)
        if not self._hidden:
            self.said += [
                value or ""
                for name, value in attrs
                if name in SHOWN_ATTRIBUTES or (name.startswith("data-") and not (value or "").startswith("/"))
            ]

    def handle_endtag(self, tag: str) -> None:
        if self._hidden and tag == self._hidden[-1]:
            self._hidden.pop()

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.said.append(data)


@cache
def shown(name: str, header: str) -> Shown:
    return Shown(bytes(PAGES[name](header).body).decode())


def words(texts: list[str]) -> set[str]:
    """The Latin words in texts, without placeholders and markup."""
    return {word.lower() for text in texts for word in WORD.findall(re.sub(r"%\(\w+\)s|<[^>]*>", " ", text))}


@cache
def english_words(language: str) -> frozenset[str]:
    """Words that only the English texts have, and no translation into the language."""
    english: list[str] = []
    translated: list[str] = []
    for door in CUSTOMERS_DOORS:
        path = door / "locale" / language / "LC_MESSAGES" / f"{door.name}.po"
        with path.open("rb") as source:
            for message in read_po(source, locale=language):
                if message.id and message.string:
                    english += [message.id] if isinstance(message.id, str) else message.id
                    translated += [message.string] if isinstance(message.string, str) else message.string
    return frozenset(words(english) - words(translated) - {"cvc"})


@pytest.mark.parametrize("name", one_of(4, PAGES))
def test_no_page_keeps_english_words_in_another_language(name: str) -> None:
    left = {language: words(shown(name, language).said) & english_words(language) for language in FOREIGN}
    assert {language: found for language, found in left.items() if found} == {}


@pytest.mark.parametrize("language", FOREIGN)
def test_an_english_page_would_be_noticed(language: str) -> None:
    blind = [name for name in PAGES if not words(shown(name, "en").said) & english_words(language)]
    assert blind == []


@pytest.mark.parametrize("name", one_of(4, PAGES))
def test_every_page_says_in_which_language_and_direction_it_is(name: str) -> None:
    for language in ("en", *FOREIGN):
        html = shown(name, language).html
        assert html == {"lang": language, "dir": Locale.parse(language, sep="-").text_direction}


@pytest.mark.parametrize("door", messages.doors(), ids=lambda door: door.name)
def test_every_door_speaks_all_promised_languages(door: Path) -> None:
    spoken = {path.parent.parent.name for path in messages.catalogue_paths(door)} | {"en"}
    assert spoken >= set(PROMISED)
    assert spoken == set(checkout.CATALOGUES.languages) == set(portal.CATALOGUES.languages)


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("fr-CA,fr;q=0.9,en;q=0.8", "fr"),
        ("es-419,es;q=0.9", "es"),
        ("es-MX", "es"),
        ("pt-BR,pt;q=0.9,en-US;q=0.8", "pt"),
        ("pt-PT", "pt"),
        ("it-CH,it;q=0.9", "it"),
        ("pl-PL,pl;q=0.9,en-US;q=0.8,en;q=0.7", "pl"),
        ("tr-TR", "tr"),
        ("vi-VN,vi;q=0.9", "vi"),
        ("ja-JP", "ja"),
        ("zh-CN,zh;q=0.9", "zh"),
        ("zh-Hans-SG", "zh"),
        ("ar-EG,ar;q=0.9", "ar"),
    ],
)
def test_a_regions_browser_gets_its_language(header: str, language: str) -> None:
    assert checkout.texts_for(header).language == language
    assert portal.texts_for(header).language == language


@pytest.mark.parametrize("language", FOREIGN)
def test_money_and_dates_are_written_as_in_the_language(language: str) -> None:
    locale = Locale.parse(language, sep="-")
    paying, expired, subscribed = (
        " ".join(shown(name, language).said) for name in ("payment", "expired", "portal, active")
    )
    assert checkout.texts_for(language).money(Decimal("1234.50"), "USD") in paying
    assert format_date(NOW, "long", locale) in expired
    assert format_date(LATER, "long", locale) in subscribed
    assert format_date(NOW, "medium", locale) in subscribed


@pytest.mark.parametrize("language", FOREIGN)
def test_countries_are_named_in_the_language(language: str) -> None:
    names = Locale.parse(language, sep="-").territories
    page = bytes(PAGES["payment"](language).body).decode()
    assert f"<option value=JP>{names['JP']}" in page
    assert f"<option value=DE>{names['DE']}" in page
