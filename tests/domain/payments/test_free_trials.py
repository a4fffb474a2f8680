"""Free trials without a card: nothing is charged, and they end, unless a card is given."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs
from tests.shopfront import GOOD, MONTHLY, subscription_of
from tests.till import Till

from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.periods import Period
from paydesk.domain.billing.card_changes import Replaced
from paydesk.domain.billing.replacing_cards import NewCard, replace_card
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.card_guard import CHECKS_PER_ADDRESS
from paydesk.domain.payments.checkouts import Standing
from paydesk.domain.payments.free_trials import begin_free_trial
from paydesk.domain.payments.hosting import Guest
from paydesk.domain.payments.results import Paid, Refused, Result
from paydesk.domain.subscriptions.changing import cancel_later, carry_out_due, pause, resume, undo
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_object import subscription_object
from paydesk.domain.subscriptions.subscription_terms import Trial

DAY = timedelta(days=1)
DAYS = 14
TRIAL = replace(MONTHLY, trial=Trial(Decimal(0), Period(DAYS, "day")))


@pytest.fixture
async def shop_(subscriber: Till) -> Till:
    """A shop whose free trials ask for no card."""
    await change_merchant(subscriber.database, subscriber.shop.merchant_id, trials_without_card=True)
    return subscriber


async def start(till: Till, link: Link, email: str = "ada@example.com", address: str = "192.0.2.1") -> Result:
    checkout = await till.find(link)
    return await begin_free_trial(till.desk, checkout, Guest(email, address, agreed="ok"), now=checkout.now)


async def begun(till: Till, order: str = "club-1") -> Subscription:
    assert await start(till, await till.order(order, terms=TRIAL)) == Paid()
    return await subscription_of(till.database, till.shop, order)


async def give_card(till: Till, subscription: Subscription, number: str = GOOD) -> object:
    new = NewCard(CardDetails(number, 12, 2040, "Ada", "123"), "192.0.2.1", "https://pay.test/back")
    return await replace_card(till.desk, subscription, None, new, now=utc_now())


async def carried_out(till: Till, at: datetime) -> int:
    return await carry_out_due(till.database, real_now=utc_now(), merchant_id=till.shop.merchant_id, at=at)


def end_of(subscription: Subscription) -> datetime:
    assert subscription.change is not None
    assert subscription.change.due_at is not None
    return subscription.change.due_at


async def test_it_begins_with_a_payment_of_nothing_of_which_nobody_was_asked(shop_: Till) -> None:
    trial = await begun(shop_)
    (payment,) = await shop_.payments()
    assert (payment["state"], payment["amount"], payment["fees"]) == ("captured", 0, 0)
    assert await shop_.rows("ledger_entry") == []
    assert shop_.standings() == {}
    ((told,), (event,)) = await shop_.told(), await shop_.events()
    assert (event, told["payment_order"]["paid_amount"], told["user"]["email"]) == ("payment", 0, "ada@example.com")
    object_ = told["subscription"]
    assert (object_["status"], object_["recurring_id"]) == ("Trial", payment["id"])
    assert (object_["date_next"], object_["cancel_delay"]) == (0, DAYS * 86400)
    assert object_["change_request"]["requested_by"] == "no_card"
    assert object_ == {**subscription_object(trial, with_init=True)}
    assert await shop_.problems() == []


async def test_without_a_card_it_ends_with_the_trial_once_and_nobody_is_asked(shop_: Till) -> None:
    trial = await begun(shop_)
    end = end_of(trial)
    assert end == trial.date_start + DAYS * DAY
    assert await shop_.charge(end + DAY) == 0
    assert await carried_out(shop_, end - timedelta(seconds=1)) == 0
    assert await carried_out(shop_, end + DAY) == 1
    assert await carried_out(shop_, end + DAY) == 0
    assert await shop_.charge(end + 40 * DAY) == 0
    ended = await shop_.now(trial)
    assert (ended.state, ended.date_cancelled, ended.cancelled_by) == ("Cancelled", end, "no_card")
    assert await shop_.events() == ["payment", "subscription_cancelled"]
    assert shop_.standings() == {}
    assert await shop_.problems() == []


async def test_a_card_given_in_the_trial_is_charged_at_its_end_as_usual(shop_: Till) -> None:
    trial = await begun(shop_)
    end = end_of(trial)
    assert await give_card(shop_, trial) == Replaced()
    going_on = await shop_.now(trial)
    assert (going_on.date_next, going_on.change, going_on.has_card) == (end, None, True)
    assert await shop_.problems() == []
    assert await shop_.charge(end - timedelta(seconds=1)) == 0
    assert await carried_out(shop_, end - timedelta(seconds=1)) == 0
    renewed = await shop_.charge_due(going_on)
    assert (renewed.state, renewed.counter, renewed.paid_number_counter) == ("Active", 1, 2)
    assert await shop_.events() == ["payment", "payment"]
    assert (await shop_.payments())[1]["amount"] == MONTHLY.price
    assert await carried_out(shop_, end + DAY) == 0
    assert await shop_.problems() == []


async def test_a_card_that_is_declined_changes_nothing(shop_: Till) -> None:
    trial = await begun(shop_)
    assert isinstance(await give_card(shop_, trial, "4000000000000002"), Refused)
    assert await shop_.now(trial) == trial
    assert await shop_.problems() == []


async def test_pressed_many_times_at_once_one_trial_begins(shop_: Till) -> None:
    link = await shop_.order("club-1", terms=TRIAL)
    came = await asyncio.gather(*(start(shop_, link) for _ in range(5)), return_exceptions=True)
    assert [one for one in came if not isinstance(one, Conflict)] == [Paid()]
    assert len(await shop_.payments()) == 1
    assert await shop_.events() == ["payment"]
    assert (await shop_.find(link)).standing is Standing.PAID
    assert await shop_.problems() == []


async def test_another_checkout_of_the_order_begins_no_second_one(shop_: Till) -> None:
    first, second = [await shop_.order("club-1", terms=TRIAL) for _ in range(2)]
    assert await start(shop_, first) == Paid()
    with pytest.raises(Conflict):
        await start(shop_, second)
    assert len(await shop_.payments()) == 1


@pytest.mark.parametrize(
    "terms",
    [MONTHLY, replace(MONTHLY, trial=Trial(Decimal(1), Period(DAYS, "day"))), None],
    ids=["no trial", "one that costs something", "no subscription"],
)
async def test_what_costs_something_needs_a_card(shop_: Till, terms: Any) -> None:
    link = await shop_.order("club-1", terms=terms)
    with pytest.raises(Conflict, match="card"):
        await start(shop_, link)
    assert await shop_.payments() == []


async def test_where_it_is_not_switched_on_a_free_trial_needs_a_card(subscriber: Till) -> None:
    link = await subscriber.order("club-1", terms=TRIAL)
    assert (await subscriber.find(link)).needs_card
    with pytest.raises(Conflict, match="card"):
        await start(subscriber, link)


async def test_a_pause_keeps_the_rest_of_the_trial_and_still_nothing_is_charged(shop_: Till, shop: Shop) -> None:
    trial = await begun(shop_)
    at = trial.date_start + 4 * DAY
    await pause(shop_.database, shop, trial.id, by="customer", now=at)
    assert await carried_out(shop_, at + 30 * DAY) == 0
    await resume(shop_.database, shop, trial.id, now=at + 30 * DAY)
    going_on = await shop_.now(trial)
    end = end_of(going_on)
    assert (end, going_on.date_next) == (at + 40 * DAY, None)
    assert await shop_.charge(end + DAY) == 0
    assert await shop_.problems() == []
    assert await carried_out(shop_, end) == 1
    assert (await shop_.now(trial)).cancelled_by == "no_card"
    assert await shop_.problems() == []


async def test_a_card_given_while_paused_is_charged_once_the_rest_is_over(shop_: Till, shop: Shop) -> None:
    trial = await begun(shop_)
    at = trial.date_start + 4 * DAY
    await pause(shop_.database, shop, trial.id, by="customer", now=at)
    assert await give_card(shop_, await shop_.now(trial)) == Replaced()
    assert (await shop_.now(trial)).paused
    await resume(shop_.database, shop, trial.id, now=at + DAY)
    going_on = await shop_.now(trial)
    assert (going_on.date_next, going_on.change) == (at + 11 * DAY, None)
    await shop_.charge_due(going_on)
    assert await shop_.problems() == []


async def test_who_ends_it_and_takes_that_back_still_has_no_card(shop_: Till, shop: Shop) -> None:
    trial = await begun(shop_)
    with pytest.raises(Conflict, match="no card yet"):
        await undo(shop_.database, shop, trial.id, now=trial.date_start + DAY)
    await cancel_later(shop_.database, shop, trial.id, by="customer", now=trial.date_start + DAY)
    wanted = await shop_.now(trial)
    assert (end_of(wanted), wanted.change and wanted.change.by) == (end_of(trial), "customer")
    await undo(shop_.database, shop, trial.id, now=trial.date_start + 2 * DAY)
    assert structs.replace(await shop_.now(trial), revision=trial.revision) == trial
    assert await shop_.problems() == []


async def test_who_wants_it_to_end_and_gives_a_card_has_it_end(shop_: Till, shop: Shop) -> None:
    trial = await begun(shop_)
    await cancel_later(shop_.database, shop, trial.id, by="customer", now=trial.date_start + DAY)
    assert await give_card(shop_, await shop_.now(trial)) == Replaced()
    assert (await shop_.now(trial)).date_next is None
    await undo(shop_.database, shop, trial.id, now=trial.date_start + 2 * DAY)
    assert (await shop_.now(trial)).date_next == end_of(trial)
    assert await shop_.problems() == []


async def test_another_plan_takes_a_card_first(shop_: Till, shop: Shop) -> None:
    trial = await begun(shop_)
    with pytest.raises(Conflict, match="no card yet"):
        await change_plan(shop_.database, shop, trial.id, Plan(price="20.00"), by="api", now=trial.date_start + DAY)


async def test_it_may_be_cancelled_at_once(shop_: Till, shop: Shop) -> None:
    trial = await begun(shop_)
    await cancel(shop_.database, shop, trial.id, by="customer", now=trial.date_start + DAY)
    assert await shop_.events() == ["payment", "subscription_cancelled"]
    assert await shop_.problems() == []
    assert await carried_out(shop_, end_of(trial)) == 0


async def test_one_mail_address_begins_only_so_many(shop_: Till) -> None:
    live = replace(shop_, shop=Shop(shop_.shop.merchant_id, live=True))
    for number in range(live.desk.limits.checks_per_card):
        link = await live.order(f"mail {number}", terms=TRIAL)
        assert await start(live, link, "Ada@example.com", f"192.0.2.{number}") == Paid()
    link = await live.order("one too many", terms=TRIAL)
    assert await start(live, link, "ada@example.com", "192.0.2.200") == Refused("too_many_attempts")
    assert await start(live, link, "eve@example.com", "192.0.2.200") == Paid()


async def test_one_client_begins_only_so_many(shop_: Till) -> None:
    live = replace(shop_, shop=Shop(shop_.shop.merchant_id, live=True))
    desk = replace(live.desk, limits=replace(live.desk.limits, checks_per_card=1))
    few = replace(live, desk=desk)
    for number in range(CHECKS_PER_ADDRESS):
        assert await start(few, await few.order(terms=TRIAL), f"ada{number}@example.com") == Paid()
    assert await start(few, await few.order(terms=TRIAL), "eve@example.com") == Refused("too_many_attempts")


@pytest.mark.parametrize(("with_card", "kinds"), [(False, ["trial", "trial_lost"]), (True, ["trial", "converted"])])
async def test_it_counts_as_lost_or_converted(shop_: Till, with_card: bool, kinds: list[str]) -> None:
    trial = await begun(shop_)
    end = end_of(trial)
    if with_card:
        await give_card(shop_, trial)
        await shop_.charge(end)
    await carried_out(shop_, end)
    rows = await shop_.database.fetch(
        "select kind from mrr_movement where merchant_id = $1 order by number", shop_.shop.merchant_id
    )
    assert [row["kind"] for row in rows] == kinds
    assert await shop_.problems() == []
