"""What a merchant's server reads about its money: balance, ledger, payouts, chargebacks."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import set_back
from tests.domain.ledger.paying_out import record_payout
from tests.web.api.conftest import subscribe

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

CHARGED_BACK = "4000000000000259"


@pytest.fixture(autouse=True)
async def _from_the_start(database: Database) -> None:
    """Each test has a bank of its own, whose disputes nobody has read."""
    await set_back.banks_tell_again(database)


async def settle(database: Database, shop: Shop, days: int) -> None:
    at = utc_now() + timedelta(days=days)
    while await settle_due(database, real_now=utc_now(), merchant_id=shop.merchant_id, at=at):
        pass


async def test_the_balance_says_what_is_pending_available_and_reserved(
    server: Any, customers: Any, database: Database, shop: Shop
) -> None:
    assert (await server.get("/api/v1/balance"))["data"] == []
    before = utc_now()
    await customers.buy()
    days = {(at + timedelta(days=180)).date().isoformat() for at in (before, utc_now())}
    (balance,) = (await server.get("/api/v1/balance"))["data"]
    assert balance == {
        "currency": "USD",
        "pending": 8.9,
        "available": 0,
        "reserve": 0.5,
        "reserve_releases": [{"day": balance["reserve_releases"][0]["day"], "amount": 0.5}],
    }
    assert balance["reserve_releases"][0]["day"] in days
    await settle(database, shop, 8)
    (balance,) = (await server.get("/api/v1/balance"))["data"]
    assert (balance["pending"], balance["available"]) == (0, 8.9)


async def test_ledger_lines_add_up_and_come_page_by_page(
    server: Any, customers: Any, database: Database, shop: Shop
) -> None:
    for _ in range(5):
        await customers.buy()
    await settle(database, shop, 8)
    lines = [line async for page in server.pages("/api/v1/ledger", limit=3) for line in page]
    assert [line["kind"] for line in lines] == ["settlement"] * 5 + ["capture"] * 5
    assert len({line["id"] for line in lines}) == 10
    for line in lines:
        left = round(line["gross"] + line["fees"], 4)
        assert left == round(line["pending"] + line["available"] + line["reserve"], 4)
    assert round(sum(line["available"] for line in lines), 4) == 44.5


async def test_payouts_are_listed(server: Any, customers: Any, database: Database, shop: Shop) -> None:
    await customers.buy()
    await settle(database, shop, 8)
    now = utc_now() + timedelta(days=9)
    payout = await record_payout(database, shop, Decimal("5.00"), "USD", reference="T-1", recorded_by="x", now=now)
    (listed,) = (await server.get("/api/v1/payouts"))["data"]
    assert listed == {
        "id": payout.id, "currency": "USD", "amount": 5, "reference": "T-1", "at": int(now.timestamp())
    }  # fmt: skip
    (newest,) = (await server.get("/api/v1/ledger", limit=1))["data"]
    assert (newest["kind"], newest["payout_id"], newest["gross"], newest["available"]) == (
        "payout", payout.id, -5, -5
    )  # fmt: skip


async def test_a_chargeback_is_listed_shown_and_answered(server: Any, customers: Any, desk: Desk) -> None:
    await customers.buy("A-17", number=CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    (listed,) = (await server.get("/api/v1/chargebacks", status="open"))["data"]
    assert (listed["merchant_order_id"], listed["amount"], listed["fee"], listed["evidence"]) == ("A-17", 10, 15, "")
    path = f"/api/v1/chargebacks/{listed['id']}"
    said = await server.call("POST", f"{path}/evidence", json={"text": "Signed for on 3 March"})
    assert said.status_code == 200
    shown = (await server.get(path))["data"]
    assert shown["evidence"] == "Signed for on 3 March"
    assert shown["evidence_at"] > 0
    assert (await server.get("/api/v1/chargebacks", status="won"))["data"] == []


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": 5}, {"text": "x", "more": 1}, {"text": "x" * 20_001}])
async def test_evidence_that_is_none_is_refused(server: Any, customers: Any, desk: Desk, body: dict[str, Any]) -> None:
    await customers.buy(number=CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    (listed,) = (await server.get("/api/v1/chargebacks"))["data"]
    said = await server.call("POST", f"/api/v1/chargebacks/{listed['id']}/evidence", json=body)
    assert said.status_code == 400
    assert set(said.json()) == {"success", "type", "message", "code"}


async def test_a_chargeback_ends_its_subscription_and_tells_both(
    server: Any, customers: Any, desk: Desk, told: Any
) -> None:
    await subscribe(customers, number=CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    (subscription,) = (await server.get("/api/v1/subscriptions"))["data"]
    assert subscription["status"] == "Cancelled"
    assert await told() == ["payment", "chargeback", "subscription_cancelled"]


@pytest.mark.parametrize(
    "path", ["/api/v1/balance", "/api/v1/ledger", "/api/v1/payouts", "/api/v1/chargebacks", "/api/v1/chargebacks/1"]
)
async def test_nothing_is_told_without_the_key(server_of: Any, path: str) -> None:
    assert (await server_of("wrong-key-0123456789").call("GET", path)).status_code == 401


@pytest.mark.parametrize("path", ["/api/v1/ledger", "/api/v1/payouts", "/api/v1/chargebacks"])
async def test_what_is_asked_wrongly_is_named(server: Any, path: str) -> None:
    for query in ({"limit": "0"}, {"from": "yesterday"}, {"cursor": "zzz"}, {"colour": "red"}):
        said = await server.call("GET", path, params=query)
        assert (said.status_code, next(iter(query)) in said.json()["message"]) == (400, True)
