"""Years of a test clock over subscriptions that pause, resume and end with their period."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from ipaddress import ip_network
from itertools import pairwise
from typing import Any

import pytest
from tests.banks import answering
from tests.domain.payments.test_free_trials import begun as begun_without_card
from tests.domain.payments.test_free_trials import end_of, give_card
from tests.lengths import at_length, long, longer
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.interface import Outcome
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.billing.card_changes import Replaced
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.subscriptions.changing import cancel_later, pause, resume, undo
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Trial
from paydesk.domain.test_clock import advancing
from paydesk.domain.test_clock.advancing import Summary, What, advance
from paydesk.domain.test_clock.resetting import reset_test_side

Advance = Callable[..., Awaitable[Summary]]
YEARLY = replace(MONTHLY, period=Period(1, "year"), trial=Trial(Decimal(0), Period(14, "day")))


@pytest.fixture
async def run(database: Database, vault: Vault, subscriber: Till) -> AsyncIterator[Advance]:
    client = OutboundClient([ip_network("127.0.0.0/8")], timeout=15.0)

    async def advanced(length: int, unit: Any = "month") -> Summary:
        sender = PingbackSender(database, vault, client)
        return await advance(subscriber.desk, sender, subscriber.shop.merchant_id, Period(length, unit))

    yield advanced
    await client.close()


async def test_no_time_passes_while_a_worker_has_in_hand_what_is_due_at_that_moment(
    subscriber: Till, run: Advance, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await subscriber.subscribe(pingback_url=None)
    named = (subscriber.database, subscriber.shop, begun.id)
    await change_plan(*named, Plan(period="1w"), by="merchant", now=await now_of(subscriber))
    look, count, honest = advancing.queries.next_due, advancing.queries.in_hand, subscriber.honest
    asked, answers = asyncio.Event(), asyncio.Event()

    async def slowly(*given: Any, **said: Any) -> Outcome:
        asked.set()
        await answers.wait()
        return await honest.charge_stored(*given, **said)

    worker = subscriber.at(answering(honest, charge_stored=slowly))
    at_work: list[asyncio.Task[int]] = []

    async def look_after_a_worker(*given: Any, **said: Any) -> Any:
        row = await look(*given, **said)
        if not at_work and row["charge_at"] is not None:
            # The plan has just changed, and its first charge is due at that very moment.
            at_work.append(asyncio.create_task(worker.charge(row["charge_at"])))
            await asked.wait()
            return await look(*given, **said)
        return row

    async def wait_for_it(*given: Any, **said: Any) -> Any:
        if at_work:
            answers.set()
            await at_work[0]
        return await count(*given, **said)

    monkeypatch.setattr(advancing.queries, "next_due", look_after_a_worker)
    monkeypatch.setattr(advancing.queries, "in_hand", wait_for_it)
    summary = await run(2)
    paid = [one.at for one in summary.events if one.what is What.PAYMENT]
    assert len(paid) > 3
    assert {later - earlier for earlier, later in pairwise(paid)} == {timedelta(weeks=1)}
    assert await subscriber.problems() == []


async def now_of(till: Till) -> datetime:
    return await shop_time(till.database, till.shop, real_now=utc_now())


@long
async def test_three_years_with_a_pause_in_each_charge_for_what_was_given(
    subscriber: Till, run: Advance, charges: Callable[[], list[Standing]]
) -> None:
    begun, away, named = await subscriber.subscribe(), timedelta(), (subscriber.database, subscriber.shop)
    for _ in range(3):
        await run(4)
        at = await now_of(subscriber)
        until = at + timedelta(days=75)
        await pause(*named, begun.id, until=until, by="customer", now=at)
        summary = await run(2)
        assert What.PAYMENT not in summary.counts
        summary = await run(6)
        assert [one.at for one in summary.events if one.what is What.RESUMED] == [until]
        away += until - at
    now = await subscriber.now(begun)
    assert now.date_next is not None
    given = now.date_next - begun.date_start - away
    assert now.paid_number_counter == len(charges())
    # So many months, each between 28 and 31 days long.
    assert abs(given - now.paid_number_counter * timedelta(days=30.44)) < timedelta(days=6)
    await cancel_later(*named, begun.id, by="customer", now=await now_of(subscriber))
    summary = await run(3)
    assert summary.counts[What.CANCELLED] == 1
    assert What.PAYMENT not in summary.counts
    ended = await subscriber.now(begun)
    assert ended.date_cancelled == now.date_next
    assert [event for event in await subscriber.events() if event != "payment"] == ["subscription_cancelled"]
    assert await subscriber.problems() == []


@longer
async def test_a_trial_that_is_paused_for_months_becomes_a_yearly_one_on_its_day(
    subscriber: Till, run: Advance
) -> None:
    begun, named = await subscriber.subscribe(YEARLY), (subscriber.database, subscriber.shop)
    await run(4, "day")
    await pause(*named, begun.id, by="api", now=await now_of(subscriber))
    assert What.PAYMENT not in (await run(at_length(12, 2))).counts
    at = await now_of(subscriber)
    resumed = (await resume(*named, begun.id, now=at)).subscription
    assert resumed.date_next is not None
    assert abs(resumed.date_next - at - timedelta(days=10)) < timedelta(minutes=1)
    years = at_length(3, 1)
    summary = await run(years, "year")
    assert summary.counts[What.PAYMENT] == years
    assert await subscriber.problems() == []


@longer
async def test_a_yearly_trial_becomes_a_dearer_monthly_plan_and_a_yearly_one_again(
    subscriber: Till, run: Advance, charges: Callable[[], list[Standing]]
) -> None:
    begun, named = await subscriber.subscribe(YEARLY), (subscriber.database, subscriber.shop)
    monthly = Plan(price="30.00", period="1m")
    await change_plan(*named, begun.id, monthly, by="api", now=await now_of(subscriber))
    summary = await run(3)
    assert (summary.counts[What.CHANGED], summary.counts[What.PAYMENT]) == (1, 3)
    order = [one.what for one in summary.events if one.what in (What.CHANGED, What.PAYMENT)]
    assert order[0] is What.CHANGED
    assert [one.at for one in summary.events if one.what is What.CHANGED] == [begun.anchor]
    await change_plan(*named, begun.id, Plan(price="99.00", period="1y"), by="api", now=await now_of(subscriber))
    summary = await run(at_length(14, 2))
    paid = at_length([99, 99], [99])
    assert summary.counts[What.PAYMENT] == len(paid)
    assert [charge.amount for charge in charges()] == [30, 30, 30, *paid]
    assert await subscriber.problems() == []


@long
async def test_undone_again_and_again_nothing_is_lost(subscriber: Till, run: Advance) -> None:
    begun, named = await subscriber.subscribe(), (subscriber.database, subscriber.shop)
    for _ in range(5):
        await run(3, "day")
        await cancel_later(*named, begun.id, by="customer", now=await now_of(subscriber))
        await run(2, "day")
        await undo(*named, begun.id, now=await now_of(subscriber))
        await run(1)
    # Five times a month and five days.
    assert (await subscriber.now(begun)).paid_number_counter == 1 + 5
    assert await subscriber.problems() == []


@pytest.fixture
async def trial(subscriber: Till) -> Subscription:
    """A free trial of 14 days that has begun without a card."""
    await change_merchant(subscriber.database, subscriber.shop.merchant_id, trials_without_card=True)
    return await begun_without_card(subscriber)


async def test_a_trial_without_a_card_ends_on_its_day_and_nothing_is_charged(
    subscriber: Till, run: Advance, trial: Subscription, charges: Callable[[], list[Standing]]
) -> None:
    await run(13, "day")
    assert (await subscriber.now(trial)).state is SubscriptionState.TRIAL
    done = await run(2, "day")
    ended = await subscriber.now(trial)
    assert (ended.state, ended.date_cancelled) == (SubscriptionState.CANCELLED, end_of(trial))
    assert done.counts.get(What.PAYMENT, 0) == 0
    await run(3)
    assert charges() == []
    assert await subscriber.events() == ["payment", "subscription_cancelled"]
    assert await subscriber.problems() == []


async def test_a_trial_that_is_given_a_card_is_charged_on_its_day(
    subscriber: Till, run: Advance, trial: Subscription, charges: Callable[[], list[Standing]]
) -> None:
    await run(13, "day")
    assert isinstance(await give_card(subscriber, trial), Replaced)
    assert (await run(1)).counts[What.PAYMENT] == 1
    now = await subscriber.now(trial)
    assert (now.state, now.date_active) == (SubscriptionState.ACTIVE, end_of(trial))
    assert len(charges()) == 1
    assert await subscriber.problems() == []


async def test_a_trial_without_a_card_that_was_paused_ends_so_much_later(
    subscriber: Till, run: Advance, trial: Subscription
) -> None:
    await run(4, "day")
    at = await now_of(subscriber)
    until = at + timedelta(days=30)
    await pause(subscriber.database, subscriber.shop, trial.id, until=until, by="customer", now=at)
    await run(39, "day")
    assert (await subscriber.now(trial)).state is SubscriptionState.TRIAL
    await run(2, "day")
    ended = await subscriber.now(trial)
    assert (ended.state, ended.date_cancelled) == (SubscriptionState.CANCELLED, end_of(trial) + timedelta(days=30))
    assert await subscriber.problems() == []


@pytest.mark.usefixtures("trial")
async def test_a_test_side_that_starts_anew_has_no_trial_without_a_card_left(subscriber: Till) -> None:
    await reset_test_side(subscriber.database, subscriber.shop.merchant_id)
    for table in ("subscription", "subscription_change", "payment", "payment_attempt", "checkout"):
        assert await subscriber.rows(table) == []
    assert await subscriber.problems() == []


async def test_a_test_side_that_starts_anew_has_no_change_left(subscriber: Till, run: Advance) -> None:
    begun = await subscriber.subscribe()
    await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=await now_of(subscriber))
    await reset_test_side(subscriber.database, subscriber.shop.merchant_id)
    assert await subscriber.rows("subscription_change") == []
    assert await subscriber.rows("subscription") == []
    await run(1)
