"""A renewal by direct debit is pending until its bank has paid: it is no failure, nothing charges
it again, and no period begins that nobody has paid for. Its shop hears of it once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from ipaddress import ip_network
from typing import Any

import pytest
from tests import breaking, shopfront
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.acquirers.simulator.remembering import TRANSFER_TAKES
from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Busy, Conflict
from paydesk.core.periods import Period
from paydesk.domain.billing.card_changes import Replaced
from paydesk.domain.billing.replacing_cards import NewCard, replace_card
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.letting_go import ask_unneeded
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Unsettled
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import erase
from paydesk.domain.subscriptions.changing import cancel_later, pause
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial
from paydesk.domain.test_clock.advancing import What, advance

Charges = Callable[[], list[Standing]]

WEEKLY = replace(MONTHLY, period=Period(13, "day"))
FREE = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))
ORDER = "club"
NEW_CARD = NewCard(
    CardDetails("5555555555554444", 12, 2040, "Ada Lovelace", "123"), "203.0.113.9", "https://pay.test/back"
)


@pytest.fixture
async def slow(subscriber: Till) -> Till:
    """A side whose subscriptions may be paid by direct debit."""
    offering = await subscriber.offering_slow_methods()
    return replace(offering, desk=replace(offering.desk, slow_renewals=True))


async def page_of(slow: Till, terms: Terms = MONTHLY) -> tuple[Link, str]:
    """A checkout, and the bank's page on which its customer subscribes."""
    link = await shopfront.order(slow.database, slow.shop, ORDER, terms=terms)
    result = await shopfront.go_on(slow.desk, link, agreed="what the page said")
    assert isinstance(result, ConfirmWithBank)
    return link, result.url.rpartition("/")[2]


async def ways(slow: Till, bank: Bank, terms: Terms = MONTHLY) -> tuple[Way, ...]:
    """How a subscription may be paid there."""
    page = bank.pages.show((await page_of(slow, terms))[1])
    assert page is not None
    return page.ways


async def begin(slow: Till, bank: Bank, way: Way = Way.DEBIT, terms: Terms = MONTHLY) -> Subscription:
    """A customer subscribes by direct debit, whose first money has come."""
    link, page = await page_of(slow, terms)
    bank.pages.pay(page, way, "")
    checkout = await slow.find(link)
    assert checkout.attempt is not None
    came = await settle_challenge(slow.desk, checkout, checkout.attempt, now=checkout.now)
    assert came == (Unsettled() if terms.first_amount else Paid())
    await slow.settle(hours=49)
    return await shopfront.subscription_of(slow.database, slow.shop, ORDER)


async def renewing(slow: Till, bank: Bank, way: Way = Way.DEBIT) -> tuple[Subscription, datetime]:
    """A subscription whose renewal is on its way, and the shop's time by which it is sure."""
    before = await begin(slow, bank, way)
    return await renewed(slow, before), await slow.database.fetchval(
        "select sure_by from payment_attempt where merchant_id = $1 and state = 'pending'", slow.shop.merchant_id
    )


async def renewed(slow: Till, before: Subscription) -> Subscription:
    """It is charged, and its money is on its way."""
    await slow.charge(before.date_next)
    assert (await slow.payments())[-1]["state"] == "pending"
    return await slow.now(before)


def taken(charges: Charges) -> list[Decimal]:
    return [charge.net for charge in charges() if charge.net]


