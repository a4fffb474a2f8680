"""What a merchant's server is told while payments are held, and what it may do all the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from tests.shopfront import ships
from tests.till import Till
from tests.web.api.conftest import Server, subscribe
from tests.web.conftest import Hold

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.merchants.merchant import Merchant, shop_of
from paydesk.domain.merchants.test_clock import read_clock

DELIVERIES, CLOCK = "/api/v1/deliveries", "/api/v1/test_clock"
SHIPPED = {"status": "order_shipped", "carrier_type": "DHL", "carrier_tracking_id": "00340434161094021501"}


@pytest.fixture(autouse=True)
def _held_later(hold: Hold) -> None:
    """It is there before a service is."""


@pytest.fixture
async def to_ship(customers: Till, database: Database, merchant: Merchant) -> int:
    """The payment of an order whose money is held until it is shipped."""
    await ships(database, shop_of(merchant, live=False))
    await customers.buy("mug-1")
    return int(await database.fetchval("select id from payment where merchant_id = $1", merchant.id))


async def state(database: Database, payment_id: int) -> str:
    return str(await database.fetchval("select state from payment where id = $1", payment_id))


async def refused(hold: Hold, server: Server, path: str, **options: Any) -> str:
    """The message by which a call is refused."""
    answer = await server.call("POST", path, **options)
    hold.is_told(answer)
    body = answer.json()
    assert (body["success"], body["type"], body["code"]) == (False, "error", 503)
    return str(body["message"])


async def ahead(database: Database, merchant: Merchant) -> float:
    """How far the test clock runs ahead, in days."""
    clock = await read_clock(database, merchant.id, real_now=utc_now())
    assert not clock.moving
    return round(clock.ahead.total_seconds() / 86400, 3)


async def test_a_shipment_is_confirmed_once_it_can_take_its_money(
    server: Server, hold: Hold, to_ship: int, database: Database, count_rows: Any
) -> None:
    await hold.begin()
    call: dict[str, Any] = {
        "json": {"payment_order_id": to_ship, **SHIPPED},
        "headers": {"Idempotency-Key": "shipped-1"},
    }
    assert "payments are held: the database was restored" in await refused(hold, server, DELIVERIES, **call)
    assert (await state(database, to_ship), await count_rows("movement")) == ("authorized", 0)
    said = await server.call("POST", DELIVERIES, json={"payment_order_id": to_ship, "status": "order_placed"})
    assert said.status_code == 200, "what takes no money is kept"
    hold.lift()
    assert (await server.call("POST", DELIVERIES, **call)).json()["data"]["status"] == "captured"
    assert (await state(database, to_ship), await count_rows("movement")) == ("captured", 1)


async def test_what_is_authorized_is_not_let_go(
    server: Server, hold: Hold, to_ship: int, database: Database, count_rows: Any
) -> None:
    await hold.begin()
    await refused(hold, server, f"/payment/{to_ship}/refund")
    assert (await state(database, to_ship), await count_rows("movement")) == ("authorized", 0)
    hold.lift()
    assert (await server.call("POST", f"/payment/{to_ship}/refund")).status_code == 200
    assert await state(database, to_ship) == "voided"


async def test_a_test_clock_stays_where_it_is(
    server: Server, hold: Hold, customers: Till, database: Database, merchant: Merchant, count_rows: Any
) -> None:
    await subscribe(customers)
    await hold.begin()
    await refused(hold, server, CLOCK, json={"advance": "1d"})
    await refused(hold, server, CLOCK, json={"advance": "31d"}, headers={"Idempotency-Key": "a-month"})
    assert (await ahead(database, merchant), await count_rows("payment")) == (0, 1)
    hold.lift()
    moved = await server.call("POST", CLOCK, json={"advance": "31d"}, headers={"Idempotency-Key": "a-month"})
    assert moved.json()["data"]["counts"]["payment"] == 1
    assert await count_rows("payment") == 2


async def test_a_test_clock_that_is_held_on_its_way_says_where_it_stands_and_goes_on_from_there(
    server: Server,
    hold: Hold,
    customers: Till,
    database: Database,
    merchant: Merchant,
    count_rows: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subscription = await subscribe(customers)
    honest = BillingRun.charge_due

    async def charge_and_be_held(run: BillingRun, *, merchant_id: int, at: datetime) -> int:
        charged = await honest(run, merchant_id=merchant_id, at=at)
        hold.shut()
        return charged

    with monkeypatch.context() as held:
        held.setattr(BillingRun, "charge_due", charge_and_be_held)
        message = await refused(hold, server, CLOCK, json={"advance": "92d"})
    assert subscription.date_next is not None
    stands = await ahead(database, merchant)
    assert 27 < stands < 59, "past the first renewal, and not at the second"
    assert f"the test clock has come to {subscription.date_next:%Y-%m}" in message
    assert "From there on payments are held" in message
    assert await count_rows("payment") == 2
    hold.lift()
    rest = await server.call("POST", CLOCK, json={"advance": f"{92 - round(stands)}d"})
    assert rest.json()["data"]["counts"]["payment"] == 2
    assert await count_rows("payment") == 4


async def test_what_moves_no_money_goes_on(server: Server, hold: Hold, customers: Till) -> None:
    subscription = await subscribe(customers, "club-1")
    await hold.begin()
    for path in ("/api/v1/payments", f"/api/v1/subscriptions/{subscription.id}", "/api/v1/balance"):
        assert (await server.get(path))["data"]
    cancelled = await server.call("POST", f"/api/subscription/{subscription.id}/cancel")
    assert cancelled.status_code == 200, cancelled.text
    shown = (await server.get(f"/api/v1/subscriptions/{subscription.id}"))["data"]
    assert not shown["date_next"]
    hold.bank_heard_nothing()
