"""Renewals that the acquirer refuses as requests, and those for which the bank wants
to see somebody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests import set_back
from tests.banks import ObedientBank
from tests.proving import check
from tests.till import Till

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Challenged,
    DeclineReason,
    Finding,
    KeyUsed,
    NothingHeld,
    Outcome,
    OutcomeUnknown,
    Voided,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.core.clock import utc_now
from paydesk.domain.subscriptions.changing import carry_out_due, pause, resume
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.retry_times import REFUSED_PAUSES
from paydesk.domain.subscriptions.states import SubscriptionState


@dataclass
class Asking(ObedientBank):
    """Wants to see the customer of each charge; `unsaid` loses the question on its way back."""

    asks: bool = False
    unsaid: bool = False
    deaf: bool = False
    ended: list[str] = field(default_factory=list)

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        if not self.asks:
            return await super().charge_stored(purchase)
        if self.unsaid:
            raise OutcomeUnknown("lost")
        return Challenged(purchase.key, "https://bank.example/3ds")

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        if not self.asks or key in self.decided:
            return await super().find(key, not_after)
        return Voided() if key in self.ended else Challenged(key, "https://bank.example/3ds")

    async def end_challenge(self, of_key: str) -> Finding:
        if self.deaf:
            raise OutcomeUnknown("nobody answers")
        if of_key not in self.decided:
            self.ended.append(of_key)
        return self.decided.get(of_key, Voided())


async def attempts(club: Till) -> list[tuple[str, str]]:
    """The state and reason of each renewal's attempt, oldest first."""
    rows = await club.desk.database.fetch(
        "select state, decline_reason from payment_attempt where merchant_id = $1 and checkout_id is null order by id",
        club.shop.merchant_id,
    )
    return [(row["state"], row["decline_reason"]) for row in rows]


async def alarms(club: Till) -> list[Any]:
    """What an operator sees of this merchant."""
    return list(
        await club.desk.database.fetch(
            "select * from alarm where merchant_id = $1 and settled_at is null", club.shop.merchant_id
        )
    )


async def events(club: Till) -> list[str]:
    return [one["event"] for one in await club.told()]


