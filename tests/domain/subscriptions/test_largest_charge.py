"""No change has the next charge become larger than a payment may be: that could not be given back
in part.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_DOWN, Decimal

import pytest
from tests import breaking
from tests.domain.subscriptions.test_changing_plans import DAY, PRO, Charges, amounts, renewed, to
from tests.domain.subscriptions.test_items import added
from tests.domain.subscriptions.test_prorating import THIRTY_DAYS, balance, prorated
from tests.till import Till

from paydesk.core.errors import Conflict
from paydesk.core.money import LARGEST
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.subscriptions.changing import undo
from paydesk.domain.subscriptions.changing_plans import Plan
from paydesk.domain.subscriptions.items import WantedItem

MOST = LARGEST.quantize(Decimal("0.01"), ROUND_DOWN)
DEAR = Plan(price=str(MOST))
ALL_BUT_TEN = WantedItem(MOST - 10, "Everything")
too_large = pytest.raises(Conflict, match="no payment is larger")


async def test_a_plan_that_is_prorated_into_the_next_charge(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    for how in ({"preview": True}, {}):
        with too_large:
            await prorated(subscriber, begun, DEAR, begun.date_start + 10 * DAY, **how)
    assert await subscriber.now(begun) == begun
    assert await balance(subscriber, begun) == 0
    await to(subscriber, begun, DEAR, begun.date_start + 10 * DAY, at_once=True)
    await renewed(subscriber, await subscriber.now(begun))
    assert amounts(charges) == [Decimal(10), MOST]
    payment_id = (await subscriber.payments())[-1]["id"]
    for part in (MOST - 10, Decimal(10)):
        await subscriber.give_back(payment_id, str(part))
    assert await subscriber.problems() == []


async def test_a_plan_that_comes_with_the_period_beside_what_waits(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await added(subscriber, begun, ALL_BUT_TEN)
    now = await subscriber.now(begun)
    for at_once in (False, True):
        with too_large:
            await to(subscriber, begun, Plan(price="10.01"), begun.date_start + 2 * DAY, at_once=at_once)
    assert await subscriber.now(begun) == now
    await to(subscriber, begun, Plan(price="9.99"), begun.date_start + 2 * DAY)


async def test_a_dearer_plan_that_would_stay_after_all(subscriber: Till) -> None:
    begun = await subscriber.subscribe(replace(THIRTY_DAYS, price=Decimal("10.01")))
    at = begun.date_start + 2 * DAY
    await to(subscriber, begun, Plan(price="10.00"), at)
    done = await added(subscriber, begun, ALL_BUT_TEN, now=at)
    assert done.next_amount == MOST
    with too_large:
        await undo(subscriber.database, subscriber.shop, begun.id, now=at)
    assert (await subscriber.now(begun)).change is not None


async def test_a_difference_that_is_charged_now_with_what_waits(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await added(subscriber, begun, ALL_BUT_TEN)
    for preview in (True, False):
        wish = AtOnce(begun.id, PRO, "api", begun.date_start + 10 * DAY, preview=preview)
        with too_large:
            await change_and_charge(subscriber.desk, subscriber.shop, wish)
    assert amounts(charges) == [Decimal(10)]
    assert (await subscriber.now(begun)).package == begun.package


async def test_what_was_too_large_before_may_become_smaller(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await breaking.say(subscriber.database, "subscription", {"id": begun.id}, balance=MOST)
    at = begun.date_start + 10 * DAY
    with too_large:
        await to(subscriber, begun, PRO, at, at_once=True)
    await prorated(subscriber, begun, Plan(price="5.00"), at)
    assert (await subscriber.now(begun)).package.terms.price == Decimal(5)
