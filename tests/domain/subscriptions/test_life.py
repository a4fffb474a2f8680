from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from paydesk.adapters.acquirers.interface import CardDetails
from paydesk.adapters.acquirers.simulator.standing import Standing
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.payments.checkouts import find_checkout, open_checkout
from paydesk.domain.payments.paying import Desk, Paid, Payer, pay
from paydesk.domain.payments.requests import CheckoutRequest
from paydesk.domain.subscriptions.charging import BillingRun
from paydesk.domain.subscriptions.ending import cancel, expire_due, find_subscription
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.terms import Terms, Trial

MONTHLY = Terms("Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), None, 0)


class Subscriber:
    """A customer with a subscription, and the run that charges them at any time we like."""

    def __init__(self, desk: Desk, shop: Shop) -> None:
        self.desk, self.shop, self.run = desk, shop, BillingRun(desk)

    async def subscribe(self, terms: Terms, number: str = "4242424242424242", order: str = "club-1") -> Subscription:
        database = self.desk.database
        key_id = await database.fetchval("select id from merchant_key where merchant_id = $1", self.shop.merchant_id)
        request = CheckoutRequest(
            order, terms.price, terms.currency, "Coffee club", "https://shop.example/thanks", None, "v1", "", "", "",
            "", False, terms,
        )  # fmt: skip
        token = await open_checkout(database, self.shop, request, form={"order": order}, key_id=key_id, now=utc_now())
        checkout = await find_checkout(database, token, now=utc_now())
        payer = Payer(CardDetails(number, 12, 2040, "Ada Lovelace", "123"), "ada@example.com", "GB", "192.0.2.1", "ok")
        assert await pay(self.desk, checkout, payer, return_url="", now=utc_now()) == Paid()
        found = await database.fetchval("select id from subscription where merchant_id = $1", self.shop.merchant_id)
        return await find_subscription(database, self.shop, found)

    async def charge(self, at: datetime) -> int:
        return await self.run.charge_due(merchant_id=self.shop.merchant_id, at=at)

    async def now(self, subscription: Subscription) -> Subscription:
        return await find_subscription(self.desk.database, self.shop, subscription.id)

    async def told(self) -> list[dict[str, Any]]:
        rows = await self.desk.database.fetch(
            "select payload from pingback where merchant_id = $1 order by id", self.shop.merchant_id
        )
        return [json.loads(row["payload"]) for row in rows]


@pytest.fixture
def subscriber(desk: Desk, shop: Shop) -> Subscriber:
    return Subscriber(desk, shop)


async def test_a_year_of_renewals(subscriber: Subscriber, charges: Callable[[], list[Standing]]) -> None:
    subscription = await subscriber.subscribe(MONTHLY)
    assert subscription.state == "Active"
    for month in range(2, 13):
        due = (await subscriber.now(subscription)).date_next
        assert due is not None
        assert await subscriber.charge(due - timedelta(seconds=1)) == 0
        assert await subscriber.charge(due) == 1
        assert await subscriber.charge(due) == 0
    after = await subscriber.now(subscription)
    assert (after.counter, after.paid_number_counter, after.next_period) == (12, 12, 13)
    told = await subscriber.told()
    assert [one["payment_order"]["merchant_order_id"] for one in told] == [
        "club-1",
        *(f"club-1:{n}" for n in range(2, 13)),
    ]
    assert len(charges()) == 12
    assert told[0]["subscription"]["init_merchant_order_id"] == "club-1"
    assert told[5]["subscription"]["paid_number_counter"] == 6
    print(json.dumps(told[5], indent=1))


async def test_a_trial_ends_with_the_first_regular_charge(subscriber: Subscriber) -> None:
    terms = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))
    subscription = await subscriber.subscribe(terms)
    assert subscription.state == "Trial"
    assert subscription.date_next is not None
    assert await subscriber.charge(subscription.date_next) == 1
    after = await subscriber.now(subscription)
    assert (after.state, after.counter, after.paid_number_counter) == ("Active", 1, 2)
    told = await subscriber.told()
    assert [one["payment_order"]["paid_amount"] for one in told] == [0, 10]


async def test_three_failed_retries_stop_it(subscriber: Subscriber) -> None:
    subscription = await subscriber.subscribe(MONTHLY, "4000000000000341")
    at = subscription.date_next
    assert at is not None
    for failures in (1, 2, 3):
        assert await subscriber.charge(at) == 1
        current = await subscriber.now(subscription)
        assert (current.failures, current.state, current.date_next) == (failures, "Active", at + timedelta(hours=6))
        at = current.date_next
        assert at is not None
    assert await subscriber.charge(at) == 1
    stopped = await subscriber.now(subscription)
    assert (stopped.state, stopped.date_stopped, stopped.date_cancelled, stopped.date_next) == (
        "Cancelled",
        at,
        at,
        None,
    )
    assert [one["event"] for one in await subscriber.told()] == ["payment", "subscription_stopped"]


async def test_a_limit_ends_it(subscriber: Subscriber, desk: Desk, shop: Shop) -> None:
    subscription = await subscriber.subscribe(replace(MONTHLY, limit=2))
    assert subscription.date_next is not None
    await subscriber.charge(subscription.date_next)
    last = await subscriber.now(subscription)
    assert last.date_next is None
    assert last.date_end is not None
    ended = await expire_due(desk.database, real_now=utc_now(), merchant_id=shop.merchant_id, at=last.date_end)
    assert ended == 1
    assert (await subscriber.now(subscription)).state == "Expired"


async def test_cancelling_twice_tells_the_merchant_once(subscriber: Subscriber, desk: Desk, shop: Shop) -> None:
    subscription = await subscriber.subscribe(MONTHLY)
    for _ in range(2):
        assert (await cancel(desk.database, shop, subscription.id, by="api", now=utc_now())).state == "Cancelled"
    assert subscription.date_next is not None
    assert await subscriber.charge(subscription.date_next) == 0
    assert [one["event"] for one in await subscriber.told()] == ["payment", "subscription_cancelled"]
