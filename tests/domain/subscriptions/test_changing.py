from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest
from tests import set_back
from tests.breaking import say
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.errors import Busy, Conflict, Malformed, NotFound
from paydesk.core.periods import Period
from paydesk.domain.billing.replacing_cards import NewCard, replace_card
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.changing import cancel_later, carry_out_due, pause, resume, undo
from paydesk.domain.subscriptions.ending import cancel, expire_due
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_object import subscription_object
from paydesk.domain.subscriptions.subscription_terms import Trial

Charges = Callable[[], list[Standing]]
DAY = timedelta(days=1)
TRIAL = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))


def due(subscription: Subscription) -> datetime:
    assert subscription.date_next is not None
    return subscription.date_next


async def carried_out(till: Till, at: datetime) -> int:
    return await carry_out_due(till.database, real_now=utc_now(), merchant_id=till.shop.merchant_id, at=at)


async def expired(till: Till, at: datetime | None) -> int:
    return await expire_due(till.database, real_now=utc_now(), merchant_id=till.shop.merchant_id, at=at)


async def ends_told(till: Till) -> list[str]:
    return [event for event in await till.events() if event != "payment"]


async def card_is_kept(till: Till, subscription: Subscription) -> bool:
    return bool(
        await till.database.fetchval(
            "select number_sealed is not null from card d join subscription s"
            " on s.merchant_id = d.merchant_id and s.card_id = d.id where s.merchant_id = $1 and s.id = $2",
            till.shop.merchant_id,
            subscription.id,
        )
    )


async def asks_for_pauses(till: Till) -> None:
    await say(till.database, "merchant", {"id": till.shop.merchant_id}, extra_events=["subscription_paused"])


