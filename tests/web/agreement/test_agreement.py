from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from paydesk.core.periods import Period, Unit
from paydesk.domain.subscriptions.terms import Terms, Trial
from paydesk.web.agreement import consent_in_words, terms_in_words
from paydesk.web.checkout.pages import CATALOGUES, texts_for

HALF_YEARLY = Terms("Coffee club", "club", "USD", Decimal("10.0000"), Period(6, "month"), None, 0)
MONTHLY = replace(HALF_YEARLY, period=Period(1, "month"))
FREE = Trial(Decimal(0), Period(14, "day"))
SET_UP_FEE = Trial(Decimal(30), Period(1, "month"))


def words(terms: Terms, language: str = "en") -> str:
    return terms_in_words(terms, texts_for(language)).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("terms", "english", "german"),
    [
        (
            replace(HALF_YEARLY, trial=SET_UP_FEE),
            "30.00 USD today for 1 month, then 10.00 USD every 6 months until you cancel",
            "Heute 30,00 USD für 1 Monat, danach 10,00 USD alle 6 Monate, bis Sie kündigen",
        ),
        (
            replace(MONTHLY, trial=FREE),
            "Free for 14 days, then 10.00 USD every month until you cancel",
            "14 Tage kostenlos, danach 10,00 USD jeden Monat, bis Sie kündigen",
        ),
        (
            MONTHLY,
            "10.00 USD today, then 10.00 USD every month until you cancel",
            "Heute 10,00 USD, danach 10,00 USD jeden Monat, bis Sie kündigen",
        ),
        (
            replace(MONTHLY, limit=12),
            "10.00 USD today, then 10.00 USD every month, 12 payments in all",
            "Heute 10,00 USD, danach 10,00 USD jeden Monat, insgesamt 12 Zahlungen",
        ),
        (
            replace(MONTHLY, limit=12, trial=FREE),
            "Free for 14 days, then 10.00 USD every month, 12 payments in all",
            "14 Tage kostenlos, danach 10,00 USD jeden Monat, insgesamt 12 Zahlungen",
        ),
        (
            replace(MONTHLY, limit=12, trial=SET_UP_FEE),
            "30.00 USD today for 1 month, then 10.00 USD every month, 13 payments in all",
            "Heute 30,00 USD für 1 Monat, danach 10,00 USD jeden Monat, insgesamt 13 Zahlungen",
        ),
        (
            replace(HALF_YEARLY, limit=1),
            "10.00 USD today for 6 months, and nothing after that",
            "Heute 10,00 USD für 6 Monate, danach nichts mehr",
        ),
        (
            replace(HALF_YEARLY, limit=1, trial=FREE),
            "Free for 14 days, then 10.00 USD for 6 months, and nothing after that",
            "14 Tage kostenlos, danach 10,00 USD für 6 Monate und dann nichts mehr",
        ),
        (
            replace(MONTHLY, currency="JPY", price=Decimal(500), trial=Trial(Decimal(1), Period(1, "day"))),
            "1 JPY today for 1 day, then 500 JPY every month until you cancel",
            "Heute 1 JPY für 1 Tag, danach 500 JPY jeden Monat, bis Sie kündigen",
        ),
    ],
)
def test_terms_are_said_in_the_customers_language(terms: Terms, english: str, german: str) -> None:
    assert words(terms) == english
    assert words(terms, "de") == german


@pytest.mark.parametrize(
    ("unit", "one", "many", "eins", "viele"),
    [
        ("day", "every day", "every 2 days", "jeden Tag", "alle 2 Tage"),
        ("week", "every week", "every 2 weeks", "jede Woche", "alle 2 Wochen"),
        ("month", "every month", "every 2 months", "jeden Monat", "alle 2 Monate"),
        ("year", "every year", "every 2 years", "jedes Jahr", "alle 2 Jahre"),
    ],
)
def test_one_period_is_said_without_its_number(unit: Unit, one: str, many: str, eins: str, viele: str) -> None:
    for number, english, german in ((1, one, eins), (2, many, viele)):
        terms = replace(MONTHLY, period=Period(number, unit))
        assert f" {english} " in words(terms)
        assert f" {german}," in words(terms, "de")


def test_the_consent_names_the_merchant_the_package_and_the_terms() -> None:
    said = consent_in_words(MONTHLY, "Fern & 100% Kettle", texts_for("en"))
    assert said == f"I agree that Fern & 100% Kettle charges this card for “Coffee club”: {words(MONTHLY)}.".replace(
        "0 USD", "0\u00a0USD"
    )
    assert "„Coffee club“" in consent_in_words(MONTHLY, "Shop", texts_for("de"))


@pytest.mark.parametrize("language", CATALOGUES.languages)
def test_every_language_of_the_checkout_has_words_for_terms(language: str) -> None:
    assert language == "en" or words(MONTHLY, language) != words(MONTHLY)
