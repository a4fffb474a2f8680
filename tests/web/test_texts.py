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
        ("en-US", "10.00", "USD", "$10.00"),
        ("en-GB", "1234.5", "EUR", "€1,234.50"),
        ("de-DE", "1234.50", "EUR", "1.234,50\u00a0€"),
        ("de-CH", "1234.50", "CHF", "CHF\u00a01’234.50"),
        ("fr-FR", "10", "USD", "10,00\u00a0$US"),
        ("en-US", "10.0000", "JPY", "¥10"),
        ("en-US", "10.5", "IQD", "IQD\u00a010.500"),
        ("ja-JP", "500", "JPY", "￥500"),
        ("tr-TR", "1234.50", "TRY", "₺1.234,50"),
        ("vi-VN", "1234", "VND", "1.234\u00a0₫"),
        ("zh-CN", "1234.50", "CNY", "¥1,234.50"),
        ("ar-AE", "1234.50", "AED", "\u200f1,234.50\u00a0د.إ.\u200f"),
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


def test_german_shows_that_languages_can_be_added() -> None:
    assert "de" in CATALOGUES.languages
    assert texts_for("de").get("Card number") == "Kartennummer"
