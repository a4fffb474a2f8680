"""Customers hear once of a charge that is to come, where their merchant announces charges."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.domain.coupons.test_coupons import coupon, subscribed
from tests.domain.mail.test_expiring import MOMENT
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.mail.announcing import announce_charges
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.changing import cancel_later, pause
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.subscription_terms import Trial

DAYS = 7
YEARLY = replace(MONTHLY, period=Period(1, "year"))


@pytest.fixture(autouse=True)
async def _announces(subscriber: Till) -> None:
    await change_merchant(subscriber.database, subscriber.shop.merchant_id, charge_notice_days=DAYS)


async def tell(till: Till, at: datetime, **options: Any) -> list[dict[str, Any]]:
    """Look at a time; the facts of all notices that this shop's customers have had so far."""
    await announce_charges(till.database, real_now=at, **{"keep_test": True, **options})
    rows = await till.database.fetch(
        "select facts from mail where merchant_id = $1 and kind = 'charge_ahead' order by id", till.shop.merchant_id
    )
    return [json.loads(row["facts"]) for row in rows]


async def test_a_year_is_announced_once_and_a_month_never(subscriber: Till) -> None:
    await subscriber.subscribe(order="monthly")
    due = (await subscriber.subscribe(YEARLY)).date_next
    assert due is not None
    first = due - timedelta(days=DAYS)
    assert await tell(subscriber, first - MOMENT) == []
    for at in (first, first + MOMENT, due - MOMENT):
        (facts,) = await tell(subscriber, at)
    assert (facts["amount"], facts["currency"], facts["last4"]) == (float(YEARLY.price), YEARLY.currency, "4242")
    assert datetime.fromisoformat(facts["date_next"]) == due


async def test_nothing_is_announced_where_that_is_off(subscriber: Till, shop: Shop) -> None:
    due = (await subscriber.subscribe(YEARLY)).date_next
    assert due is not None
    await change_merchant(subscriber.database, shop.merchant_id, charge_notice_days=0)
    assert await tell(subscriber, due - MOMENT) == []


@pytest.mark.parametrize("at_once", [False, True])
async def test_another_price_is_announced(subscriber: Till, shop: Shop, at_once: bool) -> None:
    begun, now = await subscriber.subscribe(), utc_now()
    assert begun.date_next is not None
    await change_plan(subscriber.database, shop, begun.id, Plan(price="77.00"), by="api", now=now, at_once=at_once)
    for _ in range(2):
        (facts,) = await tell(subscriber, begun.date_next - timedelta(days=DAYS))
        assert facts["amount"] == 77


async def test_the_end_of_a_trial_is_announced(subscriber: Till) -> None:
    for order, price in (("free", 0), ("paid", 3)):
        trial = Trial(Decimal(price), Period(14, "day"))
        due = (await subscriber.subscribe(replace(MONTHLY, trial=trial), order=order)).date_next
        assert due is not None
        assert len(await tell(subscriber, due - timedelta(days=DAYS) - MOMENT)) == (order == "paid")
        facts = (await tell(subscriber, due - timedelta(days=DAYS)))[-1]
        assert (facts["amount"], datetime.fromisoformat(facts["date_next"])) == (10, due)


async def test_the_first_charge_without_a_coupon_that_ran_out_is_announced(subscriber: Till) -> None:
    await coupon(subscriber, percent="50", periods="2")
    begun = await subscribed(subscriber)
    assert begun.date_next is not None
    assert await tell(subscriber, begun.date_next - MOMENT) == [], "by the same price as the first"
    second = await subscriber.charge_due(begun)
    assert second.date_next is not None
    assert await tell(subscriber, second.date_next - timedelta(days=DAYS) - MOMENT) == []
    (facts,) = await tell(subscriber, second.date_next - timedelta(days=DAYS))
    assert facts["amount"] == 10
    third = await subscriber.charge_due(begun)
    assert third.date_next is not None
    assert len(await tell(subscriber, third.date_next - MOMENT)) == 1, "the price is what it was"


@pytest.mark.parametrize("how", ["to end", "paused for good"])
async def test_who_is_charged_no_more_hears_nothing(subscriber: Till, shop: Shop, how: str) -> None:
    begun, now = await subscriber.subscribe(YEARLY), utc_now()
    assert begun.date_next is not None
    if how == "to end":
        await cancel_later(subscriber.database, shop, begun.id, by="customer", now=now)
    else:
        await pause(subscriber.database, shop, begun.id, until=None, by="customer", now=now)
    assert await tell(subscriber, begun.date_next - MOMENT) == []


async def test_many_workers_at_once_tell_each_customer_once(subscriber: Till) -> None:
    due = [(await subscriber.subscribe(YEARLY, order=f"club {number}")).date_next for number in range(4)]
    assert due[0] is not None
    at = due[0] - timedelta(days=DAYS - 1)
    await asyncio.gather(*(tell(subscriber, at, most=2) for _ in range(3)))
    assert len(await tell(subscriber, at)) == 4