class TestOnItsWay:
    async def test_it_is_no_failure_and_paid_for_its_own_period(self, slow: Till, bank: Bank, charges: Charges) -> None:
        before = await begin(slow, bank)
        assert before.date_next is not None
        pending = await renewed(slow, before)
        assert (pending.failures, pending.counter, pending.next_period) == (0, 1, before.next_period)
        assert taken(charges) == [Decimal(10)]
        assert len(await slow.told()) == 1
        assert await slow.problems() == []
        await slow.settle(hours=49)
        after = await slow.now(before)
        assert (after.failures, after.counter, after.next_period) == (0, 2, before.next_period + 1)
        assert after.date_next == before.schedule.due(before.next_period + 1)
        assert taken(charges) == [Decimal(10)] * 2
        assert len(await slow.told()) == 2
        assert await slow.problems() == []
        await slow.settle(hours=60)
        assert len(await slow.told()) == 2

    async def test_nothing_charges_it_again_meanwhile(self, slow: Till, bank: Bank) -> None:
        pending, _ = await renewing(slow, bank)
        for days in (1, 40, 80):
            assert pending.date_next is not None
            assert await slow.charge(pending.date_next + timedelta(days=days)) == 0
        assert len(slow.standings()) == 2
        assert [one["state"] for one in await slow.attempts()] == ["approved", "pending"]

    async def test_what_is_due_is_found_without_a_look_at_it(self, slow: Till, bank: Bank) -> None:
        pending, _ = await renewing(slow, bank)
        assert await slow.passed_over() == [pending.id]
        await slow.settle(hours=49)
        assert await slow.passed_over() == []
        assert await slow.charge((await slow.now(pending)).date_next) == 1

    async def test_what_is_late_is_charged_for_the_next_period_on_its_own_day(self, slow: Till, bank: Bank) -> None:
        before = await begin(slow, bank)
        await renewed(slow, before)
        await slow.settle(hours=24 * 33)
        after = await slow.now(before)
        assert after.date_next == before.schedule.due(before.next_period + 1)
        assert after.skipped == before.skipped

    async def test_two_janitors_record_it_once(self, slow: Till, bank: Bank, charges: Charges) -> None:
        await renewing(slow, bank)
        await asyncio.gather(*(slow.settle(hours=49) for _ in range(3)))
        assert len(await slow.told()) == 2
        assert taken(charges) == [Decimal(10)] * 2

    async def test_a_worker_that_dies_after_the_answer_leaves_it_to_the_janitor(
        self, slow: Till, bank: Bank, charges: Charges, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = await begin(slow, bank)
        with monkeypatch.context() as dying:
            dying.setattr("paydesk.domain.billing.charging.record_pending", _dies)
            with pytest.raises(ConnectionResetError):
                await slow.charge(before.date_next)
        assert [one["state"] for one in await slow.attempts()] == ["approved", "processing"]
        await slow.settle(minutes=2)
        assert [one["state"] for one in await slow.attempts()] == ["approved", "pending"]
        await slow.settle(hours=49)
        assert (await slow.now(before)).counter == 2
        assert taken(charges) == [Decimal(10)] * 2

    async def test_its_bank_is_asked_until_it_knows_and_an_operator_told_a_day_later(
        self, slow: Till, bank: Bank
    ) -> None:
        _, sure_by = await renewing(slow, bank)
        assert timedelta(days=1, hours=23) < sure_by - utc_now() <= timedelta(days=2)

    async def test_a_free_trial_keeps_the_account_for_nothing(self, slow: Till, bank: Bank, charges: Charges) -> None:
        before = await begin(slow, bank, terms=FREE)
        assert before.state is SubscriptionState.TRIAL
        await renewed(slow, before)
        await slow.settle(hours=49)
        assert (await slow.now(before)).state is SubscriptionState.ACTIVE
        assert taken(charges) == [Decimal(10)]


async def _dies(*_: object, **__: object) -> None:
    raise ConnectionResetError


class TestComingToNothing:
    async def test_it_is_a_decline_and_tried_again(self, slow: Till, bank: Bank, charges: Charges) -> None:
        before = await begin(slow, bank, Way.FAILING_DEBIT)
        await renewed(slow, before)
        await slow.settle(hours=49)
        failing = await slow.now(before)
        assert (failing.failures, failing.state) == (1, SubscriptionState.ACTIVE)
        declined = (await slow.attempts())[-1]
        assert (declined["state"], declined["decline_reason"]) == ("declined", DeclineReason.INSUFFICIENT_FUNDS)
        assert failing.date_next is not None
        assert failing.date_next > utc_now() + timedelta(hours=48)
        assert await slow.problems() == []
        await slow.charge(failing.date_next)
        assert [one["state"] for one in await slow.attempts()] == ["approved", "declined", "pending"]
        assert taken(charges) == [Decimal(10)]

    async def test_after_a_free_trial_the_first_debit_of_such_an_account_fails(self, slow: Till, bank: Bank) -> None:
        failing = await renewed(slow, await begin(slow, bank, Way.FAILING_DEBIT, FREE))
        await slow.settle(hours=49)
        assert (await slow.now(failing)).failures == 1
        assert (await slow.attempts())[-1]["state"] == "declined"

    async def test_it_stops_when_all_tries_are_used(self, slow: Till, bank: Bank) -> None:
        current = await begin(slow, bank, Way.FAILING_DEBIT)
        for days in range(4):
            await slow.charge(current.date_next)
            await slow.settle(hours=49 * (days + 1))
            current = await slow.now(current)
        assert (current.state, current.cancelled_by) == (SubscriptionState.CANCELLED, "retries")
        assert await slow.problems() == []


class TestMeanwhile:
    async def test_cancelled_at_once_the_debit_stands_and_nothing_follows(
        self, slow: Till, bank: Bank, charges: Charges
    ) -> None:
        pending, _ = await renewing(slow, bank)
        await cancel(slow.database, slow.shop, pending.id, by="customer", now=utc_now())
        assert await slow.problems() == []
        await slow.settle(hours=49)
        after = await slow.now(pending)
        assert (after.state, after.date_next, after.counter) == (SubscriptionState.CANCELLED, None, 2)
        assert taken(charges) == [Decimal(10)] * 2
        assert await slow.problems() == []

    async def test_cancelled_at_once_a_debit_that_fails_is_not_tried_again(
        self, slow: Till, bank: Bank, charges: Charges
    ) -> None:
        pending, _ = await renewing(slow, bank, Way.FAILING_DEBIT)
        await cancel(slow.database, slow.shop, pending.id, by="customer", now=utc_now())
        await slow.settle(hours=49)
        after = await slow.now(pending)
        assert (after.state, after.date_next, after.cancelled_by) == (SubscriptionState.CANCELLED, None, "customer")
        assert taken(charges) == [Decimal(10)]
        assert await slow.problems() == []

    async def test_a_later_end_a_pause_and_another_plan_wait_until_it_is_known(self, slow: Till, bank: Bank) -> None:
        pending, _ = await renewing(slow, bank)
        names: dict[str, Any] = {"by": "customer", "now": pending.date_next}
        with pytest.raises(Busy, match="on its way"):
            await pause(slow.database, slow.shop, pending.id, **names)
        with pytest.raises(Busy, match="on its way"):
            await cancel_later(slow.database, slow.shop, pending.id, **names)
        with pytest.raises(Conflict):
            await change_plan(slow.database, slow.shop, pending.id, Plan(price="12.00"), **names)

    async def test_the_customer_s_data_are_not_erased_before_it_is_known(self, slow: Till, bank: Bank) -> None:
        pending, _ = await renewing(slow, bank)
        subject = Subject(slow.shop.merchant_id, order=ORDER)
        with pytest.raises(Conflict, match="not known yet"):
            await erase(slow.database, subject, end=True, now=utc_now())
        assert (await slow.now(pending)).state is SubscriptionState.CANCELLED
        await slow.settle(hours=49)
        assert (await slow.now(pending)).counter == 2


class TestShortPlans:
    async def test_no_debit_is_offered_for_a_plan_of_less_than_two_weeks(self, slow: Till, bank: Bank) -> None:
        assert Way.DEBIT in await ways(slow, bank)
        assert Way.DEBIT not in await ways(slow, bank, WEEKLY)

    async def test_none_is_offered_where_the_operator_does_not_allow_it(self, subscriber: Till, bank: Bank) -> None:
        assert Way.DEBIT not in await ways(await subscriber.offering_slow_methods(), bank)

    async def test_who_pays_by_debit_gets_no_such_plan_later(self, slow: Till, bank: Bank) -> None:
        current = await begin(slow, bank)
        with pytest.raises(Conflict, match="direct debit"):
            await change_plan(
                slow.database, slow.shop, current.id, Plan(period="1w"), by="merchant", now=utc_now(), preview=True
            )
        changed = await change_plan(
            slow.database, slow.shop, current.id, Plan(period="2w"), by="merchant", now=utc_now(), preview=True
        )
        assert changed.moved


class TestClock:
    async def test_it_stops_on_the_day_and_the_days_are_over(
        self, slow: Till, bank: Bank, charges: Charges, vault: Vault
    ) -> None:
        before = await begin(slow, bank)
        assert before.date_next is not None
        client = OutboundClient([ip_network("127.0.0.0/8")], timeout=15.0)
        sender = PingbackSender(slow.database, vault, client)
        summary = await advance(slow.desk, sender, slow.shop.merchant_id, Period(4, "month"))
        await client.close()
        paid = [event.at for event in summary.events if event.what is What.PAYMENT]
        for at, period in zip(paid, (2, 3, 4), strict=True):
            due = before.schedule.due(period)
            assert due is not None
            assert timedelta() <= at - due - TRANSFER_TAKES < timedelta(minutes=1)
        assert summary.unsettled == ()
        assert taken(charges) == [Decimal(10)] * 4
        assert await slow.problems() == []


class TestReplacing:
    async def test_a_card_takes_its_place_from_the_next_period_on(
        self, slow: Till, bank: Bank, charges: Charges
    ) -> None:
        pending, _ = await renewing(slow, bank)
        old = await slow.database.fetchval("select card_id from subscription where id = $1", pending.id)
        given = await replace_card(slow.desk, pending, None, NEW_CARD, now=utc_now())
        assert given == Replaced()
        assert await slow.charge((await slow.now(pending)).date_next) == 0
        await ask_unneeded(slow.database, now=utc_now())
        assert await slow.database.fetchval("select let_go_at from card where id = $1", old) is None
        await slow.settle(hours=49)
        after = await slow.now(pending)
        assert (after.counter, after.failures) == (2, 0)
        assert after.date_next == pending.schedule.due(pending.next_period + 1)
        assert taken(charges) == [Decimal(10)] * 2
        await ask_unneeded(slow.database, now=utc_now())
        assert await slow.database.fetchval("select let_go_at from card where id = $1", old) is not None
        assert await slow.problems() == []


class TestPutBack:
    """The database was put back to before the debit was sent."""

    @staticmethod
    async def forget(slow: Till, pending: Subscription) -> None:
        forgotten = (await slow.payments())[-1]["id"]
        await breaking.say(slow.database, "subscription", {"id": pending.id}, charging_attempt_id=None)
        await breaking.forget(slow.database, slow.shop.merchant_id, "payment_attempt", payment_id=forgotten)
        await breaking.forget(slow.database, slow.shop.merchant_id, "payment", id=forgotten)

    async def test_a_debit_that_was_forgotten_is_taken_up_and_not_sent_twice(
        self, slow: Till, bank: Bank, charges: Charges
    ) -> None:
        before = await begin(slow, bank)
        pending = await renewed(slow, before)
        await self.forget(slow, pending)
        await slow.charge(before.date_next)
        assert [one["state"] for one in await slow.payments()] == ["captured", "pending"]
        assert len(slow.standings()) == 2
        await slow.settle(hours=49)
        assert (await slow.now(before)).counter == 2
        assert taken(charges) == [Decimal(10)] * 2