class TestEndingWithThePeriod:
    async def test_it_is_active_until_the_end_then_ends_once_and_is_never_charged(
        self, subscriber: Till, charges: Charges
    ) -> None:
        begun = await subscriber.subscribe()
        end = due(begun)
        asked = begun.date_start + 3 * DAY
        wanted = await cancel_later(subscriber.database, subscriber.shop, begun.id, by="customer", now=asked)
        waiting = await subscriber.now(begun)
        assert waiting == wanted.subscription
        told = subscription_object(waiting)
        assert (told["status"], told["date_next"], told["date_end"], told["date_cancelled"]) == ("Active", 0, 0, 0)
        assert told["cancel_delay"] == int(end.timestamp()) - int(asked.timestamp())
        assert told["change_request"] == {
            "type": "cancel", "at": int(end.timestamp()), "package_version_id": begun.package.version_id,
            "price": "10.00", "since": int(asked.timestamp()), "requested_by": "customer",
        }  # fmt: skip
        assert await card_is_kept(subscriber, begun)
        assert await subscriber.problems() == []
        assert await subscriber.charge(end) == 0
        assert await carried_out(subscriber, end - timedelta(seconds=1)) == 0
        assert await ends_told(subscriber) == []
        assert await carried_out(subscriber, end + 2 * DAY) == 1
        assert await carried_out(subscriber, end + 2 * DAY) == 0
        ended = await subscriber.now(begun)
        assert (ended.state, ended.date_cancelled, ended.cancelled_by) == ("Cancelled", end, "customer")
        assert await ends_told(subscriber) == ["subscription_cancelled"]
        body = (await subscriber.told(but="payment"))[0]["subscription"]
        assert (body["status"], body["cancel_delay"], body["change_request"]) == ("Cancelled", 0, None)
        assert not await card_is_kept(subscriber, begun)
        assert await subscriber.charge(end + 40 * DAY) == 0
        assert len(charges()) == 1
        assert await subscriber.problems() == []

    async def test_undone_it_is_charged_on_the_day_as_before(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)
        kept = await undo(subscriber.database, subscriber.shop, begun.id, now=due(begun) - timedelta(seconds=1))
        assert kept.moved
        now = await subscriber.now(begun)
        assert msgspec.structs.replace(now, revision=begun.revision) == begun
        again = await undo(subscriber.database, subscriber.shop, begun.id, now=due(begun))
        assert not again.moved
        assert await carried_out(subscriber, due(begun)) == 0
        assert (await subscriber.charge_due(begun)).counter == 2
        assert await ends_told(subscriber) == []
        assert await subscriber.problems() == []

    async def test_at_its_end_it_is_too_late_to_undo(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)
        with pytest.raises(Conflict, match="come to its end"):
            await undo(subscriber.database, subscriber.shop, begun.id, now=due(begun))
        with pytest.raises(Conflict, match="come to its end"):
            await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=due(begun))
        await carried_out(subscriber, due(begun))
        with pytest.raises(Conflict, match="has ended"):
            await undo(subscriber.database, subscriber.shop, begun.id, now=due(begun))

    async def test_asked_twice_nothing_changes(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        first = await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)
        second = await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=due(begun) - DAY)
        assert (second.moved, second.replaced, second.subscription) == (False, None, first.subscription)

    async def test_a_preview_says_all_and_changes_nothing(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        seen = await cancel_later(
            subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start, preview=True
        )
        assert seen.subscription.change is not None
        assert seen.subscription.change.due_at == due(begun)
        assert await subscriber.now(begun) == begun
        assert await subscriber.rows("subscription_change") == []

    async def test_a_trial_ends_without_a_charge(self, subscriber: Till, charges: Charges) -> None:
        begun = await subscriber.subscribe(TRIAL)
        await cancel_later(subscriber.database, subscriber.shop, begun.id, by="customer", now=begun.date_start)
        assert (await subscriber.now(begun)).state == "Trial"
        assert await subscriber.problems() == []
        assert await subscriber.charge(due(begun)) == 0
        assert await carried_out(subscriber, due(begun)) == 1
        assert (await subscriber.now(begun)).state == "Cancelled"
        assert charges() == []
        assert await subscriber.problems() == []

    async def test_one_whose_charge_fails_has_no_period_left_and_ends_at_once(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe(MONTHLY, "4000000000000341")
        await subscriber.charge(due(begun))
        done = await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=due(begun) + DAY)
        assert done.subscription.state == "Cancelled"
        assert await ends_told(subscriber) == ["subscription_cancelled"]
        assert await subscriber.rows("subscription_change") == []
        assert await subscriber.problems() == []

    async def test_what_runs_out_by_itself_is_left_to_do_so(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe(replace(MONTHLY, limit=1))
        with pytest.raises(Conflict, match="by itself"):
            await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)

    async def test_cancelled_at_once_after_all_it_ends_once(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        await cancel_later(subscriber.database, subscriber.shop, begun.id, by="customer", now=begun.date_start)
        now = begun.date_start + DAY
        ended = await cancel(subscriber.database, subscriber.shop, begun.id, by="merchant", now=now)
        assert (ended.date_cancelled, ended.change) == (now, None)
        assert await subscriber.now(begun) == ended
        assert await carried_out(subscriber, due(begun)) == 0
        assert await ends_told(subscriber) == ["subscription_cancelled"]
        (change,) = await subscriber.rows("subscription_change")
        assert (change["state"], change["finished_at"]) == ("overtaken", now)
        assert not await card_is_kept(subscriber, begun)
        assert await subscriber.problems() == []

    async def test_another_shops_is_not_found(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        other = Shop(subscriber.shop.merchant_id, live=True)
        for wish in (undo, resume):
            with pytest.raises(NotFound):
                await wish(subscriber.database, other, begun.id, now=utc_now())

    async def test_a_card_that_is_replaced_meanwhile_is_kept_for_its_undoing(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)
        new = NewCard(
            CardDetails("5555555555554444", 12, 2040, "Ada Lovelace", "123"), "192.0.2.1", "https://pay.test/"
        )
        await replace_card(subscriber.desk, await subscriber.now(begun), None, new, now=utc_now())
        assert await card_is_kept(subscriber, begun)
        assert (await subscriber.now(begun)).date_next is None
        await undo(subscriber.database, subscriber.shop, begun.id, now=begun.date_start + DAY)
        assert (await subscriber.charge_due(begun)).counter == 2
        assert await subscriber.problems() == []


class TestPausing:
    async def test_time_that_it_is_paused_is_added_and_never_charged(self, subscriber: Till, charges: Charges) -> None:
        begun = await subscriber.subscribe()
        since, back = begun.date_start + 10 * DAY, begun.date_start + 400 * DAY
        await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=since)
        assert await card_is_kept(subscriber, begun)
        assert await subscriber.charge(back) == 0
        assert await carried_out(subscriber, back) == 0
        assert await subscriber.problems() == []
        resumed = await resume(subscriber.database, subscriber.shop, begun.id, now=back)
        assert resumed.subscription == await subscriber.now(begun)
        assert due(resumed.subscription) == due(begun) + 390 * DAY
        after = await subscriber.charge_due(begun)
        assert (after.counter, len(charges())) == (2, 2)
        assert await subscriber.problems() == []

    async def test_until_a_day_it_goes_on_by_itself_as_of_that_day(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        since = begun.date_start + DAY
        until = since + 60 * DAY
        await pause(subscriber.database, subscriber.shop, begun.id, until=until, by="customer", now=since)
        assert subscription_object(await subscriber.now(begun))["change_request"]["at"] == int(until.timestamp())
        assert await carried_out(subscriber, until - timedelta(seconds=1)) == 0
        assert await carried_out(subscriber, until + 5 * DAY) == 1
        assert due(await subscriber.now(begun)) == due(begun) + 60 * DAY
        assert await subscriber.problems() == []

    async def test_a_paused_trial_keeps_its_rest(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe(TRIAL)
        since = begun.date_start + 4 * DAY
        await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=since)
        await resume(subscriber.database, subscriber.shop, begun.id, now=since + 100 * DAY)
        now = await subscriber.now(begun)
        assert (now.state, due(now)) == ("Trial", begun.date_start + 114 * DAY)
        assert await subscriber.problems() == []

    async def test_the_last_period_that_was_agreed_is_longer_by_it(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe(replace(MONTHLY, limit=1))
        assert begun.date_end is not None
        since = begun.date_start + DAY
        await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=since)
        until = begun.date_end + DAY
        assert await expired(subscriber, until) == 0
        await resume(subscriber.database, subscriber.shop, begun.id, now=until)
        now = await subscriber.now(begun)
        assert now.date_end == begun.date_end + (until - since)
        assert await subscriber.problems() == []
        assert await expired(subscriber, now.date_end) == 1

    async def test_cancelled_while_paused_it_ends_once(self, subscriber: Till) -> None:
        await asks_for_pauses(subscriber)
        begun = await subscriber.subscribe()
        now = begun.date_start + DAY
        until = now + 10 * DAY
        await pause(subscriber.database, subscriber.shop, begun.id, until=until, by="api", now=now)
        with pytest.raises(Conflict, match="is paused"):
            await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=now)
        with pytest.raises(Conflict, match="is paused"):
            await undo(subscriber.database, subscriber.shop, begun.id, now=now)
        await cancel(subscriber.database, subscriber.shop, begun.id, by="api", now=now + DAY)
        assert await carried_out(subscriber, until) == 0
        assert await ends_told(subscriber) == ["subscription_paused", "subscription_cancelled"]
        assert subscription_object(await subscriber.now(begun))["status"] == "Cancelled"
        assert await subscriber.problems() == []

    async def test_an_account_that_did_not_ask_sees_no_new_state_and_no_new_event(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        now = begun.date_start + DAY
        await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=now)
        assert subscription_object(await subscriber.now(begun))["status"] == "Active"
        await resume(subscriber.database, subscriber.shop, begun.id, now=now + DAY)
        assert await subscriber.events() == ["payment"]

    async def test_one_that_asked_is_told_of_both_and_reads_it(self, subscriber: Till) -> None:
        await asks_for_pauses(subscriber)
        begun = await subscriber.subscribe()
        now = begun.date_start + DAY
        await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=now)
        await pause(subscriber.database, subscriber.shop, begun.id, until=now + 3 * DAY, by="api", now=now + DAY)
        assert subscription_object(await subscriber.now(begun))["status"] == "Paused"
        assert await carried_out(subscriber, now + 3 * DAY) == 1
        assert await subscriber.events() == ["payment", "subscription_paused", "subscription_resumed"]
        states = [one["subscription"]["status"] for one in await subscriber.told()]
        assert states == ["Active", "Paused", "Active"]
        assert due(await subscriber.now(begun)) == due(begun) + 3 * DAY
        assert await subscriber.problems() == []

    async def test_it_takes_the_place_of_an_end_and_says_so(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        now = begun.date_start + DAY
        ending = await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=now)
        paused = await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=now + DAY)
        assert paused.replaced == ending.subscription.change
        assert [row["state"] for row in await subscriber.rows("subscription_change")] == ["replaced", "open"]
        assert await carried_out(subscriber, due(begun)) == 0
        await resume(subscriber.database, subscriber.shop, begun.id, now=due(begun))
        assert (await subscriber.now(begun)).running
        assert await subscriber.problems() == []

    async def test_a_charge_that_fails_is_not_tried_sooner_by_pausing_and_resuming(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe(MONTHLY, "4000000000000341")
        failed_at = due(begun)
        await subscriber.charge(failed_at)
        await pause(subscriber.database, subscriber.shop, begun.id, by="customer", now=failed_at)
        await resume(subscriber.database, subscriber.shop, begun.id, now=failed_at + timedelta(minutes=1))
        assert await subscriber.charge(failed_at + timedelta(hours=6)) == 0
        assert due(await subscriber.now(begun)) == failed_at + timedelta(hours=6, minutes=1)
        assert await subscriber.problems() == []

    @pytest.mark.parametrize("days", [-1, 0, 3654])
    async def test_it_ends_within_ten_years_or_open(self, subscriber: Till, days: int) -> None:
        begun = await subscriber.subscribe()
        now = utc_now()
        with pytest.raises(Malformed):
            await pause(subscriber.database, subscriber.shop, begun.id, until=now + days * DAY, by="api", now=now)

    async def test_over_years_the_customer_has_all_days_that_were_paid(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        away, current = timedelta(), begun
        for round_ in range(12):
            at = due(current) - 5 * DAY
            nap = timedelta(days=11 + round_, hours=round_)
            await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=at)
            await resume(subscriber.database, subscriber.shop, begun.id, now=at + nap)
            away += nap
            assert due(await subscriber.now(begun)) == due(current) + nap
            current = await subscriber.charge_due(begun)
        assert current.paid_number_counter == 13
        assert await subscriber.problems() == []


class TestWhileItIsCharged:
    async def test_no_change_is_made_while_the_outcome_is_unknown(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        now = due(begun)
        await subscriber.die_after_claim(now)
        for wish in (cancel_later, pause):
            with pytest.raises(Busy, match="being charged"):
                await wish(subscriber.database, subscriber.shop, begun.id, by="api", now=now)
        await set_back.clock_runs_ahead(subscriber.database, subscriber.shop.merchant_id, now - utc_now())
        await subscriber.settle_all(minutes=70)
        await subscriber.settle_all(minutes=150)
        wanted = await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=now)
        assert wanted.moved
        assert await subscriber.charge(now + DAY) == 0

    async def test_of_a_pause_and_a_charge_at_once_one_comes_first(self, subscriber: Till, charges: Charges) -> None:
        members = [await subscriber.subscribe(order=f"club-{number}") for number in range(12)]
        late = max(due(one) for one in members)

        async def leave(one: Subscription) -> bool:
            try:
                await pause(subscriber.database, subscriber.shop, one.id, by="api", now=late)
            except Busy:
                return False
            return True

        left, *_ = await asyncio.gather(
            asyncio.gather(*(leave(one) for one in members)), subscriber.charge(late), subscriber.charge(late)
        )
        assert await subscriber.charge(late) == 0
        for one, away in zip(members, left, strict=True):
            now = await subscriber.now(one)
            assert now.paused is away
            assert now.counter == 2 or away
        assert await subscriber.problems() == []

    async def test_many_wishes_at_once_leave_one_change(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        now = begun.date_start + DAY
        wishes = (partial_wish(subscriber, begun, now, number) for number in range(8))
        await asyncio.gather(*wishes, return_exceptions=True)
        rows = await subscriber.rows("subscription_change")
        assert [row["state"] for row in rows].count("open") == 1
        assert await subscriber.problems() == []

    async def test_of_an_end_and_its_undoing_at_the_last_moment_one_comes_first(self, subscriber: Till) -> None:
        for number in range(4):
            begun = await subscriber.subscribe(order=f"club-{number}")
            await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)
            undone, _ = await asyncio.gather(
                undo(subscriber.database, subscriber.shop, begun.id, now=due(begun) - timedelta(seconds=1)),
                carried_out(subscriber, due(begun)),
                return_exceptions=True,
            )
            running = (await subscriber.now(begun)).running
            assert running is not isinstance(undone, Conflict)
        assert await subscriber.problems() == []


async def partial_wish(till: Till, one: Subscription, now: datetime, number: int) -> None:
    if number % 2:
        await cancel_later(till.database, till.shop, one.id, by="api", now=now)
    else:
        await pause(till.database, till.shop, one.id, until=now + (1 + number) * DAY, by="api", now=now)


class TestBesideCodeOfBefore:
    async def test_it_neither_charges_nor_expires_what_waits(self, subscriber: Till) -> None:
        """It writes the dates that it knows of; the schema takes them back."""
        begun = await subscriber.subscribe()
        await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)
        now, of = utc_now(), {"merchant_id": subscriber.shop.merchant_id, "id": begun.id}
        await say(subscriber.database, "subscription", of, date_next=now - DAY, date_end=now, revision=3)
        found = await subscriber.now(begun)
        assert (found.date_next, found.date_end, found.paused) == (None, None, True)
        assert await subscriber.problems() == []

    async def test_what_it_cancels_has_no_change_left(self, subscriber: Till) -> None:
        begun = await subscriber.subscribe()
        await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)
        # Its own statement, which names no change.
        await cancel(subscriber.database, subscriber.shop, begun.id, by="api", now=datetime.now(UTC))
        assert [row["state"] for row in await subscriber.rows("subscription_change")] == ["overtaken"]
        assert (await subscriber.rows("subscription"))[0]["change_id"] is None
