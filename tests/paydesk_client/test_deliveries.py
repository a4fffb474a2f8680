from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from tests.servers import answering
from tests.shopfront import buy, ships

from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk_client import ApiError, Gateway

KEY = "private-key-of-the-shop"


@pytest.fixture
async def payment_id(desk: Desk, shop: Shop, database: Database) -> int:
    """An order of the merchant that waits to be shipped."""
    await ships(database, shop)
    return await buy(desk, shop, "A-1")


@pytest.mark.parametrize("by", ["id", "reference"])
async def test_a_shipment_takes_the_money_and_again_answers_the_same(
    service: str,
    merchant: Merchant,
    payment_id: int,
    by: str,
) -> None:
    deliveries = Gateway(merchant.public_key, merchant.private_key, service).deliveries()

    def ship() -> dict[str, Any]:
        return deliveries.confirm(
            payment_id if by == "id" else None,
            "order_shipped",
            merchant_reference_id=None if by == "id" else "A-1",
            carrier_type="Royal Mail",
            carrier_tracking_id="AB123456789GB",
            shipping_address={"city": "London"},
            amount=Decimal("10.00"),
        )

    confirmed = await asyncio.to_thread(ship)
    assert (confirmed["status"], confirmed["payment_order_id"]) == ("captured", payment_id)
    assert await asyncio.to_thread(ship) == confirmed


async def test_what_is_missing_is_told(service: str, merchant: Merchant, payment_id: int) -> None:
    deliveries = Gateway(merchant.public_key, merchant.private_key, service).deliveries()
    with pytest.raises(ApiError, match="carrier_tracking_id is missing") as raised:
        await asyncio.to_thread(deliveries.confirm, payment_id, "order_shipped")
    assert raised.value.status == 400


def test_what_is_sent_are_the_fields_that_were_given() -> None:
    with answering(200, b'{"success": true, "data": {"id": 7}}') as (address, seen):
        deliveries = Gateway("p", KEY, address, is_test=True).deliveries()
        assert deliveries.confirm(7, "delivered", type="digital", details="sent by mail") == {"id": 7}
    assert (seen[0].path, seen[0].headers["X-ApiKey"]) == ("/sandbox/api/v1/deliveries", KEY)


def test_a_value_without_a_form_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(TypeError, match="a object can't be sent"):
        Gateway("p", KEY, "http://127.0.0.1:9").deliveries().confirm(7, "delivered", details=object())  # type: ignore[arg-type]
    assert KEY not in repr(Gateway("p", KEY).deliveries())
