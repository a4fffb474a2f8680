from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.database.pool import Database
from paydesk.domain.merchants import refused_forms
from paydesk.domain.merchants.refused_forms import PRIVATE_KEY, WrongHash, log_rejected_form, rejected_forms
from paydesk.domain.merchants.shop import Shop

ERROR = Malformed("amount is missing", "amount")


async def test_a_line_says_when_why_and_what(database: Database, shop: Shop) -> None:
    now = utc_now()
    await log_rejected_form(database, shop, ERROR, {"currency": "USD", "a": {"b": ["c"]}}, now)
    (line,) = await rejected_forms(database, shop.merchant_id)
    assert (line.live, line.at, line.status, line.reason) == (False, now, 400, "amount is missing")
    assert line.fields == {"currency": "USD", "a": "{'b': ['c']}"}


async def test_only_the_newest_lines_of_a_merchant_are_kept(
    database: Database, shop: Shop, other_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log_rejected_form(database, other_shop, ERROR, {}, utc_now())
    monkeypatch.setattr(refused_forms, "MOST_PER_MERCHANT", 5)
    began = utc_now()
    for n in range(12):
        await log_rejected_form(database, shop, ERROR, {"n": str(n)}, began + timedelta(seconds=n))
    lines = await rejected_forms(database, shop.merchant_id)
    assert [line.fields["n"] for line in lines] == ["11", "10", "9", "8", "7"]
    assert [line.fields["n"] for line in await rejected_forms(database, shop.merchant_id, most=2)] == ["11", "10"]
    assert len(await rejected_forms(database, other_shop.merchant_id)) == 1


async def test_what_was_signed_is_kept_where_every_field_is_kept_whole(database: Database, shop: Shop) -> None:
    wrong = WrongHash("amount=1&currency=USD", "the pair")
    for fields in ({"amount": "1"}, {"amount": "1" * 201}, {"amount": "4242424242424242"}):
        await log_rejected_form(database, shop, wrong, fields, utc_now())
    kept = await rejected_forms(database, shop.merchant_id)
    assert [(one.hashed, one.suspect) for one in reversed(kept)] == [
        ("amount=1&currency=USD", "the pair"),
        (None, "the pair"),
        (None, "the pair"),
    ]


async def test_the_private_key_is_not_kept_wherever_it_was_posted(database: Database, shop: Shop) -> None:
    key = "5e" * 24
    wrong = WrongHash(f"secret={key}", "")
    await log_rejected_form(database, shop, wrong, {"secret": key, f"x{key}": "y", "hash": key}, utc_now(), secret=key)
    (line,) = await rejected_forms(database, shop.merchant_id)
    assert key not in f"{line}"
    assert line.fields["secret"] == PRIVATE_KEY


@pytest.mark.parametrize(
    "text",
    [
        "4242424242424242",
        "my card: 4242 4242 4242 4242!",
        "4242-4242-4242-4242",
        "4242.4242.4242.4242",
        "42 42  42-42 – 4242 4242\t4242",
        "378282246310005",
        "x" * 390 + "4242424242424242",
        "4242424242424242" * 30,
    ],
)
def test_nothing_that_looks_like_a_card_number_is_kept(text: str) -> None:
    kept = refused_forms.storable(text)
    assert "4242" not in kept
    assert "3782" not in kept


def test_ordinary_values_are_kept_as_they_are() -> None:
    for text in ("10.00", "order-2026-11-21", "2026-11-21", "https://shop.example/?a=1", "SW1A 1AA"):
        assert refused_forms.storable(text) == text


@given(st.dictionaries(st.text(), st.one_of(st.text(), st.lists(st.text())), max_size=80))
def test_whatever_was_posted_is_bounded_and_can_be_stored(fields: dict[str, Any]) -> None:
    kept = refused_forms._shortened(fields)
    assert len(kept) <= 60
    for name, value in kept.items():
        assert len(name) <= 200
        assert len(value) <= 200
        assert "\x00" not in name + value
