from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.breaking import say
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.errors import Busy, Conflict, Malformed, NotFound
from paydesk.core.periods import Period
from paydesk.domain.subscriptions.changing import (
    Changed,
    cancel_later,
    cancel_now,
    carry_out_due,
    pause,
    resume,
    undo,
)
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_object import subscription_object
from paydesk.domain.subscriptions.subscription_terms import Trial

Charges = Callable[[], list[Standing]]
DAY = timedelta(days=1)
PRO = Plan(sku_id="pro", name="Pro", price="30.00")
TRIAL = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))


def due(subscription: Subscription) -> datetime:
    assert subscription.date_next is not None
    return subscription.date_next


async def to(till: Till, begun: Subscription, plan: Plan = PRO, at: datetime | None = None, **how: Any) -> Changed:
    now = at or begun.date_start + 3 * DAY
    return await change_plan(till.database, till.shop, begun.id, plan, by="api", now=now, **how)


async def carried_out(till: Till, at: datetime) -> int:
    return await carry_out_due(till.database, real_now=utc_now(), merchant_id=till.shop.merchant_id, at=at)


async def renewed(till: Till, subscription: Subscription) -> Subscription:
    """What workers do when its next period begins."""
    at = due(subscription)
    await carried_out(till, at)
    assert await till.charge(at) > 0
    return await till.now(subscription)


def amounts(charges: Charges) -> list[Decimal]:
    return [charge.amount for charge in charges()]


async def test_it_is_charged_by_its_plan_until_the_period_is_over_then_by_the_other(
    subscriber: Till, charges: Charges
) -> None:
    begun = await subscriber.subscribe()
    end = due(begun)
    wanted = await to(subscriber, begun)
    waiting = await subscriber.now(begun)
    assert waiting == wanted.subscription
    told = subscription_object(waiting)
    assert (told["status"], told["price"], told["date_next"], told["cancel_delay"]) == (
        "Active", "10.00", int(end.timestamp()), 0,
    )  # fmt: skip
    coming = told["change_request"]
    assert (coming["type"], coming["at"], coming["price"]) == ("change", int(end.timestamp()), "30.00")
    assert (coming["package"]["sku_id"], coming["package"]["name"]) == ("pro", "Pro")
    assert await subscriber.problems() == []
    assert await carried_out(subscriber, end - timedelta(seconds=1)) == 0
    assert await subscriber.charge(end) == 0
    assert amounts(charges) == [Decimal(10)]
    assert await carried_out(subscriber, end + DAY) == 1
    assert await carried_out(subscriber, end + DAY) == 0
    assert await subscriber.problems() == []
    assert await subscriber.charge(end + DAY) == 1
    after = await subscriber.now(begun)
    assert amounts(charges) == [Decimal(10), Decimal(30)]
    assert (after.package.terms.sku_id, after.counter, after.change, after.anchor) == ("pro", 2, None, begun.anchor)
    body = (await subscriber.told())[-1]["subscription"]
    assert (body["price"], body["package"]["sku_id"], body["change_request"]) == ("30.00", "pro", None)
    assert body["package_version_id"] == coming["package_version_id"]
    assert await subscriber.events() == ["payment", "payment"]
    assert await subscriber.problems() == []


