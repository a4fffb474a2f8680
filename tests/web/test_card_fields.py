from __future__ import annotations

from datetime import UTC, datetime

import pytest

from paydesk.web.card_fields import read_card

NOW = datetime(2029, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("number", "expiry", "cvc"),
    [
        ("4242 4242 4242 4242", "09 / 30", "123"),
        ("٤٢٤٢ ٤٢٤٢ ٤٢٤٢ ٤٢٤٢", "٠٩ / ٣٠", "١٢٣"),
        ("۴۲۴۲۴۲۴۲۴۲۴۲۴۲۴۲", "۰۹/۲۰۳۰", "۱۲۳"),
        ("４２４２　４２４２　４２４２　４２４２", "０９／３０", "１２３"),
    ],
    ids=["Latin", "Arabic", "Persian", "full-width"],
)
def test_a_card_may_be_typed_in_the_digits_of_the_customers_keyboard(number: str, expiry: str, cvc: str) -> None:
    errors: dict[str, str] = {}
    form = {"number": number, "expiry": expiry, "cvc": cvc, "holder": "Ada Lovelace"}
    card = read_card(form, errors, NOW)
    assert errors == {}
    assert (card.number, card.exp_month, card.exp_year, card.cvc) == ("4242424242424242", 9, 2030, "123")


@pytest.mark.parametrize("text", ["½", "四二", "４２４２", "٤" * 300, "ﷺ" * 300])
def test_other_characters_are_no_digits(text: str) -> None:
    errors: dict[str, str] = {}
    read_card({"number": text, "expiry": text, "cvc": text, "holder": "Ada"}, errors, NOW)
    assert set(errors) >= {"number", "expiry"}
