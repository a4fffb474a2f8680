"""Coupons by the API."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domain.coupons.test_coupons import with_coupon
from tests.till import Till
from tests.web.api.conftest import Server

SPRING = {"code": "spring", "amount": "2.50", "currency": "USD", "periods": 3, "most_uses": 5, "sku_ids": ["club"]}


async def make(server: Server, **asked: Any) -> Any:
    return await server.call("POST", "/api/v1/coupons", json=asked)


async def test_a_coupon_is_made_once_listed_and_switched_off(server: Server, customers: Till) -> None:
    made = (await make(server, **SPRING, valid_until="2099-01-01")).json()["data"]
    assert made == (await make(server, **SPRING, valid_until="2099-01-01")).json()["data"]
    assert made == {
        **SPRING,
        "id": made["id"],
        "code": "SPRING",
        "amount": 2.5,
        "percent": None,
        "valid_from": None,
        "valid_until": 4070908800,
        "most_per_customer": None,
        "active": True,
        "uses": 0,
        "created_at": made["created_at"],
    }
    await customers.pay(await with_coupon(customers, "spring"))
    one = (await server.get(f"/api/v1/coupons/{made['id']}"))["data"]
    assert one == {**made, "uses": 1}
    second = (await make(server, code="other", percent=20)).json()["data"]
    assert (await server.get("/api/v1/coupons"))["data"] == [second, one]
    pages = [page async for page in server.pages("/api/v1/coupons", limit=1)]
    assert pages == [[second], [one]]
    for _ in range(2):
        off = await server.call("POST", f"/api/v1/coupons/{made['id']}/switch_off")
        assert off.json()["data"] == {**one, "active": False}


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"code": "spring", "percent": "20"}, 409),
        ({"code": "new", "percent": "200"}, 400),
        ({"code": "new", "percent": True}, 400),
        ({"code": "new", "percent": "20", "sku_ids": "club"}, 400),
        ({"code": "new", "percent": "20", "valid_from": "soon"}, 400),
        ({"code": "new", "percent": "20", "unknown": "1"}, 400),
        ({"percent": "20"}, 400),
    ],
)
async def test_what_can_t_be_is_refused(server: Server, asked: dict[str, Any], status: int) -> None:
    await make(server, **SPRING)
    assert (await make(server, **asked)).status_code == status


async def test_nobody_elses_coupon_is_found(server: Server) -> None:
    assert (await server.call("GET", "/api/v1/coupons/1")).status_code == 404
    assert (await server.call("POST", "/api/v1/coupons/1/switch_off")).status_code == 404
