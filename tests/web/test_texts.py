from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from paydesk.web.checkout.pages import CATALOGUES, texts_for
from paydesk.web.texts import preferred_languages


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
        ("sv-SE,sv;q=0.9,de;q=0.5", "de"),
        ("de;q=0, en;q=0.1", "en"),
        ("zh", "zh"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("zh-Hans", "zh"),
        ("zh-Hans-SG", "zh"),
        ("ar-EG", "ar"),
        ("tr-CY", "tr"),
        ("vi-VN", "vi"),
        ("ja-JP", "ja"),
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
        ("en-US", "10.00", "USD", "10.00\u00a0USD"),
        ("en-GB", "1234.5", "EUR", "€1,234.50"),
        ("de-DE", "1234.50", "EUR", "1.234,50\u00a0€"),
        ("de-CH", "1234.50", "CHF", "1’234.50\u00a0CHF"),
        ("fr-FR", "10", "USD", "10,00\u00a0USD"),
        ("en-US", "10.0000", "JPY", "10\u00a0JPY"),
        ("en-US", "-10", "CAD", "−10.00\u00a0CAD"),
        ("en-US", "10.5", "IQD", "10.500\u00a0IQD"),
        ("en-US", "999999999999.99", "USD", "999,999,999,999.99\u00a0USD"),
        ("ja-JP", "500", "JPY", "500\u00a0JPY"),
        ("tr-TR", "1234.50", "TRY", "₺1.234,50"),
        ("vi-VN", "1234", "VND", "1.234\u00a0₫"),
        ("zh-CN", "1234.50", "CNY", "1,234.50\u00a0CNY"),
        ("zh-CN", "1234.50", "USD", "1,234.50\u00a0USD"),
        ("pt-BR", "1234.50", "BRL", "R$\u00a01.234,50"),
        ("pl", "1234.50", "PLN", "1234,50\u00a0zł"),
        ("ar-AE", "1234.50", "AED", "1,234.50\u00a0AED"),
    ],
)
def test_amounts_are_written_as_the_customer_writes_them(header: str, amount: str, currency: str, shown: str) -> None:
    # Whether a code and its amount are set apart differs between versions of the CLDR.
    written = texts_for(header).money(Decimal(amount), currency)
    assert written.replace("\u00a0", "") == shown.replace("\u00a0", "")


@pytest.mark.parametrize(("header", "region"), [("en-GB,en", "GB"), ("de", ""), ("", ""), ("es-419", "")])
def test_the_country_is_guessed_only_from_a_region(header: str, region: str) -> None:
    assert texts_for(header).region == region


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        ("en-US", "January 2, 2030, 3:04\u202fPM"),
        ("tr", "2 Ocak 2030 15:04"),
        ("vi", "15:04 2 tháng 1, 2030"),
        ("ja", "2030年1月2日 15:04"),
        ("zh-CN", "2030年1月2日 15:04"),
        ("ar", "2 يناير 2030، 3:04 م"),
        ("sv-SE", "January 2, 2030, 3:04\u202fPM"),
    ],
)
def test_a_moment_is_written_in_the_language_of_the_texts(header: str, shown: str) -> None:
    # Which space stands before AM and PM differs between versions of the CLDR.
    written = texts_for(header).moment(datetime(2030, 1, 2, 15, 4, tzinfo=UTC))
    assert " ".join(written.split()) == " ".join(shown.split())


def test_names_and_amounts_are_set_apart_in_texts_that_run_right_to_left() -> None:
    assert texts_for("ar").get("Pay %(amount)s") % {"amount": "10.00 USD"} == "دفع \u206810.00 USD\u2069"
    assert "\u2068" not in texts_for("de").get("Pay %(amount)s")


def test_a_line_of_parts_runs_as_its_page_does() -> None:
    assert texts_for("ar").in_line("9.00 EUR / شهر") == "\u20679.00 EUR / شهر\u2069"
    assert texts_for("de").in_line("9,00 € / Monat") == "9,00 € / Monat"


def test_german_shows_that_languages_can_be_added() -> None:
    assert "de" in CATALOGUES.languages
    assert texts_for("de").get("Card number") == "Kartennummer"


@pytest.mark.parametrize("header", ["en", "de", "ar", "fr", "ja"])
def test_what_is_taken_has_the_one_minus_sign(header: str) -> None:
    texts, owed = texts_for(header), Decimal("-8.60")
    for written in (texts.money(owed, "USD"), texts.money(owed, "EUR"), texts.money_in_ledger(owed, "USD")):
        assert "-" not in written
        assert written.count("\u2212") == 1


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [
        ("8217.9", "JPY", "8,217\u00a0JPY"),
        ("535.857", "EUR", "€535.85"),
        ("8.9", "USD", "8.90\u00a0USD"),
        ("-0.001", "EUR", "\u2212€0.01"),
        ("999999999999.9999", "BHD", "999,999,999,999.999\u00a0BHD"),
    ],
)
def test_a_balance_never_says_more_than_there_is(amount: str, currency: str, shown: str) -> None:
    assert texts_for("en").money_held(Decimal(amount), currency) == shown


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [("8217.9", "JPY", "8,217.9\u00a0JPY"), ("535.857", "EUR", "€535.857"), ("5", "JPY", "5\u00a0JPY")],
)
def test_the_ledgers_lines_keep_their_decimals(amount: str, currency: str, shown: str) -> None:
    assert texts_for("en").money_in_ledger(Decimal(amount), currency) == shown


def test_nothing_has_no_sign_whichever_was_written_first() -> None:
    texts = texts_for("en-US")
    assert [texts.money(Decimal(amount), "USD") for amount in ("-0.00", "0", "0.00", "-0")] == ["0.00\u00a0USD"] * 4
