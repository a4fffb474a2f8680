"""The whole life of a subscription, from its beginning to each of its ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.breaking import say
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.ending import cancel, expire_due
from paydesk.domain.subscriptions.subscription_terms import Trial


async def test_a_year_of_renewals(subscriber: Till, charges: Callable[[], list[Standing]]) -> None:
    subscription = await subscriber.subscribe(MONTHLY)
    assert subscription.state == "Active"
    for _ in range(2, 13):
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


async def test_a_trial_ends_with_the_first_regular_charge(subscriber: Till) -> None:
    terms = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))
    subscription = await subscriber.subscribe(terms)
    assert subscription.state == "Trial"
    assert subscription.date_next is not None
    assert await subscriber.charge(subscription.date_next) == 1
    after = await subscriber.now(subscription)
    assert (after.state, after.counter, after.paid_number_counter) == ("Active", 1, 2)
    told = await subscriber.told()
    assert [one["payment_order"]["paid_amount"] for one in told] == [0, 10]
    assert [one["payment_order"]["merchant_order_id"] for one in told] == ["club-1", "club-1:2"]


@pytest.mark.parametrize("zone", ["localtime", "Mars/Olympus"])
async def test_it_lives_where_nobody_knows_a_time_zone_of_that_name(subscriber: Till, zone: str) -> None:
    """Not the database, or this machine neither: code of before took it, and a merchant may come
    from another cell with it.
    """
    merchant_id = subscriber.shop.merchant_id
    await say(subscriber.database, "merchant", {"id": merchant_id}, time_zone=zone)
    subscription = await subscriber.subscribe(replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day"))))
    assert await subscriber.charge(subscription.date_next) == 1
    assert (await subscriber.now(subscription)).state == "Active"
    await cancel(subscriber.database, subscriber.shop, subscription.id, by="merchant", now=utc_now())
    moved = await subscriber.database.fetch("select kind from mrr_movement where merchant_id = $1", merchant_id)
    assert [row["kind"] for row in moved] == ["trial", "converted", "churn"]
    assert await subscriber.rows("alarm") == []


async def test_three_failed_retries_stop_it(subscriber: Till) -> None:
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


async def test_a_limit_ends_it(subscriber: Till, desk: Desk, shop: Shop) -> None:
    subscription = await subscriber.subscribe(replace(MONTHLY, limit=2))
    assert subscription.date_next is not None
    await subscriber.charge(subscription.date_next)
    last = await subscriber.now(subscription)
    assert last.date_next is None
    assert last.date_end is not None
    ended = await expire_due(desk.database, real_now=utc_now(), merchant_id=shop.merchant_id, at=last.date_end)
    assert ended == 1
    assert (await subscriber.now(subscription)).state == "Expired"


async def test_cancelling_twice_tells_the_merchant_once(subscriber: Till, desk: Desk, shop: Shop) -> None:
    subscription = await subscriber.subscribe(MONTHLY)
    for _ in range(2):
        assert (await cancel(desk.database, shop, subscription.id, by="api", now=utc_now())).state == "Cancelled"
    assert subscription.date_next is not None
    assert await subscriber.charge(subscription.date_next) == 0
    assert [one["event"] for one in await subscriber.told()] == ["payment", "subscription_cancelled"]
