"""Subscriptions without a database: any order of what may happen to one keeps what was promised."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.lengths import at_length
from tests.shopfront import MONTHLY

from paydesk.core.periods import Period
from paydesk.domain.subscriptions.failing import failed, refused, tried_at_once, undecided
from paydesk.domain.subscriptions.lifecycle import Subscription, begin, cancelled, expired, paid
from paydesk.domain.subscriptions.retry_times import MOST_RETRIES, RETRY_AFTER
from paydesk.domain.subscriptions.states import SUBSCRIPTION_TRANSITIONS, SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Package, Terms, Trial

START = datetime(2028, 1, 31, 9, 30, tzinfo=UTC)
FREE = Trial(Decimal(0), Period(14, "day"))


def started(terms: Terms = MONTHLY, at: datetime = START) -> Subscription:
    return begin(
        Package(1, 1, terms, 0),
        merchant_id=1,
        live=False,
        subscription_id=7,
        payment_id=70,
        merchant_order_id="club",
        email="ada@example.com",
        time_zone="UTC",
        at=at,
    )


def test_a_subscription_without_a_trial_is_active_and_paid_once() -> None:
    fresh = started()
    assert (fresh.state, fresh.counter, fresh.paid_number_counter, fresh.date_active) == ("Active", 1, 1, START)
    assert fresh.date_next == datetime(2028, 2, 29, 9, 30, tzinfo=UTC)


def test_the_first_regular_charge_ends_the_trial() -> None:
    trial = started(replace(MONTHLY, trial=FREE))
    assert (trial.state, trial.counter, trial.paid_number_counter, trial.date_active) == ("Trial", 0, 1, None)
    after = paid(trial, 1, at=START + timedelta(days=14))
    assert (after.state, after.counter, after.date_active) == ("Active", 1, START + timedelta(days=14))


def test_a_late_success_keeps_the_calendar() -> None:
    fresh = started()
    assert fresh.date_next is not None
    late = failed(failed(fresh, at=fresh.date_next), at=fresh.date_next + RETRY_AFTER)
    assert late.failures == 2
    after = paid(late, 2, at=fresh.date_next + 2 * RETRY_AFTER)
    assert (after.failures, after.date_next) == (0, datetime(2028, 3, 31, 9, 30, tzinfo=UTC))


def test_a_trial_that_can_never_be_charged_is_stopped() -> None:
    at = START + timedelta(days=14)
    current = started(replace(MONTHLY, trial=FREE))
    for _ in range(MOST_RETRIES):
        current = failed(current, at=at)
        assert (current.state, current.date_next) == ("Trial", at + RETRY_AFTER)
    stopped = failed(current, at=at)
    assert (stopped.state, stopped.date_stopped, stopped.date_cancelled, stopped.date_next) == (
        "Cancelled", at, at, None,
    )  # fmt: skip


def test_unknown_is_no_failure() -> None:
    current = undecided(failed(started(), at=START), at=START + timedelta(hours=7))
    assert (current.failures, current.date_next) == (1, START + timedelta(hours=7))


def test_a_charge_in_flight_stands_after_a_cancellation_and_nothing_follows() -> None:
    ended = cancelled(started(), by="api", at=START)
    after = paid(ended, 2, at=START)
    assert (after.state, after.date_next, after.paid_number_counter) == ("Cancelled", None, 2)
    assert failed(ended, at=START).date_stopped is None
    assert undecided(ended, at=START).date_next is None
    assert tried_at_once(ended, at=START).date_next is None


def test_another_card_brings_a_failing_charge_forward_and_no_other() -> None:
    assert tried_at_once(started(), at=START).date_next == started().date_next
    failing = failed(started(), at=START)
    assert tried_at_once(failing, at=START + timedelta(hours=1)).date_next == START + timedelta(hours=1)


def test_another_card_brings_a_charge_forward_that_the_acquirer_refused() -> None:
    due = started().date_next
    assert due is not None
    waiting = refused(started(), 4, at=due)
    assert (waiting.failures, waiting.date_next) == (0, due + timedelta(days=2))
    assert tried_at_once(waiting, at=due + timedelta(hours=1)).date_next == due + timedelta(hours=1)


def test_a_refused_request_after_a_cancellation_brings_nothing_back() -> None:
    ended = cancelled(started(), by="api", at=START)
    assert refused(ended, 6, at=START).date_stopped is None
    assert refused(ended, 1, at=START).date_next is None


class Life(RuleBasedStateMachine):
    """One subscription and the clock; `periods` are those that were paid, in order.

    Of a charge that is failing `tried` are the tries that were planned, `own` those that its
    customer made between them, and `planned` is when the next one is.
    """

    @initialize(
        length=st.integers(1, 3),
        unit=st.sampled_from(("day", "week", "month", "year")),
        trial=st.sampled_from((None, FREE, Trial(Decimal(30), Period(1, "month")))),
        limit=st.integers(0, 4),
    )
    def start(self, length: int, unit: str, trial: Trial | None, limit: int) -> None:
        terms = replace(MONTHLY, period=Period(length, unit), trial=trial, limit=limit)  # type: ignore[arg-type]
        self.now = START
        self.current = started(terms)
        self.before = self.current
        self.periods = [0 if trial else 1]
        self.ends = 0
        self.nothing_fails()

    def nothing_fails(self) -> None:
        self.tried = self.own = 0
        self.planned: datetime | None = None

    def move(self, after: Subscription) -> None:
        self.before, self.current = self.current, after
        assert after.revision == self.before.revision + 1
        if after.state != self.before.state:
            assert after.state in SUBSCRIPTION_TRANSITIONS[self.before.state]
            self.ends += not after.running

    def due(self) -> bool:
        return self.current.date_next is not None and self.current.date_next <= self.now

    @rule(hours=st.integers(1, 24 * 40))
    def time_passes(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @precondition(lambda self: self.current.date_next is not None)
    @rule()
    def wait_until_due(self) -> None:
        self.now = max(self.now, self.current.date_next or self.now)

    @precondition(due)
    @rule()
    def charge(self) -> None:
        self.periods.append(self.current.next_period)
        self.move(paid(self.current, self.current.next_period, at=self.now))
        assert self.current.failures == 0
        self.nothing_fails()
        expected = self.current.schedule.due(self.current.next_period)
        assert self.current.date_next == expected

    @precondition(due)
    @rule()
    def decline(self) -> None:
        self.move(failed(self.current, at=self.now))
        assert self.current.failures == self.before.failures + 1
        if self.planned is not None and self.now < self.planned:
            self.own += 1
        else:
            self.tried += 1
            self.planned = self.now + RETRY_AFTER
        if self.tried <= MOST_RETRIES:
            assert (self.current.state, self.current.date_next) == (self.before.state, self.planned)
        else:
            assert self.current.date_stopped == self.current.date_cancelled == self.now

    @precondition(due)
    @rule()
    def lose(self) -> None:
        self.move(undecided(self.current, at=self.now))
        assert (self.current.failures, self.current.date_next) == (self.before.failures, self.now)

    @precondition(due)
    @rule()
    def cancel_while_in_flight(self) -> None:
        period = self.current.next_period
        self.move(cancelled(self.current, by="customer", at=self.now))
        self.periods.append(period)
        self.move(paid(self.current, period, at=self.now))
        self.nothing_fails()

    @precondition(lambda self: self.current.running)
    @rule()
    def cancel(self) -> None:
        self.move(cancelled(self.current, by="api", at=self.now))

    @precondition(lambda self: self.current.running)
    @rule()
    def replace_card(self) -> None:
        self.move(tried_at_once(self.current, at=self.now))

    @precondition(lambda self: self.current.running and self.current.date_end is not None)
    @rule()
    def run_out(self) -> None:
        assert self.current.date_end is not None
        self.now = max(self.now, self.current.date_end)
        self.move(expired(self.current, at=self.current.date_end))

    @invariant()
    def no_period_is_skipped_or_paid_twice(self) -> None:
        first = self.periods[0]
        assert self.periods == list(range(first, self.current.next_period))

    @invariant()
    def counters_count_payments(self) -> None:
        assert self.current.paid_number_counter == len(self.periods)
        assert self.current.counter == sum(period > 0 for period in self.periods)
        assert self.current.failures == self.tried + self.own
        assert self.tried <= MOST_RETRIES + 1

    @invariant()
    def the_limit_is_kept(self) -> None:
        limit = self.current.package.terms.limit
        assert not limit or self.current.counter <= limit

    @invariant()
    def what_runs_has_a_date_and_what_ended_has_none(self) -> None:
        current = self.current
        assert current.running == (current.date_next is not None) or current.date_end is not None
        assert current.running or current.date_next is None
        assert (current.state is SubscriptionState.CANCELLED) == (current.date_cancelled is not None)
        assert (current.state is SubscriptionState.EXPIRED) == (current.date_expired is not None)
        assert self.ends == (not current.running)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=at_length(150, 25), stateful_step_count=40, deadline=None)
