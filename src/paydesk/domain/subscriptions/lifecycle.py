"""What a subscription is, and what becomes of it: pure steps, each a new version of the whole.

The statements write a version only over the one that it was made from (`revision`), so what a
pingback reports is what was written, whoever else was at it at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from paydesk.core.periods import occurrence
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.subscriptions.changes import Change, ChangeType
from paydesk.domain.subscriptions.dunning import Dunning, usual_left
from paydesk.domain.subscriptions.retry_times import refused_retry_at, retry_at, unreached_retry_at
from paydesk.domain.subscriptions.schedule import Schedule
from paydesk.domain.subscriptions.states import RUNNING, SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Package

Canceller = Literal["customer", "api", "merchant", "retries", "chargeback"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """One agreement to pay again and again; times are UTC, None when unset (interface.md §5.4).

    `skipped` is how many periods fell due while nothing could be charged, and were never charged.
    While a `change` is open, the subscription has neither a next charge nor an end of its own; one
    of its plan comes with the next charge, so that `date_next` is then.
    `tells_pauses`: its account asks to be told of pauses. `dunning` is the plan by which a failing
    charge is tried again, known where a failure is written down; None: as usual.
    """

    merchant_id: int
    live: bool
    id: int
    state: SubscriptionState
    package: Package
    init_payment_id: int
    init_merchant_order_id: str
    email: str
    time_zone: str
    anchor: datetime
    next_period: int
    date_next: datetime | None
    date_start: datetime
    created_at: datetime
    failures: int = 0
    counter: int = 0
    paid_number_counter: int = 0
    date_active: datetime | None = None
    date_paid: datetime | None = None
    date_end: datetime | None = None
    date_expired: datetime | None = None
    date_cancelled: datetime | None = None
    date_stopped: datetime | None = None
    cancelled_by: str = ""
    revision: int = 1
    skipped: int = 0
    change: Change | None = None
    tells_pauses: bool = False
    dunning: Dunning | None = None

    @property
    def running(self) -> bool:
        """Whether it may still be charged, or runs out its last period."""
        return self.state in RUNNING

    @property
    def schedule(self) -> Schedule:
        """Its calendar."""
        return Schedule(self.package.terms, self.anchor, self.time_zone, self.skipped)

    @property
    def paid_until(self) -> datetime:
        """When the last period that was paid is over, or the trial if none was."""
        return occurrence(self.anchor, self.package.terms.period, self.next_period - 1 + self.skipped, self.time_zone)

    @property
    def charged_next_at(self) -> datetime | None:
        """When it is charged next: of a pause with an end by the calendar after that;
        None if that is not known, or never.
        """
        change = self.change
        if self.paused and change is not None and change.due_at is not None:
            return resumed(self, at=change.due_at).date_next
        return self.date_next

    @property
    def as_charged_next(self) -> Subscription:
        """It as the next charge finds it: on another plan, if that is to come."""
        package = self.change.package if self.change is not None else None
        return self if package is None else on_plan(self, package)

    @property
    def kept_open(self) -> bool:
        """Whether its charge failed at every try, and waits for its customer."""
        return self.running and self.failures > 0 and self.date_next is None and self.change is None

    @property
    def paused(self) -> bool:
        """Whether nothing is charged, and nothing is owed to the customer, until it is resumed."""
        return self.running and self.change is not None and self.change.type is ChangeType.RESUME

    @property
    def paused_by_retries(self) -> bool:
        """Whether it is paused because its charge failed at every try, until its customer pays."""
        return self.paused and self.change is not None and self.change.by == "retries"


def begin(
    package: Package,
    *,
    merchant_id: int,
    live: bool,
    subscription_id: int,
    payment_id: int,
    merchant_order_id: str,
    email: str,
    time_zone: str,
    at: datetime,
) -> Subscription:
    """A subscription whose first payment was just approved;
    without a trial that payment is for period 1.
    """
    schedule = Schedule.starting(package.terms, at, time_zone)
    trial = package.terms.trial is not None
    fresh = Subscription(
        merchant_id=merchant_id,
        live=live,
        id=subscription_id,
        state=SubscriptionState.TRIAL if trial else SubscriptionState.ACTIVE,
        package=replace(package, subscriptions_count=package.subscriptions_count + 1),
        init_payment_id=payment_id,
        init_merchant_order_id=merchant_order_id,
        email=email,
        time_zone=time_zone,
        anchor=schedule.anchor,
        next_period=schedule.first_renewal,
        date_next=schedule.due(schedule.first_renewal),
        date_start=at,
        created_at=at,
        counter=0 if trial else 1,
        paid_number_counter=1,
        date_active=None if trial else at,
        date_paid=at,
    )
    return replace(fresh, date_end=schedule.end() if fresh.date_next is None else None)


def paid(
    subscription: Subscription,
    period: int,
    *,
    at: datetime,
    tried_at: datetime | None = None,
    charge_until: datetime | None = None,
) -> Subscription:
    """A charge for a period succeeded. One that ended meanwhile stays ended,
    but the payment counts.

    Periods that had fallen due when it was tried, while nothing could be charged, are skipped:
    nobody pays for several at once, unless an operator wanted all that fell due until
    `charge_until`. The number of payments agreed stays, the end moves. `tried_at` is when the
    intent was committed, if the bank's answer is heard of later. `at` may be a little earlier than
    the payment before: the clocks of two machines differ.
    """
    schedule = subscription.schedule
    if subscription.running:
        schedule = schedule.moved_on(period + 1, at=tried_at or at, charge_until=charge_until)
    goes_on = subscription.running and subscription.change is None
    due = schedule.due(period + 1) if goes_on else None
    over = goes_on and due is None
    return replace(
        subscription,
        state=SubscriptionState.ACTIVE if subscription.running else subscription.state,
        date_next=due,
        date_end=schedule.end() if over else subscription.date_end,
        skipped=schedule.skipped,
        failures=0,
        dunning=None,
        counter=subscription.counter + 1,
        paid_number_counter=subscription.paid_number_counter + 1,
        next_period=period + 1,
        date_paid=max(subscription.date_paid or at, at),
        date_active=subscription.date_active or at,
        revision=subscription.revision + 1,
    )


def failed(subscription: Subscription, *, at: datetime, reason: str = "") -> Subscription:
    """A charge was declined: it is tried again, by its account's plan if there is one, in the end
    everything stops (interface.md §7.2), or stays open by that plan.
    """
    failures = subscription.failures + 1
    counted = replace(subscription, failures=failures, revision=subscription.revision + 1)
    if not subscription.running:
        return replace(counted, dunning=None)
    if subscription.dunning is not None:
        return _dunned(counted, subscription.dunning, reason, at=at)
    again = retry_at(at, failures)
    return _tried_again(counted, again) if again is not None else _stopped(counted, at=at)


def _dunned(subscription: Subscription, plan: Dunning, reason: str, *, at: datetime) -> Subscription:
    """A charge failed that is tried again by a plan."""
    left = plan.after(reason, at=at, time_zone=subscription.time_zone)
    if left is not None and left.due_at is not None:
        return _tried_again(replace(subscription, dunning=left), left.due_at)
    over = replace(subscription, dunning=replace(plan, failures=subscription.failures, due_at=None))
    if plan.end is DunningEnd.PAUSE and over.change is None:
        return replace(over, change=Change(ChangeType.RESUME, None, at, "retries"), date_next=None)
    return _stopped(over, at=at) if plan.end is DunningEnd.CANCEL else _kept_open(over)


def refused(subscription: Subscription, refusals: int, *, at: datetime) -> Subscription:
    """The acquirer refused to ask the bank, as often for this period:
    tried again ever later, then everything stops.

    The card's own failures are not counted up: it was not tried.
    """
    counted = replace(subscription, revision=subscription.revision + 1)
    if not subscription.running:
        return counted
    again = refused_retry_at(at, refusals)
    return _tried_again(counted, again) if again is not None else _stopped(counted, at=at)


def _tried_again(subscription: Subscription, at: datetime) -> Subscription:
    """A charge is due again, unless a change that is open has the next date."""
    return replace(subscription, date_next=at if subscription.change is None else None)


def _kept_open(subscription: Subscription) -> Subscription:
    """Nothing is tried by itself any more, and its customer may still pay what is open."""
    return replace(subscription, date_next=None)


def _stopped(subscription: Subscription, *, at: datetime) -> Subscription:
    """Nothing is tried any more."""
    return replace(
        subscription,
        state=SubscriptionState.CANCELLED,
        change=None,
        date_next=None,
        date_stopped=at,
        date_cancelled=at,
        cancelled_by="retries",
    )


def undecided(subscription: Subscription, *, at: datetime, before: int = 0) -> Subscription:
    """A charge never reached the bank: no failure, it is due again at once,
    and later if that happened `before`.

    What keeps it from being sent (a key of the vault that is missing, an acquirer that can't be
    called) may last.
    """
    goes_on = subscription.running and subscription.change is None
    again = unreached_retry_at(at, before) if goes_on else None
    return replace(subscription, date_next=again, revision=subscription.revision + 1)


def cancelled(subscription: Subscription, *, by: Canceller, at: datetime) -> Subscription:
    """Nothing is charged any more; what is in flight stands if the bank approves it."""
    return replace(
        subscription,
        state=SubscriptionState.CANCELLED,
        change=None,
        date_next=None,
        date_cancelled=at,
        cancelled_by=by,
        revision=subscription.revision + 1,
    )


def ending_later(subscription: Subscription, *, by: Canceller, at: datetime) -> Subscription:
    """It is not charged any more and ends with the period that is paid;
    at once, if that is over and its charge still to come.
    """
    until = subscription.paid_until
    if until <= at:
        return cancelled(subscription, by=by, at=at)
    return _waiting(subscription, Change(ChangeType.CANCEL, until, at, by))


def paused(subscription: Subscription, *, until: datetime | None, by: Canceller, at: datetime) -> Subscription:
    """Nothing is charged until it is resumed. A pause that gets another end has begun before."""
    since = subscription.change.since if subscription.change and subscription.paused else at
    return _waiting(subscription, Change(ChangeType.RESUME, until, since, by))


def _waiting(subscription: Subscription, change: Change) -> Subscription:
    """The change has the next date, and the subscription none of its own."""
    revision = subscription.revision + 1
    return replace(subscription, change=change, date_next=None, date_end=None, revision=revision)


def changing_plan(subscription: Subscription, package: Package, *, by: Canceller, at: datetime) -> Subscription:
    """It goes on as another package once the period is over that is paid, or the trial."""
    then = on_plan(subscription, package).date_next
    change = Change(ChangeType.PLAN, then, at, by, package)
    return replace(_waiting(subscription, change), date_next=then)


def on_plan(subscription: Subscription, package: Package) -> Subscription:
    """It is charged for its next period by the terms of another package.

    Periods of the same length go on by the same calendar; of another length they are counted from
    the end of the one that is paid. Its payments count on, and the trial that it had stays its own.
    """
    calendar = replace(subscription.schedule, terms=package.terms)
    if package.terms.period != subscription.package.terms.period:
        calendar = calendar.beginning(subscription.next_period, subscription.paid_until)
    one_more = int(package.id != subscription.package.id)
    return replace(
        subscription,
        package=replace(package, subscriptions_count=package.subscriptions_count + one_more),
        change=None,
        anchor=calendar.anchor,
        skipped=calendar.skipped,
        date_next=calendar.due(subscription.next_period),
        revision=subscription.revision + 1,
    )


def kept(subscription: Subscription) -> Subscription:
    """It neither ends nor changes after all: all is as it was before that was asked for."""
    due = subscription.schedule.due(subscription.next_period)
    return replace(subscription, change=None, date_next=due, revision=subscription.revision + 1)


def resumed(subscription: Subscription, *, at: datetime) -> Subscription:
    """It goes on with what was left of its period: its calendar has moved on by the pause.

    A charge that had failed before is not tried sooner than it would have been without a pause,
    and one that failed at every try at once: somebody wants that, or there is another card.
    """
    assert subscription.change is not None, "only what is paused is resumed"
    away = at - min(subscription.change.since, at)
    schedule = subscription.schedule.beginning(subscription.next_period, subscription.paid_until + away)
    due = schedule.due(subscription.next_period)
    over = due is None
    if due is not None and subscription.failures and due <= at:
        due = at if subscription.paused_by_retries else retry_at(at, subscription.failures) or at
    return replace(
        subscription,
        change=None,
        anchor=schedule.anchor,
        skipped=schedule.skipped,
        date_next=due,
        date_end=schedule.end() if over else None,
        revision=subscription.revision + 1,
    )


def expired(subscription: Subscription, *, at: datetime) -> Subscription:
    """The last agreed period is over."""
    return replace(
        subscription,
        state=SubscriptionState.EXPIRED,
        change=None,
        date_expired=at,
        revision=subscription.revision + 1,
    )


def tried_at_once(subscription: Subscription, *, at: datetime) -> Subscription:
    """The customer gave another card: a charge that is failing is tried with it now,
    everything else stays; the tries that were planned are still to come if this one fails, too.
    """
    goes_on = subscription.running and subscription.change is None
    if not goes_on or not _is_overdue(subscription, at):
        return replace(subscription, revision=subscription.revision + 1)
    plan = subscription.dunning or usual_left(subscription.failures, subscription.date_next)
    return replace(subscription, date_next=at, dunning=plan, revision=subscription.revision + 1)


def _is_overdue(subscription: Subscription, at: datetime) -> bool:
    """Whether the next charge failed, or the acquirer refused it:
    it should have been made by the calendar.
    """
    due = subscription.schedule.due(subscription.next_period)
    return subscription.failures > 0 or (due is not None and due <= at)
