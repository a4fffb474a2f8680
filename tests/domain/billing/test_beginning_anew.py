"""A trial, or a period of another length, ends at once: another period begins and is charged, once
and exactly; or all stays as it was.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests import breaking
from tests.banks import answering
from tests.domain.billing.test_charging_differences import FAILS_LATER, TEN, charged, orders
from tests.domain.subscriptions.test_changing_plans import DAY, TRIAL, amounts, due, renewed, to
from tests.domain.subscriptions.test_prorating import THIRTY_DAYS, balance
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.core.errors import Busy, Conflict
from paydesk.core.periods import Period, parse_period
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.billing.differences import ChangedAtOnce
from paydesk.domain.subscriptions.changing import cancel_later, pause, resume
from paydesk.domain.subscriptions.changing_plans import Plan
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

YEARLY = Plan(price="100.00", period="1y")
EXAMPLES = (Path(__file__).parents[3] / "docs" / "integrate.md").read_text().split("| becomes | charged now |")[1]


def priced(text: str) -> tuple[Decimal, Period]:
    price, _, period = text.partition(" ")
    return Decimal(price), parse_period(period, "period")


def terms_of(text: str) -> Terms:
    said, _, rest = text.rpartition(", ")
    price, period = priced(rest)
    trial = None
    if said:
        days, _, costs = said.removeprefix("trial of ").partition(" days for ")
        trial = Trial(Decimal(costs), Period(int(days), "day"))
    return replace(MONTHLY, price=price, period=period, trial=trial)


@pytest.mark.parametrize("row", EXAMPLES.split("\n\n")[0].splitlines()[2:])
async def test_the_examples_of_the_docs_are_charged_so(subscriber: Till, charges: Any, row: str) -> None:
    begins, is_now, after, becomes, now, later, left = [cell.strip() for cell in row.strip("|").split("|")]
    price, _, period = becomes.partition(" ")
    begun = await subscriber.subscribe(terms_of(is_now), now=datetime.fromisoformat(begins).replace(tzinfo=UTC))
    at, plan = begun.date_start + int(after.split()[0]) * DAY, Plan(price=price, period=period)
    seen = await charged(subscriber, begun, plan, at, preview=True)
    assert (f"{seen.difference.amount:.2f}", await subscriber.now(begun)) == (now, begun)
    done = await charged(subscriber, begun, plan, at)
    current = await subscriber.now(begun)
    assert (f"{done.difference.amount:.2f}", done.changed.subscription) == (now, current)
    assert current == structs.replace(seen.changed.subscription, package=current.package, revision=current.revision)
    assert (current.state, current.counter) == (SubscriptionState.ACTIVE, begun.counter + 1)
    assert await subscriber.problems() == []
    for said in later.split(", "):
        amount, _, day = said.partition(" on ")
        assert f"{due(current):%Y-%m-%d}" == day
        current = await renewed(subscriber, current)
        assert (await subscriber.payments())[-1]["amount"] == Decimal(amount)
    assert await balance(subscriber, begun) == Decimal(left)
    assert await subscriber.problems() == []


async def test_the_period_is_told_and_counted_once(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await charged(subscriber, begun, YEARLY)
    assert orders(await subscriber.payments()) == [
        ("club-1", "captured", Decimal(10)),
        ("club-1:plan-1", "captured", Decimal("93.33")),
        ("club-1:2", "captured", Decimal(0)),
    ]
    assert amounts(charges) == [Decimal(10), Decimal("93.33")]
    _, difference, period = await subscriber.told()
    assert ("subscription" in difference, difference["payment_order"]["paid_amount"]) == (False, Decimal("93.33"))
    assert period["payment_order"]["paid_amount"] == 0
    told = period["subscription"]
    assert (told["price"], told["counter"], told["period_type"]) == ("100.00", 2, "year")
    assert await subscriber.charge(begun.date_start + TEN) == 0


async def test_without_credit_the_whole_price_is_charged(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await charged(subscriber, begun, YEARLY, credited=False)
    assert amounts(charges) == [Decimal(10), Decimal(100)]
    assert await balance(subscriber, begun) == 0
    assert await subscriber.problems() == []


async def test_without_credit_any_other_change_is_not_prorated(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await charged(subscriber, begun, credited=False)
    now = await subscriber.now(begun)
    assert (now.package.terms.price, now.date_next, amounts(charges)) == (Decimal(30), begun.date_next, [Decimal(10)])
    assert await subscriber.problems() == []


async def test_a_trial_that_is_over_at_once_is_charged_by_its_own_plan(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(TRIAL)
    own = Plan(version_id=begun.package.version_id)
    await charged(subscriber, begun, own, begun.date_start + DAY)
    now = await subscriber.now(begun)
    assert (now.state, now.package, now.counter) == (SubscriptionState.ACTIVE, begun.package, 1)
    assert now.package.terms.trial == TRIAL.trial
    again = await charged(subscriber, begun, own, begun.date_start + 2 * DAY)
    assert not again.changed.moved
    assert amounts(charges) == [Decimal(10)]
    assert await subscriber.problems() == []


async def test_a_paused_trials_share_is_what_was_left_of_it(subscriber: Till, charges: Any) -> None:
    trial = replace(MONTHLY, trial=Trial(Decimal(7), Period(14, "day")))
    begun = await subscriber.subscribe(trial)
    named = (subscriber.database, subscriber.shop, begun.id)
    await pause(*named, by="api", now=begun.date_start + 4 * DAY)
    await resume(*named, now=begun.date_start + 20 * DAY)
    done = await charged(subscriber, begun, Plan(price="30.00"), begun.date_start + 20 * DAY)
    assert done.difference.amount == Decimal(25)
    assert await subscriber.problems() == []


@pytest.mark.parametrize("terms", [THIRTY_DAYS, TRIAL], ids=["a period", "a trial"])
async def test_declined_all_stays_as_it_was(subscriber: Till, charges: Any, terms: Terms) -> None:
    begun = await subscriber.subscribe(terms, FAILS_LATER)
    with pytest.raises(NotCharged, match="keeps its plan"):
        await charged(subscriber, begun, YEARLY)
    assert await subscriber.now(begun) == begun
    assert await balance(subscriber, begun) == 0
    assert await subscriber.problems() == []


def losing(till: Till) -> Till:
    """The same till, whose bank charges and whose answers are lost."""
    bank = till.desk.acquirer_for(live=False)

    async def lost(purchase: Any) -> Any:
        await bank.charge_stored(purchase)
        raise OutcomeUnknown("the answer was lost")

    return till.at(answering(bank, charge_stored=lost))


@pytest.mark.parametrize("terms", [THIRTY_DAYS, TRIAL], ids=["a period", "a trial"])
async def test_a_lost_answer_leaves_it_as_it_was_until_it_is_known(
    subscriber: Till, charges: Any, terms: Terms
) -> None:
    begun = await subscriber.subscribe(terms)
    done = await charged(losing(subscriber), begun, YEARLY, request_key="key-1")
    assert (done.difference.is_open, done.changed.moved) == (True, False)
    now = await subscriber.now(begun)
    assert (now.package, now.state, now.date_next) == (begun.package, begun.state, begun.date_next)
    with pytest.raises(Busy):
        await to(subscriber, begun)
    assert await subscriber.problems() == []
    await subscriber.settle_all(minutes=1)
    waiting = await subscriber.now(begun)
    assert (waiting.package.terms.price, waiting.date_next) == (Decimal(100), begun.date_start + TEN)
    assert await subscriber.problems() == []
    now = await renewed(subscriber, waiting)
    assert (now.state, now.counter) == (SubscriptionState.ACTIVE, begun.counter + 1)
    again = await charged(subscriber, begun, YEARLY, request_key="key-1")
    assert (again.difference.payment_id, again.difference.is_open) == (done.difference.payment_id, False)
    assert amounts(charges)[-1] == Decimal("93.33" if terms is THIRTY_DAYS else 100)
    assert len(amounts(charges)) == 1 + (terms is THIRTY_DAYS)
    assert await subscriber.problems() == []


async def test_cancelled_while_it_is_charged_it_stays_cancelled(subscriber: Till) -> None:
    begun = await subscriber.subscribe(TRIAL)
    await charged(losing(subscriber), begun, YEARLY)
    await cancel(subscriber.database, subscriber.shop, begun.id, by="customer", now=begun.date_start + TEN)
    await subscriber.settle_all(minutes=1)
    now = await subscriber.now(begun)
    assert (now.state, now.date_next) == (SubscriptionState.CANCELLED, None)
    assert await subscriber.charge(begun.date_start + 400 * DAY) == 0
    assert await subscriber.problems() == []


async def test_what_was_given_back_of_it_makes_the_next_credit_smaller(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(TRIAL)
    own = Plan(version_id=begun.package.version_id, price="30.00", period="30d")
    payment_id = (await charged(subscriber, begun, own, begun.date_start)).difference.payment_id
    assert payment_id is not None
    await subscriber.give_back(payment_id, "15.00")
    done = await charged(subscriber, begun, Plan(price="20.00", period="1w"), begun.date_start + TEN)
    assert done.difference.amount == Decimal(10)
    assert await subscriber.problems() == []


async def test_it_takes_the_place_of_an_end_that_was_to_come(subscriber: Till) -> None:
    begun = await subscriber.subscribe(TRIAL)
    ending = await cancel_later(subscriber.database, subscriber.shop, begun.id, by="customer", now=begun.date_start)
    done = await charged(subscriber, begun, YEARLY)
    assert done.changed.replaced == ending.subscription.change
    now = await subscriber.now(begun)
    assert (now.change, now.state) == (None, SubscriptionState.ACTIVE)
    assert await subscriber.problems() == []


async def test_one_of_many_at_once_charges(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    wishes = (charged(subscriber, begun, YEARLY) for _ in range(8))
    answers = await asyncio.gather(*wishes, return_exceptions=True)
    assert [one for one in answers if not isinstance(one, ChangedAtOnce | Conflict)] == []
    assert amounts(charges) == [Decimal(10), Decimal("93.33")]
    assert (await subscriber.now(begun)).counter == 2
    assert await subscriber.problems() == []


async def test_a_plan_with_as_many_payments_as_were_made_is_refused(subscriber: Till, charges: Any) -> None:
    once = await subscriber.subscribe(replace(MONTHLY, limit=1, period=Period(1, "year")), order="once")
    begun: Subscription = await subscriber.subscribe(THIRTY_DAYS)
    with pytest.raises(Conflict, match="has had 1 payment, and that plan has 1 in all"):
        await charged(subscriber, begun, Plan(version_id=once.package.version_id))
    assert await subscriber.now(begun) == begun


@pytest.mark.parametrize("new_price", ["5.00", "0.01"])
async def test_the_check_finds_a_credit_that_is_none(subscriber: Till, new_price: str) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await charged(subscriber, begun, YEARLY)
    assert await subscriber.problems() == []
    said = {"new_price": Decimal(new_price)}
    await breaking.say(subscriber.database, "subscription_proration", {"subscription_id": begun.id}, **said)
    assert any("subscription_proration" in problem for problem in await subscriber.problems())
