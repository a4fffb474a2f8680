from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.database.pool import Database
from paydesk.domain.deliveries import confirmations
from paydesk.domain.deliveries.confirmations import read_delivery, read_order
from paydesk.domain.merchants import ignored_fields as module
from paydesk.domain.merchants.ignored_fields import MOST_NAMES, SentWith, ignored_fields, note_ignored
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import requests
from paydesk.domain.payments.requests import read_request
from paydesk.web.api.deliveries import BODY

FORM, DELIVERY = SentWith.FORM, SentWith.DELIVERY


async def names(database: Database, shop: Shop) -> list[tuple[str, str]]:
    return sorted((one.sent_with.value, one.name) for one in await ignored_fields(database, shop))


async def test_a_name_is_kept_once_with_the_first_and_the_last_time(
    database: Database, shop: Shop, other_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    first = utc_now()
    await note_ignored(database, shop, FORM, ["module_source", "amuont"], now=first)
    await note_ignored(database, shop, FORM, ["amuont"], now=first + timedelta(hours=1))
    await note_ignored(database, shop, DELIVERY, ["amuont"], now=first)
    assert await names(database, shop) == [("delivery", "amuont"), ("form", "amuont"), ("form", "module_source")]
    latest = (await ignored_fields(database, shop))[0]
    assert (latest.sent_with, latest.first_at, latest.last_at) == (FORM, first, first + timedelta(hours=1))
    for stranger in (other_shop, Shop(shop.merchant_id, True)):
        assert await ignored_fields(database, stranger) == []


async def test_what_a_process_has_just_noted_costs_no_statement(
    database: Database, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await note_ignored(database, shop, FORM, ["module_source"], now=utc_now())
    monkeypatch.setattr(module, "queries", None)
    await note_ignored(database, shop, FORM, ["module_source"], now=utc_now())
    await note_ignored(database, shop, FORM, [], now=utc_now())


async def test_the_log_is_bounded_and_known_names_are_still_seen(
    database: Database, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    began = utc_now()
    for part in range(8):
        await note_ignored(database, shop, FORM, [f"n{part}-{one:02}" for one in range(20)], now=began)
    assert len(await ignored_fields(database, shop)) == MOST_NAMES
    await note_ignored(database, shop, FORM, ["n0-00", "another"], now=began + timedelta(days=1))
    assert [one.name for one in await ignored_fields(database, shop) if one.last_at > began] == ["n0-00"]


async def test_nothing_like_a_card_number_and_no_value_is_kept(database: Database, shop: Shop) -> None:
    await note_ignored(
        database, shop, FORM, ["4242 4242 4242 4242", "half \ud800", "x" * 5000, "nul\x00"], now=utc_now()
    )
    assert [name for _, name in await names(database, shop)] == ["[digits]", "half ?", "nul\ufffd", "x" * 200]


async def test_a_database_that_is_away_loses_a_note_and_nothing_else(
    database: Database, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise OSError("gone")

    with monkeypatch.context() as broken:
        broken.setattr(module.queries, "note", away)
        await note_ignored(database, shop, FORM, ["module_source"], now=utc_now())
    await note_ignored(database, shop, FORM, ["module_source"], now=utc_now())
    assert await names(database, shop) == [("form", "module_source")]


class Asked(Mapping[str, Any]):
    """Fields that remember which of them were asked for."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields, self.names = fields, set[str]()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


def test_whatever_is_read_of_a_form_is_known() -> None:
    form = Asked({"currency": "USD", "amount": "1.00", "merchant_order_id": "1", "description": "A mug", "zip": "1"})
    read_request(form)
    assert form.names <= requests.KNOWN_FIELDS
    assert {"country_code", "payment_flow", "recurring_period", "email"} <= form.names


def test_whatever_is_read_of_a_delivery_is_known_and_in_the_api_s_document() -> None:
    said = Asked({"payment_order_id": "1", "status": "delivered"})
    with pytest.raises(Malformed):
        read_order(Asked({}))
    read_order(said)
    read_delivery(said)
    assert said.names <= confirmations.KNOWN_FIELDS
    assert BODY["properties"].keys() == confirmations.KNOWN_FIELDS