class TestRefusedRequests:
    async def refused(self, subscriber: Till, times: int) -> tuple[Till, Subscription, ObedientBank]:
        bank = ObedientBank()
        club = subscriber.at(bank)
        subscription = await club.subscribe()
        bank.why_not = AcquirerRefused("No such PaymentMethod: 'pm_1'")
        for _ in range(times):
            subscription = await club.charge_due(subscription)
        return club, subscription, bank

    async def test_however_late_it_is_tried_again_the_check_finds_nothing(self, subscriber: Till) -> None:
        club, subscription, _ = await self.refused(subscriber, 0)
        for _ in REFUSED_PAUSES:
            at = subscription.date_next
            assert at is not None
            subscription = await club.charge_due(subscription)
            found = await check(club.desk.database, now=at, merchant_id=club.shop.merchant_id)
            assert [one.differences for one in found if one.rule.statement == "dates_in_range" and one.found] == []

    async def test_it_is_tried_again_ever_later_and_then_stops(self, subscriber: Till) -> None:
        club, subscription, bank = await self.refused(subscriber, 0)
        first = subscription.date_next
        assert first is not None
        pauses = []
        while subscription.date_next is not None:
            due = subscription.date_next
            subscription = await club.charge_due(subscription)
            pauses.append(subscription.date_next - due if subscription.date_next else None)
        assert pauses == [*(timedelta(hours=hours) for hours in (1, 6, 24, 48, 96)), None]
        assert (subscription.state, subscription.cancelled_by) == (SubscriptionState.CANCELLED, "retries")
        assert await events(club) == ["payment", "subscription_stopped"]
        assert await attempts(club) == [("declined", "request_refused")] * 6
        assert len(bank.asked) == 1 + 6

    async def test_the_cards_own_failures_are_not_counted_up(self, subscriber: Till) -> None:
        club, subscription, bank = await self.refused(subscriber, 3)
        assert subscription.failures == 0
        bank.why_not, bank.refuse = None, DeclineReason.INSUFFICIENT_FUNDS
        due = subscription.date_next
        subscription = await club.charge_due(subscription)
        assert subscription.failures == 1
        assert due is not None
        assert subscription.date_next == due + timedelta(hours=6)

    async def test_the_operator_sees_one_line_for_all_with_the_newest_reason(self, subscriber: Till) -> None:
        club, _, _ = await self.refused(subscriber, 3)
        (alarm,) = await alarms(club)
        assert (alarm["kind"], alarm["subject"], alarm["times"]) == ("request_refused", "requests to simulator", 3)
        assert "No such PaymentMethod" in alarm["reason"]

    async def test_what_is_mended_in_time_is_charged_and_the_calendar_stays(self, subscriber: Till) -> None:
        club, subscription, bank = await self.refused(subscriber, 2)
        bank.why_not = None
        renewed = await club.charge_due(subscription)
        assert renewed.paid_number_counter == 2
        due = renewed.schedule.due(3)
        assert due is not None
        assert renewed.date_next == due
        bank.why_not = AcquirerRefused("again")
        again = await club.charge_due(renewed)
        assert again.date_next == due + timedelta(hours=1), "each period is counted anew"

    async def test_pausing_and_resuming_brings_no_try_forward(self, subscriber: Till) -> None:
        club, subscription, bank = await self.refused(subscriber, 3)
        then, asked = subscription.date_next, len(bank.asked)
        assert then is not None
        named = (club.database, club.shop, subscription.id)
        for hours in range(1, 21):
            begun = then - timedelta(hours=24 - hours)
            previewed = await pause(*named, until=begun + timedelta(hours=1), by="merchant", now=begun, preview=True)
            assert previewed.subscription.charged_next_at == then
            await pause(*named, by="merchant", now=begun)
            await resume(*named, now=begun + timedelta(minutes=30))
            assert await club.charge(begun + timedelta(minutes=31)) == 0
        assert (await club.now(subscription)).date_next == then
        begun = then - timedelta(hours=2)
        await pause(*named, until=begun + timedelta(hours=1), by="merchant", now=begun)
        assert (await club.now(subscription)).charged_next_at == then
        merchant_id = club.shop.merchant_id
        await carry_out_due(club.database, real_now=utc_now(), merchant_id=merchant_id, at=begun + timedelta(hours=1))
        assert (await club.now(subscription)).date_next == then
        assert len(bank.asked) == asked
        assert (await club.charge_due(subscription)).date_next == then + timedelta(days=2)

    async def test_paused_beyond_its_day_it_is_tried_once_when_it_is_resumed(self, subscriber: Till) -> None:
        club, subscription, bank = await self.refused(subscriber, 3)
        then = subscription.date_next
        assert then is not None
        named, at = (club.database, club.shop, subscription.id), then + timedelta(days=9)
        await pause(*named, by="merchant", now=then - timedelta(hours=1))
        await resume(*named, now=at)
        assert await club.charge(at) == 1
        tried = await club.now(subscription)
        assert tried.date_next == at + timedelta(days=2)
        await pause(*named, by="merchant", now=at)
        await resume(*named, now=at + timedelta(hours=1))
        assert (await club.now(subscription)).date_next == at + timedelta(days=2)
        assert len(bank.asked) == 1 + 4

    async def test_of_a_failing_charge_that_is_paused_the_later_try_counts(self, subscriber: Till) -> None:
        club, subscription, bank = await self.refused(subscriber, 2)
        bank.why_not, bank.refuse = None, DeclineReason.INSUFFICIENT_FUNDS
        subscription = await club.charge_due(subscription)
        bank.why_not = AcquirerRefused("again")
        subscription = await club.charge_due(subscription)
        then = subscription.date_next
        assert then is not None
        named, begun = (club.database, club.shop, subscription.id), then - timedelta(hours=20)
        await pause(*named, by="merchant", now=begun)
        await resume(*named, now=begun)
        assert (await club.now(subscription)).date_next == then
        await pause(*named, by="merchant", now=then - timedelta(hours=1))
        await resume(*named, now=then - timedelta(hours=1))
        assert (await club.now(subscription)).date_next == then + timedelta(hours=5), "after the usual pause"

    async def test_another_card_is_tried_at_once_when_it_is_resumed(self, subscriber: Till) -> None:
        club, subscription, bank = await self.refused(subscriber, 3)
        then = subscription.date_next
        assert then is not None
        named, begun = (club.database, club.shop, subscription.id), then - timedelta(hours=20)
        await pause(*named, by="merchant", now=begun)
        bank.why_not = None
        await set_back.card_replaced(club.desk, subscription)
        await resume(*named, now=begun)
        assert await club.charge(begun) == 1
        assert (await club.now(subscription)).paid_number_counter == 2

    async def test_a_key_that_was_used_before_is_looked_up(self, subscriber: Till) -> None:
        club, subscription, bank = await self.refused(subscriber, 0)
        bank.why_not = KeyUsed("the key was used for another purchase before")
        assert (await club.charge_due(subscription)).date_next == subscription.date_next
        assert await attempts(club) == [("processing", "")]
        bank.decided[bank.asked[-1]] = Approved("payment-1")
        await club.settle_all(seconds=6)
        assert await attempts(club) == [("approved", "")]


