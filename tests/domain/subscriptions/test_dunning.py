"""Dunning plans: when a charge that failed is tried again, and by which plan."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from asyncpg import RaiseError
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests import set_back
from tests.banks import ObedientBank
from tests.breaking import say
from tests.proving import check
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.core.periods import occurrence
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.subscriptions.changing import carry_out_due, pause, resume
from paydesk.domain.subscriptions.dunning import (
    LONGEST_WAIT,
    MORNING,
    PAYDAYS,
    Dunning,
    dunning_of,
    parse_delays,
    payday_from,
)
from paydesk.domain.subscriptions.ending import cancel, expire_due
from paydesk.domain.subscriptions.failing import failed, tried_at_once
from paydesk.domain.subscriptions.lifecycle import Subscription, begin
from paydesk.domain.subscriptions.subscription_terms import Package

DOCS = (Path(__file__).parents[3] / "docs" / "integrate.md").read_text()
EXAMPLES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in re.split(r"^#", DOCS.split("\n### Charges that fail\n")[1], flags=re.M)[0].splitlines()
    if re.match(r"\| (usual|\d)", line)
]
NOON = datetime(2028, 2, 2, 12, tzinfo=UTC)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def subscribed(plan: Dunning | None, zone: str = "UTC") -> Subscription:
    fresh = begin(
        Package(1, 1, MONTHLY, 0),
        merchant_id=1,
        live=False,
        subscription_id=7,
        payment_id=70,
        merchant_order_id="club",
        email="ada@example.com",
        time_zone=zone,
        at=datetime(2028, 1, 1, tzinfo=UTC),
    )
    return structs.replace(fresh, dunning=plan)


def test_the_docs_have_examples() -> None:
    assert len(EXAMPLES) == 14


@pytest.mark.parametrize(("plan", "by_reason", "zone", "failures", "then"), EXAMPLES)
def test_it_is_tried_again_as_the_docs_say(plan: str, by_reason: str, zone: str, failures: str, then: str) -> None:
    hours = None if plan == "usual" else parse_delays(plan, "plan")
    current = subscribed(dunning_of(hours, by_reason=by_reason == "yes"), zone)
    for one in failures.split(", "):
        reason, at = one.split(" ", 1)
        current = failed(current, at=moment(at), reason=reason)
    assert current.date_next == (None if then == "never" else moment(then))
    assert current.running == (then != "never")
    assert current.failures == failures.count(":")


@given(
    st.lists(st.integers(1, 144), min_size=1, max_size=10),
    st.booleans(),
    st.lists(st.sampled_from(DeclineReason), min_size=12, max_size=12),
)
def test_no_plan_is_tried_more_often_than_it_says(hours: list[int], by_reason: bool, why: list[DeclineReason]) -> None:
    current = subscribed(dunning_of(hours, by_reason=by_reason))
    at, tries = NOON, 0
    for reason in why:
        current = failed(current, at=at, reason=reason)
        if current.date_next is None:
            break
        assert timedelta(0) < current.date_next - at <= LONGEST_WAIT
        at, tries = current.date_next, tries + 1
    assert not current.running
    assert tries <= len(hours)


@pytest.mark.parametrize(
    ("typed", "hours"), [("", None), (" , ", None), ("6", (6,)), ("1d, 3d 5D".lower(), (24, 72, 120)), ("720", (720,))]
)
def test_delays_are_typed_as_hours_or_days(typed: str, hours: tuple[int, ...] | None) -> None:
    assert parse_delays(typed, "dunning_hours") == hours


@pytest.mark.parametrize("typed", ["0", "-1", "721", "31d", "1.5", "soon", "1 " * 11, "720 720 1", "٣", "9" * 300])
def test_other_delays_are_refused(typed: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_delays(typed, "dunning_hours")
    assert refused.value.fields == ("dunning_hours",)


def test_a_customers_own_try_takes_no_usual_one_away() -> None:
    current = failed(subscribed(None), at=NOON)
    for planned in (6, 12, 18):
        then = NOON + timedelta(hours=planned)
        for early in (5, 3, 1):
            current = tried_at_once(current, at=then - timedelta(hours=early))
            assert current.date_next == then - timedelta(hours=early)
            current = failed(current, at=current.date_next)
            assert current.date_next == then
        current = failed(current, at=then)
    assert (current.running, current.failures) == (False, 13)


class Failing:
    """A subscription whose charges fail, with what its bank was asked."""

    def __init__(self, club: Till, bank: ObedientBank, subscription: Subscription) -> None:
        self.club, self.bank, self.subscription = club, bank, subscription

    async def fail(self, reason: DeclineReason = DeclineReason.DECLINED) -> timedelta | None:
        """Charge it when it is due; how long it waits for the next try, None if it has stopped."""
        due = self.subscription.date_next
        assert due is not None
        self.bank.refuse = reason
        self.subscription = await self.club.charge_due(self.subscription)
        await self.agrees(due)
        return self.subscription.date_next - due if self.subscription.date_next else None

    async def pay_at(self, moment: datetime) -> None:
        """Its customer gives another card then, and it is charged."""
        tried = tried_at_once(self.subscription, at=moment)
        assert tried.date_next == moment
        await set_back.renewal_due(self.club.database, tried.id, tried.date_next)
        self.subscription = await self.club.charge_due(await self.club.now(tried))

    async def agrees(self, now: datetime) -> None:
        """No rule of the books is broken."""
        found = await check(self.club.database, now=now, merchant_id=self.club.shop.merchant_id)
        assert [(one.rule.statement, one.differences) for one in found if one.found] == []


@pytest.fixture
async def failing(subscriber: Till) -> Failing:
    bank = ObedientBank()
    club = subscriber.at(bank)
    return Failing(club, bank, await club.subscribe())


def hours(*numbers: int) -> list[timedelta | None]:
    return [timedelta(hours=one) for one in numbers] + [None]


async def planned(failing: Failing, *delays: int, by_reason: bool = False) -> None:
    await change_merchant(
        failing.club.database, failing.club.shop.merchant_id, dunning_hours=delays, dunning_by_reason=by_reason
    )


class TestOfAnAccount:
    async def test_it_is_tried_by_the_plan_and_then_stops(self, failing: Failing) -> None:
        await planned(failing, 1, 24, 240, 2, 3)
        assert [await failing.fail() for _ in range(6)] == hours(1, 24, 240, 2, 3)
        assert failing.subscription.cancelled_by == "retries"
        assert await failing.club.events() == ["payment", "subscription_stopped"]

    async def test_without_a_plan_it_is_tried_as_ever(self, failing: Failing) -> None:
        await planned(failing, 1)
        await planned(failing)
        assert [await failing.fail() for _ in range(4)] == hours(6, 6, 6)

    @pytest.mark.parametrize("reason", [DeclineReason.STOLEN_CARD, DeclineReason.CLOSED_ACCOUNT])
    @pytest.mark.parametrize("by_reason", [True, False])
    async def test_a_stolen_or_closed_card_is_not_put_to_the_bank_again(
        self, failing: Failing, reason: DeclineReason, by_reason: bool
    ) -> None:
        await planned(failing, 24, 72, by_reason=by_reason)
        asked = len(failing.bank.asked)
        tries = hours(96) if by_reason else hours(24, 72)
        assert [await failing.fail(reason) for _ in tries] == tries
        assert len(failing.bank.asked) == asked + 1

    async def test_another_card_is_charged_in_place_of_a_stolen_one(self, failing: Failing) -> None:
        await planned(failing, 24, 72, by_reason=True)
        await failing.fail(DeclineReason.STOLEN_CARD)
        assert failing.subscription.date_next is not None
        await set_back.card_replaced(failing.club.desk, failing.subscription)
        failing.bank.refuse = None
        await failing.pay_at(failing.subscription.date_next - timedelta(hours=90))
        assert (failing.subscription.failures, failing.subscription.paid_number_counter) == (0, 2)

    async def test_insufficient_funds_wait_for_a_payday(self, failing: Failing) -> None:
        await planned(failing, 24, 24, by_reason=True)
        for _ in range(2):
            failed_at = failing.subscription.date_next
            await failing.fail(DeclineReason.INSUFFICIENT_FUNDS)
            then = failing.subscription.date_next
            assert failed_at is not None
            assert then == payday_from(failed_at + timedelta(hours=24), failing.subscription.time_zone)
            assert (then.day in PAYDAYS, then.hour) == (True, MORNING)

    async def test_an_expired_card_is_tried_once_when_all_delays_are_over(self, failing: Failing) -> None:
        await planned(failing, 24, 72, by_reason=True)
        asked = len(failing.bank.asked)
        assert [await failing.fail(DeclineReason.EXPIRED_CARD) for _ in range(2)] == hours(96)
        assert len(failing.bank.asked) == asked + 2

    async def test_a_change_disturbs_nothing_that_is_failing(self, failing: Failing) -> None:
        await planned(failing, 10, 20)
        first = await failing.fail()
        await planned(failing, 1, 1, 1, 1)
        assert [first, await failing.fail(), await failing.fail()] == hours(10, 20)

    async def test_what_fails_as_usual_goes_on_so(self, failing: Failing) -> None:
        first = await failing.fail()
        await planned(failing, 1, by_reason=True)
        assert [first, *[await failing.fail() for _ in range(3)]] == hours(6, 6, 6)

    async def test_after_a_success_the_newest_plan_holds(self, failing: Failing) -> None:
        await planned(failing, 10, 20)
        assert await failing.fail() == timedelta(hours=10)
        failing.bank.refuse = None
        failing.subscription = await failing.club.charge_due(failing.subscription)
        assert (failing.subscription.failures, failing.subscription.paid_number_counter) == (0, 2)
        await planned(failing, 2)
        assert [await failing.fail() for _ in range(2)] == hours(2)

    async def test_a_customers_own_try_takes_none_away(self, failing: Failing) -> None:
        await planned(failing, 48, 24)
        assert await failing.fail() == timedelta(hours=48)
        then = failing.subscription.date_next
        assert then is not None
        early = tried_at_once(failing.subscription, at=then - timedelta(hours=40))
        await set_back.renewal_due(failing.club.database, early.id, early.date_next)
        failing.subscription = await failing.club.now(failing.subscription)
        assert await failing.fail() == timedelta(hours=40)
        assert failing.subscription.date_next == then
        assert [await failing.fail() for _ in range(2)] == hours(24)

    async def test_code_that_knows_no_plans_records_no_failure_of_one(self, failing: Failing) -> None:
        await planned(failing, 48, 24)
        as_before = (
            "update subscription set failures = failures + 1, date_next = date_next + interval '6 hours' where id = $1"
        )
        for _ in range(2):
            with pytest.raises(RaiseError, match="by a plan that this code does not know"):
                await failing.club.database.execute(as_before, failing.subscription.id)
            await failing.fail()
        await planned(failing)
        with pytest.raises(RaiseError, match="by a plan that this code does not know"):
            await failing.club.database.execute(as_before, failing.subscription.id)

    @pytest.mark.parametrize(("delays", "failures"), [((72,), 1), ((1, 1, 1, 1, 240, 240), 5)])
    async def test_pausing_and_resuming_brings_no_try_forward(
        self, failing: Failing, delays: tuple[int, ...], failures: int
    ) -> None:
        await planned(failing, *delays)
        for _ in range(failures):
            await failing.fail()
        club, then = failing.club, failing.subscription.date_next
        assert then is not None
        begun = then - timedelta(hours=60)
        named = (club.database, club.shop, failing.subscription.id)
        for until in (None, begun + timedelta(hours=1)):
            await pause(*named, until=until, by="customer", now=begun)
            if until is None:
                await resume(*named, now=begun)
            else:
                assert (await club.now(failing.subscription)).charged_next_at == then
                merchant_id = club.shop.merchant_id
                await carry_out_due(club.database, real_now=utc_now(), merchant_id=merchant_id, at=until)
            assert (await club.now(failing.subscription)).date_next == then
        assert await failing.fail() == (timedelta(hours=240) if failures == 5 else None)

    async def test_paused_beyond_its_day_it_is_tried_after_the_usual_pause(self, failing: Failing) -> None:
        await planned(failing, 72)
        await failing.fail()
        club, then = failing.club, failing.subscription.date_next
        assert then is not None
        named = (club.database, club.shop, failing.subscription.id)
        await pause(*named, by="customer", now=then - timedelta(hours=1))
        await resume(*named, now=then)
        failing.subscription = await club.now(failing.subscription)
        assert failing.subscription.date_next == then + timedelta(hours=6)
        assert await failing.fail() is None


class TestKeptOpen:
    """Of an account that wants nobody stopped after the last try."""

    @pytest.fixture
    async def failing(self, failing: Failing) -> Failing:
        await keeping(failing)
        assert [await failing.fail() for _ in range(4)] == hours(6, 6, 6)
        return failing

    async def test_it_stays_and_is_charged_nothing_by_itself(self, failing: Failing) -> None:
        kept = failing.subscription
        assert (kept.running, kept.kept_open, kept.date_end, kept.failures) == (True, True, None, 4)
        asked = len(failing.bank.asked)
        failing.bank.refuse = None
        years_later = NOON + timedelta(days=900)
        merchant_id = failing.club.shop.merchant_id
        assert await failing.club.charge(years_later) == 0
        assert await expire_due(failing.club.database, real_now=NOON, merchant_id=merchant_id, at=years_later) == 0
        assert len(failing.bank.asked) == asked
        assert await failing.club.events() == ["payment"]

    async def test_another_card_pays_what_is_open_once_and_it_goes_on_by_its_calendar(self, failing: Failing) -> None:
        failing.bank.refuse = None
        before = failing.subscription
        months_later = before.paid_until + timedelta(days=100)
        await failing.pay_at(months_later)
        after = failing.subscription
        assert (after.failures, after.next_period, after.paid_number_counter) == (0, before.next_period + 1, 2)
        assert after.date_next is not None
        assert after.date_next > months_later
        assert after.date_next == after.schedule.due(after.next_period)
        assert await failing.club.events() == ["payment", "payment"]
        await failing.agrees(months_later)

    async def test_a_card_that_fails_too_leaves_it_open(self, failing: Failing) -> None:
        for failures in (5, 6):
            await failing.pay_at(failing.subscription.paid_until + timedelta(days=failures))
            assert (failing.subscription.kept_open, failing.subscription.failures) == (True, failures)
        assert await failing.club.events() == ["payment"]

    async def test_it_may_still_be_cancelled(self, failing: Failing) -> None:
        club = failing.club
        ended = await cancel(club.database, club.shop, failing.subscription.id, by="customer", now=utc_now())
        assert not ended.running
        assert await club.events() == ["payment", "subscription_cancelled"]
        await failing.agrees(utc_now())

    async def test_its_card_keeps_its_number_until_it_ends(self, failing: Failing) -> None:
        sealed = "select count(*) from card where merchant_id = $1 and number_sealed is not null"
        club = failing.club
        assert await club.database.fetchval(sealed, club.shop.merchant_id) == 1
        await cancel(club.database, club.shop, failing.subscription.id, by="customer", now=utc_now())
        assert await club.database.fetchval(sealed, club.shop.merchant_id) == 0

    async def test_a_change_of_the_account_stops_none_that_is_open(self, failing: Failing) -> None:
        await keeping(failing, DunningEnd.CANCEL)
        await failing.pay_at(failing.subscription.paid_until + timedelta(days=9))
        assert failing.subscription.kept_open


class TestPaused:
    """Of an account that wants everybody paused after the last try."""

    @pytest.fixture
    async def failing(self, failing: Failing) -> Failing:
        club = failing.club
        await keeping(failing, DunningEnd.PAUSE)
        await say(club.database, "merchant", {"id": club.shop.merchant_id}, extra_events=["subscription_paused"])
        assert [await failing.fail() for _ in range(4)] == hours(6, 6, 6)
        return failing

    async def resume(self, failing: Failing, at: datetime) -> None:
        club = failing.club
        await resume(club.database, club.shop, failing.subscription.id, now=at)
        failing.subscription = await club.now(failing.subscription)

    async def test_it_is_paused_and_charged_nothing_by_itself(self, failing: Failing) -> None:
        paused = failing.subscription
        assert (paused.running, paused.paused_by_retries, paused.kept_open, paused.failures) == (True, True, False, 4)
        assert await failing.club.events() == ["payment", "subscription_paused"]
        years_later, merchant_id = NOON + timedelta(days=900), failing.club.shop.merchant_id
        database = failing.club.database
        assert await failing.club.charge(years_later) == 0
        assert await carry_out_due(database, real_now=NOON, merchant_id=merchant_id, at=years_later) == 0
        assert await expire_due(database, real_now=NOON, merchant_id=merchant_id, at=years_later) == 0

    async def test_it_is_charged_once_it_is_resumed_and_the_pause_is_added(self, failing: Failing) -> None:
        paused = failing.subscription
        assert paused.change is not None
        later = paused.change.since + timedelta(days=100)
        await self.resume(failing, later)
        assert failing.subscription.date_next == later
        failing.bank.refuse = None
        failing.subscription = await failing.club.charge_due(failing.subscription)
        after = failing.subscription
        assert (after.failures, after.next_period, after.paused) == (0, paused.next_period + 1, False)
        again = occurrence(paused.paid_until + timedelta(days=100), MONTHLY.period, 1, "UTC")
        assert after.date_next == again
        assert await failing.club.events() == ["payment", "subscription_paused", "subscription_resumed", "payment"]
        await failing.agrees(later)

    async def test_a_card_that_fails_then_pauses_it_again(self, failing: Failing) -> None:
        for failures in (5, 6):
            await self.resume(failing, failing.subscription.paid_until + timedelta(days=failures * 10))
            assert await failing.fail() is None
            assert (failing.subscription.paused_by_retries, failing.subscription.failures) == (True, failures)

    async def test_cancelled_while_paused_it_ends_once(self, failing: Failing) -> None:
        club = failing.club
        for _ in range(2):
            await cancel(club.database, club.shop, failing.subscription.id, by="customer", now=utc_now())
        assert await club.events() == ["payment", "subscription_paused", "subscription_cancelled"]
        await failing.agrees(utc_now())

    async def test_nobody_is_told_who_has_not_asked_for_it(self, subscriber: Till) -> None:
        bank = ObedientBank()
        club = subscriber.at(bank)
        other = Failing(club, bank, await club.subscribe())
        await keeping(other, DunningEnd.PAUSE)
        assert [await other.fail() for _ in range(4)] == hours(6, 6, 6)
        assert other.subscription.paused_by_retries
        assert await club.events() == ["payment"]


async def keeping(failing: Failing, end: DunningEnd = DunningEnd.KEEP_OPEN) -> None:
    await change_merchant(failing.club.database, failing.club.shop.merchant_id, dunning_end=end)


async def test_code_that_knows_no_ends_stops_nothing_that_is_to_stay(failing: Failing) -> None:
    as_before = """
        update subscription
           set failures = failures + 1, date_next = date_next + interval '6 hours',
               dunning = jsonb_build_object('left', '[]'::jsonb, 'tries', 3, 'failures', failures + 1)
         where id = $1
        """
    await keeping(failing)
    for _ in range(2):
        with pytest.raises(RaiseError, match="by a plan that this code does not know"):
            await failing.club.database.execute(as_before, failing.subscription.id)
        await failing.fail()
