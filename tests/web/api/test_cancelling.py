from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from tests.web.api.conftest import subscribe

from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop

Told = Callable[[], Awaitable[list[str]]]
Charges = Callable[[], list[Standing]]


async def cancel(server: Any, subscription: Any) -> dict[str, Any]:
    answered = await server.call("POST", f"/api/subscription/{subscription.id}/cancel")
    assert answered.status_code == 200, answered.text
    body: dict[str, Any] = answered.json()
    assert body["success"] is True
    return body


async def test_cancelling_takes_effect_at_once(server: Any, customers: Any, told: Told) -> None:
    subscription = await subscribe(customers, "club-1")
    shown = (await cancel(server, subscription))["data"]
    assert (shown["id"], shown["status"], shown["date_next"]) == (subscription.id, "Cancelled", 0)
    assert shown["date_cancelled"] >= shown["created_at"]
    assert (shown["date_stopped"], shown["date_expired"]) == (0, 0)
    assert await told() == ["payment", "subscription_cancelled"]


async def test_cancelling_again_answers_the_same_and_tells_nobody(server: Any, customers: Any, told: Told) -> None:
    subscription = await subscribe(customers)
    first = await cancel(server, subscription)
    assert await cancel(server, subscription) == first
    assert await told() == ["payment", "subscription_cancelled"]


async def test_many_who_cancel_at_once_tell_the_merchant_once(server: Any, customers: Any, told: Told) -> None:
    subscription = await subscribe(customers)
    answers = await asyncio.gather(*(cancel(server, subscription) for _ in range(12)))
    assert answers == [answers[0]] * 12
    assert await told() == ["payment", "subscription_cancelled"]


async def test_a_cancelled_subscription_is_never_charged_again(server: Any, customers: Any, charges: Charges) -> None:
    subscription = await subscribe(customers)
    await cancel(server, subscription)
    for months in (1, 2, 24):
        assert await customers.charge(subscription.date_next + timedelta(days=31 * months)) == 0
    assert len(charges()) == 1


async def test_only_the_named_one_ends(server: Any, customers: Any) -> None:
    kept, ended = await subscribe(customers, "club-1"), await subscribe(customers, "club-2")
    await cancel(server, ended)
    assert (await server.get(f"/api/v1/subscriptions/{kept.id}"))["data"]["status"] == "Active"


async def test_one_that_has_stopped_by_itself_stays_as_it_is(server: Any, customers: Any, told: Told) -> None:
    subscription = await subscribe(customers, number="4000000000000341")
    at = subscription.date_next
    for _ in range(4):
        assert await customers.charge(at) == 1
        at += timedelta(hours=6)
    assert (await cancel(server, subscription))["data"]["date_stopped"] > 0
    assert await told() == ["payment", "subscription_stopped"]


async def test_a_charge_in_flight_stands_and_nothing_is_charged_later(
    server: Any, customers: Any, told: Told, charges: Charges, desk: Any, monkeypatch: Any
) -> None:
    subscription = await subscribe(customers, "club-1")
    acquirer = desk.acquirer_for(live=False)
    charge = type(acquirer).charge_stored
    reached, answer = asyncio.Event(), asyncio.Event()

    async def slowly(self: Any, purchase: Purchase) -> Any:
        outcome = await charge(self, purchase)
        reached.set()
        await answer.wait()
        return outcome

    monkeypatch.setattr(type(acquirer), "charge_stored", slowly)
    billing = asyncio.create_task(customers.charge(subscription.date_next))
    await reached.wait()
    shown = (await cancel(server, subscription))["data"]
    assert (shown["status"], shown["paid_number_counter"]) == ("Cancelled", 1)
    answer.set()
    await billing
    after = (await server.get(f"/api/v1/subscriptions/{subscription.id}"))["data"]
    assert (after["status"], after["date_next"], after["paid_number_counter"]) == ("Cancelled", 0, 2)
    assert after["date_cancelled"] == shown["date_cancelled"]
    assert await told() == ["payment", "subscription_cancelled", "payment"]
    assert await customers.charge(subscription.date_next + timedelta(days=400)) == 0
    assert len(charges()) == 2
    (renewal, _) = (await server.get("/api/v1/payments"))["data"]
    assert renewal["payment_order"]["status"] == "successful"
    assert renewal["payment_order"]["merchant_order_id"] == "club-1:2"


async def test_a_declined_charge_in_flight_is_not_tried_again(
    server: Any, customers: Any, told: Told, charges: Charges, desk: Any, monkeypatch: Any
) -> None:
    subscription = await subscribe(customers, number="4000000000000341")
    acquirer = desk.acquirer_for(live=False)
    charge = type(acquirer).charge_stored

    async def cancelled_meanwhile(self: Any, purchase: Purchase) -> Any:
        await cancel(server, subscription)
        return await charge(self, purchase)

    monkeypatch.setattr(type(acquirer), "charge_stored", cancelled_meanwhile)
    assert await customers.charge(subscription.date_next) == 1
    for hours in (6, 12, 18, 24 * 90):
        assert await customers.charge(subscription.date_next + timedelta(hours=hours)) == 0
    assert await told() == ["payment", "subscription_cancelled"]
    assert len(charges()) == 1


async def test_cancelling_and_charging_at_once_lose_nothing(
    server: Any, customers: Any, told: Told, charges: Charges, database: Database, shop: Shop
) -> None:
    subscriptions = [await subscribe(customers) for _ in range(10)]
    late = max(subscription.date_next for subscription in subscriptions)
    await asyncio.gather(customers.charge(late), *(cancel(server, one) for one in subscriptions))
    await customers.charge(late)
    events = await told()
    assert events.count("subscription_cancelled") == 10
    assert events.count("payment") == len(charges())
    paid = await database.fetchval(
        "select sum(paid_number_counter) from subscription where merchant_id = $1", shop.merchant_id
    )
    assert paid == len(charges())
    assert await customers.charge(late + timedelta(days=400)) == 0
