"""A plan changes at once without a charge: what is paid stays paid, and the next period is the
first one at the new price, on its old day.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from tests.breaking import say
from tests.domain.subscriptions.test_changing_plans import (
    DAY,
    PRO,
    TRIAL,
    Charges,
    amounts,
    carried_out,
    due,
    renewed,
    to,
)
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.core.errors import Busy, Conflict
from paydesk.core.periods import Period
from paydesk.domain.subscriptions.changing import Changed, cancel_later, cancel_now, pause, undo
from paydesk.domain.subscriptions.changing_plans import Plan
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_object import subscription_object


async def at_once(till: Till, begun: Subscription, plan: Plan = PRO, **how: object) -> Changed:
    return await to(till, begun, plan, at_once=True, **how)  # type: ignore[arg-type]


async def test_it_is_of_the_plan_now_and_the_old_day_is_the_first_at_its_price(
    subscriber: Till, charges: Charges
) -> None:
    begun = await subscriber.subscribe()
    changed = await at_once(subscriber, begun)
    now = await subscriber.now(begun)
    assert now == changed.subscription
    assert (now.date_next, now.anchor, now.counter, now.change) == (begun.date_next, begun.anchor, 1, None)
    told = subscription_object(now)
    assert (told["price"], told["package"]["sku_id"], told["change_request"]) == ("30.00", "pro", None)
    assert await subscriber.charge(due(begun) - timedelta(seconds=1)) == 0
    assert amounts(charges) == [Decimal(10)]
    assert await subscriber.problems() == []
    after = await renewed(subscriber, now)
    assert amounts(charges) == [Decimal(10), Decimal(30)]
    assert due(after) == msgspec.structs.replace(begun, next_period=3).schedule.due(3)
    assert await subscriber.events() == ["payment", "payment"]
    assert (await subscriber.told())[-1]["subscription"]["price"] == "30.00"
    assert await subscriber.problems() == []


async def test_packages_count_who_is_on_them_at_once(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    changed = (await at_once(subscriber, begun)).subscription
    counts = {row["id"]: row["subscriptions_count"] for row in await subscriber.rows("package_version")}
    assert counts == {begun.package.version_id: 0, changed.package.version_id: 1}
    assert changed.package.subscriptions_count == 1
    assert await subscriber.problems() == []


async def test_a_preview_of_now_leaves_nothing_behind(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    seen = (await at_once(subscriber, begun, preview=True)).subscription
    assert (seen.package.terms.price, seen.date_next, seen.change) == (Decimal(30), begun.date_next, None)
    assert await subscriber.now(begun) == begun
    assert await subscriber.rows("subscription_change") == []
    assert len(await subscriber.rows("package_version")) == 1


async def test_pressed_twice_it_changes_once_and_can_change_again_in_the_same_period(
    subscriber: Till, charges: Charges
) -> None:
    begun = await subscriber.subscribe()
    both = await asyncio.gather(*(at_once(subscriber, begun) for _ in range(4)), return_exceptions=True)
    assert [one.moved for one in both if isinstance(one, Changed)].count(True) == 1
    assert all(isinstance(one, Changed | Conflict) for one in both)
    assert not (await at_once(subscriber, begun)).moved
    await at_once(subscriber, begun, Plan(price="40.00"))
    await at_once(subscriber, begun, Plan(begun.package.version_id))
    assert [row["state"] for row in await subscriber.rows("subscription_change")] == ["done"] * 3
    assert not (await undo(subscriber.database, subscriber.shop, begun.id, now=begun.date_start + DAY)).moved
    await renewed(subscriber, await subscriber.now(begun))
    assert amounts(charges) == [Decimal(10), Decimal(10)]
    assert await subscriber.problems() == []


async def test_it_takes_the_place_of_an_end_and_of_a_plan_that_was_to_come(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe()
    ending = await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start + DAY)
    changed = await at_once(subscriber, begun)
    assert changed.replaced == ending.subscription.change
    assert await subscriber.now(begun) == changed.subscription
    coming = await to(subscriber, begun, Plan(price="50.00"))
    with pytest.raises(Conflict, match="is on that plan: undo"):
        await at_once(subscriber, begun, Plan(price="30.00"))
    assert (await at_once(subscriber, begun, Plan(price="50.00"))).replaced == coming.subscription.change
    later = await to(subscriber, begun, Plan(price="60.00"))
    assert later.subscription.package.terms.price == Decimal(50)
    assert await carried_out(subscriber, due(begun) - timedelta(seconds=1)) == 0
    await renewed(subscriber, await subscriber.now(begun))
    assert amounts(charges) == [Decimal(10), Decimal(60)]
    states = [row["state"] for row in await subscriber.rows("subscription_change")]
    assert states == ["replaced", "done", "replaced", "done", "done"]
    assert await subscriber.problems() == []


class TestWhatItIsWhenItIsRefused:
    """Each row of the table in the docs that is a 409."""

    async def test_in_its_trial(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe(TRIAL)
        with pytest.raises(Conflict, match="is in its trial"):
            await at_once(subscriber, begun)
        paid = await renewed(subscriber, begun)
        await to(subscriber, paid, PRO, due(begun) + DAY, at_once=True)
        assert (await subscriber.now(begun)).package.terms.trial == TRIAL.trial
        assert await subscriber.problems() == []

    async def test_periods_of_another_length(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        with pytest.raises(Conflict, match="of another length"):
            await at_once(subscriber, begun, replace(PRO, period="1y"))
        assert await subscriber.now(begun) == begun

    async def test_at_the_bank(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        await say(subscriber.database, "subscription", {"id": begun.id}, charging_attempt_id=1)
        with pytest.raises(Busy, match="being charged"):
            await at_once(subscriber, begun)

    async def test_due_or_failing(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe(number="4000000000000341")
        with pytest.raises(Conflict, match="not paid yet"):
            await to(subscriber, begun, PRO, due(begun), at_once=True)
        failing = await renewed(subscriber, begun)
        assert failing.failures == 1
        for at in (due(failing), due(begun) - timedelta(seconds=1)):  # a machine whose clock is behind
            with pytest.raises(Conflict, match="not paid yet"):
                await to(subscriber, begun, PRO, at, at_once=True)
        await say(subscriber.database, "subscription", {"id": begun.id}, failures=0)
        with pytest.raises(Busy):
            await to(subscriber, begun, PRO, due(begun) - timedelta(seconds=1), at_once=True)
        await say(subscriber.database, "subscription", {"id": begun.id}, failures=1)
        assert await subscriber.problems() == []

    async def test_paused_running_out_and_ended(self, subscriber: Till) -> None:
        one = await subscriber.subscribe(replace(MONTHLY, sku_id="one", limit=1), order="club-2")
        with pytest.raises(Conflict, match="no period is left"):
            await at_once(subscriber, one)
        begun = await subscriber.subscribe()
        with pytest.raises(Conflict, match="has had 1 payment, and that plan has 1 in all"):
            await at_once(subscriber, begun, Plan(one.package.version_id))
        named = (subscriber.database, subscriber.shop, begun.id)
        await pause(*named, by="api", now=begun.date_start + DAY)
        with pytest.raises(Conflict, match="is paused"):
            await at_once(subscriber, begun)
        await cancel_now(*named, by="api", now=begun.date_start + DAY)
        with pytest.raises(Conflict, match="has ended"):
            await at_once(subscriber, begun)
        assert await subscriber.problems() == []


async def test_a_lower_limit_holds_at_once(subscriber: Till) -> None:
    two = await subscriber.subscribe(replace(MONTHLY, sku_id="two", limit=2), order="club-2")
    begun = await subscriber.subscribe()
    await at_once(subscriber, begun, Plan(two.package.version_id))
    await subscriber.charge(due(begun))
    last = await subscriber.now(begun)
    assert (last.counter, last.date_next) == (2, None)
    assert last.date_end is not None
    assert await subscriber.problems() == []


async def test_a_charge_that_a_machine_died_over_is_by_the_old_plan(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe(replace(MONTHLY, period=Period(1, "week")))
    await subscriber.die_after_claim(due(begun))
    with pytest.raises(Conflict):
        await at_once(subscriber, begun)
    await subscriber.settle_all(minutes=10)
    assert amounts(charges)[-1] == Decimal(10)
    assert await subscriber.problems() == []