async def test_undone_it_is_charged_as_before(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe()
    await to(subscriber, begun)
    kept = await undo(subscriber.database, subscriber.shop, begun.id, now=due(begun) - timedelta(seconds=1))
    assert kept.moved
    assert msgspec.structs.replace(await subscriber.now(begun), revision=begun.revision) == begun
    assert (await renewed(subscriber, begun)).counter == 2
    assert amounts(charges) == [Decimal(10), Decimal(10)]
    assert await subscriber.problems() == []


async def test_at_its_end_it_is_too_late_to_take_it_back(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    await to(subscriber, begun)
    named = (subscriber.database, subscriber.shop, begun.id)
    with pytest.raises(Conflict, match="come to its next period"):
        await undo(*named, now=due(begun))
    with pytest.raises(Conflict, match="come to its next period"):
        await pause(*named, by="api", now=due(begun))
    with pytest.raises(Conflict, match="not paid yet"):
        await to(subscriber, begun, replace(PRO, price="31.00"), due(begun))


async def test_a_preview_says_all_and_leaves_nothing_behind(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    seen = await to(subscriber, begun, preview=True)
    assert seen.subscription.as_charged_next.package.terms.price == Decimal(30)
    assert await subscriber.now(begun) == begun
    assert await subscriber.rows("subscription_change") == []
    assert len(await subscriber.rows("package_version")) == 1


async def test_asked_twice_nothing_changes_and_another_one_takes_its_place(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    first = await to(subscriber, begun)
    again = await to(subscriber, begun)
    assert (again.moved, again.replaced, again.subscription) == (False, None, first.subscription)
    dearer = await to(subscriber, begun, replace(PRO, price="40.00"))
    assert dearer.replaced == first.subscription.change
    with pytest.raises(Conflict, match="is on that plan"):
        await to(subscriber, begun, Plan(price="10.00"))
    assert (await renewed(subscriber, begun)).package.terms.price == Decimal(40)
    assert not (await to(subscriber, await subscriber.now(begun), Plan(price="40.00"))).moved
    assert await subscriber.problems() == []


async def test_an_end_and_a_pause_take_its_place_and_it_theirs(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe()
    named = (subscriber.database, subscriber.shop, begun.id)
    at = begun.date_start + DAY
    wanted = await to(subscriber, begun, at=at)
    ending = await cancel_later(*named, by="api", now=at)
    assert ending.replaced == wanted.subscription.change
    assert (await to(subscriber, begun, at=at)).replaced == ending.subscription.change
    assert (await pause(*named, by="api", now=at)).replaced == wanted.subscription.change
    with pytest.raises(Conflict, match="paused"):
        await to(subscriber, begun, at=at)
    await resume(*named, now=at)
    await to(subscriber, begun, at=at)
    await cancel_now(*named, by="api", now=at)
    assert await carried_out(subscriber, due(begun)) == 0
    assert await subscriber.charge(due(begun)) == 0
    states = [row["state"] for row in await subscriber.rows("subscription_change")]
    assert states == ["replaced", "replaced", "replaced", "done", "overtaken"]
    assert await subscriber.problems() == []


class TestWhatBecomesOfTheRest:
    """Each row of the table in the docs."""

    async def test_a_trial_runs_to_its_end_and_the_plan_is_charged_then(
        self, subscriber: Till, charges: Charges
    ) -> None:
        begun = await subscriber.subscribe(TRIAL)
        await to(subscriber, begun)
        trial = await subscriber.now(begun)
        assert (trial.state, due(trial)) == ("Trial", begun.anchor)
        paid = await renewed(subscriber, begun)
        assert (paid.state, paid.counter, paid.package.terms.price) == ("Active", 1, Decimal(30))
        assert due(paid) == due(msgspec.structs.replace(begun, date_next=begun.schedule.due(2)))
        told = subscription_object(paid)
        assert (told["trial"], told["trial_period_length"], told["trial_period_type"]) == (1, 14, "day")
        assert await subscriber.problems() == []

    async def test_the_trial_of_the_other_package_is_not_given_again(self, subscriber: Till, charges: Charges) -> None:
        tried = await subscriber.subscribe(replace(TRIAL, sku_id="pro", name="Pro", price=Decimal(30)), order="club-2")
        begun = await subscriber.subscribe()
        await to(subscriber, begun, Plan(tried.package.version_id))
        paid = await renewed(subscriber, begun)
        assert (paid.package.id, paid.package.terms.trial, paid.counter) == (tried.package.id, None, 2)
        assert paid.package.version_id != tried.package.version_id
        assert Decimal(30) in amounts(charges)
        assert await subscriber.problems() == []

    async def test_its_payments_count_on_and_the_limit_is_of_all_of_them(self, subscriber: Till) -> None:
        three = await subscriber.subscribe(replace(MONTHLY, sku_id="three", limit=3), order="club-2")
        one = await subscriber.subscribe(replace(MONTHLY, sku_id="one", limit=1), order="club-3")
        begun = await subscriber.subscribe()
        with pytest.raises(Conflict, match="has had 1 payment, and that plan has 1 in all"):
            await to(subscriber, begun, Plan(one.package.version_id))
        with pytest.raises(Conflict, match="no period is left"):
            await to(subscriber, one)
        await to(subscriber, begun, Plan(three.package.version_id))
        await carried_out(subscriber, due(begun))
        await subscriber.charge(due(begun))
        second = await subscriber.now(begun)
        assert second.counter == 2
        await subscriber.charge(due(second))
        last = await subscriber.now(begun)
        assert (last.counter, last.date_next) == (3, None)
        assert last.date_end is not None
        assert await subscriber.problems() == []

    async def test_packages_count_who_is_on_them(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        await to(subscriber, begun)
        paid = await renewed(subscriber, begun)
        rows = await subscriber.rows("package_version")
        counts = {row["id"]: row["subscriptions_count"] for row in rows}
        assert counts == {begun.package.version_id: 0, paid.package.version_id: 1}
        assert paid.package.subscriptions_count == 1
        await to(subscriber, paid, Plan(begun.package.version_id), due(paid) - DAY)
        back = await renewed(subscriber, paid)
        assert (back.package.version_id, back.package.subscriptions_count) == (begun.package.version_id, 1)
        assert await subscriber.problems() == []

    async def test_a_currency_stays(self, subscriber: Till) -> None:
        euros = await subscriber.subscribe(replace(MONTHLY, sku_id="eu", currency="EUR"), order="club-2")
        begun = await subscriber.subscribe()
        with pytest.raises(Malformed, match="keeps its currency"):
            await to(subscriber, begun, Plan(euros.package.version_id))


async def test_a_declined_first_charge_of_the_plan_is_tried_again_at_its_price(subscriber: Till) -> None:
    begun = await subscriber.subscribe(number="4000000000000341")
    await to(subscriber, begun)
    failing = await renewed(subscriber, begun)
    assert (failing.failures, failing.package.terms.price) == (1, Decimal(30))
    with pytest.raises(Conflict, match="not paid yet"):
        await to(subscriber, begun, Plan(price="20.00"), due(failing) - timedelta(minutes=1))
    assert await subscriber.charge(due(failing)) == 1
    assert [row["amount"] for row in await subscriber.attempts()] == [Decimal(10), Decimal(30), Decimal(30)]
    assert await subscriber.problems() == []


async def test_while_it_is_charged_nothing_changes(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    await say(subscriber.database, "subscription", {"id": begun.id}, charging_attempt_id=1)
    with pytest.raises(Busy):
        await to(subscriber, begun)


async def test_what_is_not_there_is_said(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    with pytest.raises(Malformed, match="no package_version_id 99"):
        await to(subscriber, begun, Plan(99))
    with pytest.raises(Malformed, match="give its name and price"):
        await to(subscriber, begun, Plan(sku_id="pro"))
    with pytest.raises(Malformed, match="greater than 0"):
        await to(subscriber, begun, Plan(price="0"))
    with pytest.raises(Malformed, match="is not a period"):
        await to(subscriber, begun, Plan(period="monthly"))
    with pytest.raises(NotFound):
        await change_plan(subscriber.database, subscriber.shop, 99, PRO, by="api", now=utc_now())


async def test_code_that_knows_no_plans_leaves_it_alone(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    await to(subscriber, begun)
    seen = await subscriber.database.fetchrow(
        "select change_type, date_next from subscription_standing where id = $1", begun.id
    )
    assert seen is not None
    assert tuple(seen) == (None, None)
    await say(subscriber.database, "subscription", {"id": begun.id}, date_next=due(begun))
    assert await subscriber.charge(due(begun)) == 0


def examples() -> list[list[str]]:
    """The rows of the guide's table, cell by cell."""
    text = (Path(__file__).parents[3] / "docs" / "integrate.md").read_text()
    table = text.split("| begun | periods | changed to | is charged for these |\n|---|---|---|---|\n")[1]
    rows = table.split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize(("begins", "before", "after", "charged"), examples())
async def test_the_calendar_goes_on_from_the_end_of_the_period(
    subscriber: Till, begins: str, before: str, after: str, charged: str
) -> None:
    lengths = {"1m": Period(1, "month"), "1y": Period(1, "year"), "1w": Period(1, "week")}
    begun = await subscriber.subscribe(replace(MONTHLY, period=lengths[before]))
    moment = datetime.fromisoformat(begins).replace(hour=12, tzinfo=UTC)
    first = msgspec.structs.replace(begun, anchor=moment, time_zone="UTC")
    await say(
        subscriber.database,
        "subscription",
        {"id": begun.id},
        anchor=moment,
        time_zone="UTC",
        date_next=first.schedule.due(2),
        date_start=moment,
        date_paid=moment,
    )
    begun = await subscriber.now(begun)
    await to(subscriber, begun, Plan(price="30.00", period=after), moment + DAY)
    days = []
    for _ in charged.split(", "):
        days.append(f"{due(await subscriber.now(begun)):%Y-%m-%d}")
        await renewed(subscriber, await subscriber.now(begun))
    assert ", ".join(days) == charged