class TestChallenges:
    async def asked(self, subscriber: Till, **how: bool) -> tuple[Till, Subscription, Asking]:
        bank = Asking()
        club = subscriber.at(bank)
        subscription = await club.subscribe()
        bank.asks = True
        for name, value in how.items():
            setattr(bank, name, value)
        due = subscription.date_next
        assert due is not None
        assert await club.charge(due) == 1
        return club, await club.now(subscription), bank

    async def test_it_is_ended_at_the_bank_and_counts_as_a_decline(self, subscriber: Till) -> None:
        club, subscription, bank = await self.asked(subscriber)
        assert await attempts(club) == [("declined", "authentication_failed")]
        assert bank.ended == [(await club.desk.database.fetchval("select idempotency_key from payment_attempt"
                               " where merchant_id = $1 and checkout_id is null", club.shop.merchant_id))]  # fmt: skip
        assert subscription.failures == 1

    async def test_a_challenge_that_nobody_heard_of_is_ended_when_it_is_looked_up(self, subscriber: Till) -> None:
        club, subscription, bank = await self.asked(subscriber, unsaid=True)
        assert await attempts(club) == [("processing", "")]
        await club.settle_all(seconds=6)
        assert await attempts(club) == [("declined", "authentication_failed")]
        assert len(bank.ended) == 1
        assert (await club.now(subscription)).failures == 1

    async def test_what_it_came_to_before_it_could_be_ended_counts(self, subscriber: Till) -> None:
        club, subscription, bank = await self.asked(subscriber, deaf=True)
        assert await attempts(club) == [("processing", "")]
        (key,) = [row["idempotency_key"] for row in await club.desk.database.fetch(
            "select idempotency_key from payment_attempt where merchant_id = $1 and checkout_id is null",
            club.shop.merchant_id)]  # fmt: skip
        bank.decided[key] = Approved("payment-2")
        await club.settle_all(seconds=6)
        assert await attempts(club) == [("approved", "")]
        assert (await club.now(subscription)).paid_number_counter == 2

    async def test_one_that_was_recorded_as_open_is_ended_and_declined(self, subscriber: Till) -> None:
        """As earlier versions left them: in flight for ever,
        so that the subscription was never charged again.
        """
        club, subscription, bank = await self.asked(subscriber, deaf=True)
        bank.deaf = False
        for table in ("payment", "payment_attempt"):
            await club.desk.database.execute(
                f"update {table} set state = 'challenged' where merchant_id = $1 and state = 'processing'",
                club.shop.merchant_id,
            )
        await club.settle_all(seconds=6)
        assert await attempts(club) == [("declined", "authentication_failed")]
        declined = await club.now(subscription)
        assert declined.failures == 1
        bank.asks = False
        assert (await club.charge_due(declined)).paid_number_counter == 2

    async def test_a_bank_that_knows_nothing_of_its_own_question_leaves_it_open(self, subscriber: Till) -> None:
        club, _, bank = await self.asked(subscriber, unsaid=True)

        async def nothing(of_key: str) -> Finding:
            return NothingHeld()

        bank.end_challenge = nothing  # type: ignore[method-assign]
        await club.settle_all(seconds=6)
        assert await attempts(club) == [("processing", "")]
