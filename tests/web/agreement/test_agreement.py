from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest

from paydesk.core.periods import Period, Unit
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial
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


@pytest.mark.parametrize(
    ("language", "tried", "limited"),
    [
        (
            "tr",
            "14 gün ücretsiz, ardından iptal edilene kadar her ay 10,00 USD",
            "Bugün 10,00 USD, ardından 6 ayda bir 10,00 USD, toplam 12 ödeme",
        ),
        (
            "vi",
            "Miễn phí 14 ngày, sau đó 10,00 USD mỗi tháng cho đến khi hủy",
            "10,00 USD hôm nay, sau đó 10,00 USD mỗi 6 tháng, tổng cộng 12 lần thanh toán",
        ),
        (
            "ja",
            "14日間無料、その後は解約するまで毎月10.00 USD",
            "本日10.00 USD、その後は6か月ごとに10.00 USD（お支払いは全12回）",
        ),
        (
            "zh",
            "免费试用 14 天，之后每月 10.00 USD，直至取消",
            "今天支付 10.00 USD，之后每 6 个月 10.00 USD，共 12 次付款",
        ),
        (
            "ar",
            "مجانًا لمدة 14 يومًا، ثم 10.00 USD كل شهر حتى الإلغاء",
            "10.00 USD اليوم، ثم 10.00 USD كل 6 أشهر، 12 دفعة إجمالًا",
        ),
    ],
)
def test_terms_are_whole_sentences_where_words_stand_in_another_order(language: str, tried: str, limited: str) -> None:
    assert without_isolates(words(replace(MONTHLY, trial=FREE), language)) == tried
    assert without_isolates(words(replace(HALF_YEARLY, limit=12), language)) == limited


@pytest.mark.parametrize(
    ("number", "time"),
    [(1, "يوم واحد"), (2, "يومين"), (3, "3 أيام"), (10, "10 أيام"), (11, "11 يومًا"), (99, "99 يومًا"), (100, "100 يوم")],
)
def test_arabic_counts_in_its_six_ways(number: int, time: str) -> None:
    said = without_isolates(words(replace(MONTHLY, trial=Trial(Decimal(0), Period(number, "day"))), "ar"))
    assert said.startswith(f"مجانًا لمدة {time}، ثم ")


def without_isolates(text: str) -> str:
    """The text without the marks that set names and amounts apart where a language runs from right
    to left.
    """
    return text.replace("\u2068", "").replace("\u2069", "")


def test_the_consent_names_the_merchant_the_package_and_the_terms() -> None:
    said = consent_in_words(MONTHLY, "Fern & 100% Kettle", texts_for("en"))
    assert said == f"I agree that Fern & 100% Kettle charges this card for “Coffee club”: {words(MONTHLY)}.".replace(
        "0 USD", "0\u00a0USD"
    )
    assert "„Coffee club“" in consent_in_words(MONTHLY, "Shop", texts_for("de"))


@pytest.mark.parametrize(
    ("language", "charged", "tried", "counted", "once"),
    [
        (
            "fr",
            "30,00 USD aujourd’hui pour 1 mois, puis 10,00 USD tous les 6 mois jusqu’à résiliation",
            "14 jours d’essai gratuit, puis 10,00 USD chaque mois jusqu’à résiliation",
            "10,00 USD aujourd’hui, puis 10,00 USD toutes les 2 semaines, 22 paiements au total",
            "10,00 USD aujourd’hui pour 5 ans, puis plus rien",
        ),
        (
            "es",
            "30,00 USD hoy por 1 mes, después 10,00 USD cada 6 meses hasta que usted cancele",
            "14 días gratis, después 10,00 USD cada mes hasta que usted cancele",
            "10,00 USD hoy, después 10,00 USD cada 2 semanas, 22 pagos en total",
            "10,00 USD hoy por 5 años y nada más después",
        ),
        (
            "pt-BR",
            "30,00 USD hoje por 1 mês, depois 10,00 USD a cada 6 meses até que a assinatura seja cancelada",
            "14 dias grátis, depois 10,00 USD a cada mês até que a assinatura seja cancelada",
            "10,00 USD hoje, depois 10,00 USD a cada 2 semanas, 22 pagamentos no total",
            "10,00 USD hoje por 5 anos e nada mais depois disso",
        ),
        (
            "it",
            "30,00 USD oggi per 1 mese, poi 10,00 USD ogni 6 mesi fino alla disdetta",
            "14 giorni gratis, poi 10,00 USD ogni mese fino alla disdetta",
            "10,00 USD oggi, poi 10,00 USD ogni 2 settimane, 22 pagamenti in tutto",
            "10,00 USD oggi per 5 anni, poi più nulla",
        ),
        (
            "pl",
            "30,00 USD dziś za 1 miesiąc, potem 10,00 USD co 6 miesięcy do czasu rezygnacji",
            "14 dni bezpłatnie, potem 10,00 USD co miesiąc do czasu rezygnacji",
            "10,00 USD dziś, potem 10,00 USD co 2 tygodnie, łącznie 22 płatności",
            "10,00 USD dziś za 5 lat, a później już nic",
        ),
    ],
)
def test_terms_read_as_one_line_in_other_languages(
    language: str, charged: str, tried: str, counted: str, once: str
) -> None:
    assert words(replace(HALF_YEARLY, trial=SET_UP_FEE), language) == charged
    assert words(replace(MONTHLY, trial=FREE), language) == tried
    assert words(replace(MONTHLY, period=Period(2, "week"), limit=22), language) == counted
    assert words(replace(MONTHLY, period=Period(5, "year"), limit=1), language) == once


@pytest.mark.parametrize(("number", "polish"), [(1, "co rok"), (3, "co 3 lata"), (5, "co 5 lat"), (22, "co 22 lata")])
def test_polish_has_a_form_for_few_and_one_for_many(number: int, polish: str) -> None:
    assert f" {polish} do " in words(replace(MONTHLY, period=Period(number, "year")), "pl")


@pytest.mark.parametrize("language", CATALOGUES.languages)
def test_the_consent_is_a_whole_sentence_in_every_language(language: str) -> None:
    texts = texts_for(language)
    for trial, limit in product((None, FREE, SET_UP_FEE), (0, 1, 7)):
        terms = replace(HALF_YEARLY, trial=trial, limit=limit)
        said = consent_in_words(terms, "Fern & 100% Kettle", texts)
        price = texts.money(terms.price, "USD")
        for part in ("Fern & 100% Kettle", "Coffee club", price, terms_in_words(terms, texts)):
            assert part in said, (trial, limit)
        assert said[-1] in ".。", (trial, limit)
        assert "%(" not in said, (trial, limit)


@pytest.mark.parametrize("language", CATALOGUES.languages)
def test_every_language_of_the_checkout_has_words_for_terms(language: str) -> None:
    assert language == "en" or words(MONTHLY, language) != words(MONTHLY)
