from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from paydesk.web import messages
from paydesk.web.checkout.pages import CATALOGUES, texts_for
from paydesk.web.texts import preferred_languages

CATALOGUE_PATHS = [path for door in messages.doors() for path in messages.catalogue_paths(door)]


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT", "de"),
        ("DE-ch", "de"),
        ("en-US,en;q=0.9,de;q=0.8", "en"),
        ("en;q=0.5, de;q=0.9", "de"),
        ("de ; q=0.2, en; q=0.1", "de"),
        ("fr-FR,fr;q=0.9,de;q=0.5", "de"),
        ("de;q=0, en;q=0.1", "en"),
        ("tlh", "en"),
        ("*", "en"),
        ("de;q=2", "en"),
        (";;;,,,=", "en"),
        ("\x00\xff", "en"),
        ("x" * 100_000, "en"),
    ],
)
def test_the_browsers_languages_pick_the_texts(header: str, language: str) -> None:
    assert texts_for(header).language == language


def test_languages_are_ordered_by_quality_and_then_by_place() -> None:
    assert preferred_languages("a;q=0.1, b, c;q=0.5, d;q=0, e;q=0.5") == ["b", "c", "e", "a"]


@pytest.mark.parametrize(
    ("header", "amount", "currency", "shown"),
    [
        ("en-US", "10.00", "USD", "$10.00"),
        ("en-GB", "1234.5", "EUR", "€1,234.50"),
        ("de-DE", "1234.50", "EUR", "1.234,50\u00a0€"),
        ("de-CH", "1234.50", "CHF", "CHF\u00a01’234.50"),
        ("fr-FR", "10", "USD", "10,00\u00a0$US"),
        ("en-US", "10.0000", "JPY", "¥10"),
        ("en-US", "10.5", "IQD", "IQD\u00a010.500"),
        ("ja-JP", "500", "JPY", "￥500"),
    ],
)
def test_amounts_are_written_as_the_customer_writes_them(header: str, amount: str, currency: str, shown: str) -> None:
    # Whether a code and its amount are set apart differs between versions of the CLDR.
    written = texts_for(header).money(Decimal(amount), currency)
    assert written.replace("\u00a0", "") == shown.replace("\u00a0", "")


@pytest.mark.parametrize(
    ("header", "amount", "currency", "shown"),
    [
        ("en", "10", "USD", "10.00\u00a0USD"),
        ("de", "1234.5", "EUR", "1.234,50\u00a0EUR"),
        ("en", "500", "JPY", "500\u00a0JPY"),
        ("en", "1.5", "BHD", "1.500\u00a0BHD"),
        ("en", "999999999999.99", "USD", "999,999,999,999.99\u00a0USD"),
    ],
)
def test_amounts_with_a_code_have_the_currencys_digits(header: str, amount: str, currency: str, shown: str) -> None:
    assert texts_for(header).money_with_code(Decimal(amount), currency) == shown


@pytest.mark.parametrize(("header", "region"), [("en-GB,en", "GB"), ("de", ""), ("", ""), ("es-419", "")])
def test_the_country_is_guessed_only_from_a_region(header: str, region: str) -> None:
    assert texts_for(header).region == region


def test_german_shows_that_languages_can_be_added() -> None:
    assert "de" in CATALOGUES.languages
    assert texts_for("de").get("Card number") == "Kartennummer"


@pytest.mark.parametrize("path", CATALOGUE_PATHS, ids=lambda path: str(path.relative_to(messages.WEB)))
def test_every_text_is_translated_and_none_is_stale(path: Path) -> None:
    assert messages.untranslated(path) == [], "run `make messages` and translate these"
    assert messages.stale(path) == [], "run `make messages`"


def test_a_new_language_begins_with_all_texts_and_keeps_translations(tmp_path: Path) -> None:
    door = tmp_path / "shop"
    (door / "templates").mkdir(parents=True)
    page = door / "templates" / "page.html"
    page.write_text("{% trans %}Good   day{% endtrans %} {{ _('Bye') }}")
    (door / "wording.py").write_text("TEXT = mark('Thanks')")
    path = door / "locale" / "fr" / "LC_MESSAGES" / "shop.po"
    assert messages.update(path)
    assert sorted(messages.untranslated(path)) == ["Bye", "Good   day", "Thanks"]
    path.write_text(path.read_text().replace('msgid "Bye"\nmsgstr ""', 'msgid "Bye"\nmsgstr "Au revoir"'))
    page.write_text("{{ _('Bye') }}")
    assert messages.stale(path) == ["Good   day"]
    assert messages.update(path)
    assert messages.stale(path) == []
    assert messages.untranslated(path) == ["Thanks"]
    assert not messages.update(path)
