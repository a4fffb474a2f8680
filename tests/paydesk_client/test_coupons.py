from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from tests.servers import answering

from paydesk.domain.merchants.merchant import Merchant
from paydesk_client import ApiError, Gateway


async def test_a_coupon_of_the_real_service_is_made_once_and_switched_off(service: str, merchant: Merchant) -> None:
    coupons = Gateway(merchant.public_key, merchant.private_key, service, is_test=True).coupons()
    make = partial(coupons.make, "spring", amount=Decimal("5.00"), currency="EUR", periods=3, sku_ids=["club"])
    first, second = [await asyncio.to_thread(make) for _ in range(2)]
    assert first == second
    assert (first["code"], first["amount"], first["sku_ids"], first["active"]) == ("SPRING", 5, ["club"], True)
    off = await asyncio.to_thread(coupons.switch_off, first["id"])
    assert off == {**first, "active": False}
    with pytest.raises(ApiError) as raised:
        await asyncio.to_thread(coupons.make, "spring", percent=10)
    assert (raised.value.status, bool(raised.value.idempotency_key)) == (409, True)
    with pytest.raises(ApiError) as unknown:
        await asyncio.to_thread(coupons.switch_off, first["id"] + 1)
    assert unknown.value.status == 404


@pytest.mark.parametrize("value", [1.5, True])
def test_a_value_of_another_type_is_never_sent(value: Any) -> None:
    with answering() as (address, seen):
        coupons = Gateway("public", "private", address).coupons()
        with pytest.raises(TypeError, match="give it as text or Decimal"):
            coupons.make("spring", percent=value)
        with pytest.raises(TypeError, match="amount"):
            coupons.make("spring", amount=value, currency="EUR")
        assert seen == []


def test_only_what_is_given_is_sent() -> None:
    with answering() as (address, seen):
        Gateway("public", "private", address).coupons().make("spring", percent=Decimal("1E+1"), idempotency_key="a")
        assert json.loads(seen[0].body) == {"code": "spring", "percent": "10"}
