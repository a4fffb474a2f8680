from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests.servers import answering

from paydesk.domain.merchants.merchant import Merchant
from paydesk_client import ApiError, Gateway


async def test_a_checkout_of_the_real_service_leads_to_its_page(service: str, merchant: Merchant) -> None:
    checkouts = Gateway(merchant.public_key, merchant.private_key, service, is_test=True).checkouts()
    lines = [{"name": "Mug", "unit_price": Decimal("4.00"), "quantity": 2}, {"name": "Tea", "unit_price": 2}]

    def create() -> dict[str, Any]:
        return checkouts.create(
            "A-1",
            Decimal("10.00"),
            "USD",
            "Golden Ticket",
            line_items=lines,
            email="ada@example.com",
            idempotency_key="a",
        )

    first, second = [await asyncio.to_thread(create) for _ in range(2)]
    assert first == second
    async with httpx.AsyncClient() as browser:
        shown = await browser.get(first["url"].replace(first["url"].partition("/checkout/")[0], f"{service}/sandbox"))
    assert "ada@example.com" in shown.text
    with pytest.raises(ApiError) as raised:
        await asyncio.to_thread(checkouts.create, "A-1", "10.00", "USD", "Golden Ticket", colour="red")
    assert (raised.value.status, "colour" in raised.value.message) == (400, True)
    assert raised.value.idempotency_key


@pytest.mark.parametrize("amount", [1.5, True, None])
def test_an_amount_of_another_type_is_never_sent(amount: Any) -> None:
    with answering() as (address, seen):
        checkouts = Gateway("public", "private", address).checkouts()
        with pytest.raises(TypeError, match="give it as text or Decimal"):
            checkouts.create("A-1", amount, "USD", "Golden Ticket")
        with pytest.raises(TypeError, match="unit_price"):
            checkouts.create("A-1", "1.00", "USD", "Tea", line_items=[{"name": "Tea", "unit_price": amount}])
        assert seen == []


def test_amounts_are_written_out() -> None:
    with answering() as (address, seen):
        Gateway("public", "private", address).checkouts().create("A-1", Decimal("1E+2"), "USD", "Tea")
        assert json.loads(seen[0].body)["amount"] == "100"
