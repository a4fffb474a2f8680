"""What a subscription is, and what becomes of it: pure steps, each a new version of the whole.

The statements write a version only over the one that it was made from (`revision`), so what a
pingback reports is what was written, whoever else was at it at the same time.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from paydesk.core.periods import occurrence
from paydesk.domain.subscriptions.changes import NO_CARD, Change, ChangeType
from paydesk.domain.subscriptions.dunning import Dunning
from paydesk.domain.subscriptions.retry_times import RETRY_AFTER
from paydesk.domain.subscriptions.schedule import Schedule
from paydesk.domain.subscriptions.states import RUNNING, SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Package

Canceller = Literal["customer", "api", "merchant", "retries", "chargeback", "no_card"]


class Subscription(msgspec.Struct, frozen=True, gc=False):
    """One agreement to pay again and again; times are UTC, None when unset (interface.md §5.4).

    By `skipped` periods the calendar has moved on: those that were `missed`, and by how many the
    anchor was `set_back`.
    While a `change` is open, the subscription has neither a next charge nor an end of its own; one
    of its plan comes with the next charge, so that `date_next` is then.
    `tells_pauses`: its account asks to be told of pauses. `dunning` is the plan by which a failing
    charge is tried again, known where a failure is written down; None: as usual. `refused_until` is
    when one is that the acquirer refused as a request, known where it is changed or shown. Without
    a card (`has_card`) nothing is charged: it ends with its trial, if its customer gives none by
    then.
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
    has_card: bool = True
    set_back: int = 0
    refused_until: datetime | None = None

    @property
    def missed(self) -> int:
        """How many periods fell due while nothing could be charged, and were never charged."""
        return self.skipped - self.set_back

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
    def period_began_at(self) -> datetime:
        """When the last period that was paid began, or the trial; moved on by pauses."""
        trial = self.package.terms.trial
        if self.state is SubscriptionState.TRIAL and trial is not None:
            return self.date_start + (self.paid_until - occurrence(self.date_start, trial.period, 1, self.time_zone))
        number = self.next_period - 2 + self.skipped
        return occurrence(self.anchor, self.package.terms.period, number, self.time_zone)

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
    has_card: bool = True,
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
        package=dataclasses.replace(package, subscriptions_count=package.subscriptions_count + 1),
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
        has_card=has_card,
    )
    return _if_charged(replace(fresh, date_end=schedule.end() if fresh.date_next is None else None))


def _if_charged(subscription: Subscription) -> Subscription:
    """It, or where there is no card to charge: what ends when it would be charged."""
    if subscription.has_card or subscription.date_next is None:
        return subscription
    end = Change(ChangeType.CANCEL, subscription.date_next, subscription.date_start, NO_CARD)
    return replace(subscription, change=end, date_next=None)


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
    schedule, due = subscription.schedule, None
    if subscription.running:
        schedule, due = schedule.moved_on(period + 1, at=tried_at or at, charge_until=charge_until)
    goes_on = subscription.running and subscription.change is None
    due = due if goes_on else None
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
    calendar = dataclasses.replace(subscription.schedule, terms=package.terms)
    if package.terms.period != subscription.package.terms.period:
        calendar = calendar.beginning(subscription.next_period, subscription.paid_until)
    one_more = int(package.id != subscription.package.id)
    return replace(
        subscription,
        package=dataclasses.replace(package, subscriptions_count=package.subscriptions_count + one_more),
        change=None,
        **_moved(subscription, calendar),
        date_next=calendar.due(subscription.next_period),
        revision=subscription.revision + 1,
    )


def _moved(subscription: Subscription, calendar: Schedule) -> dict[str, Any]:
    """The calendar, for whom it takes the place of another one: it has missed no more by that."""
    further = calendar.skipped - subscription.skipped
    return {"anchor": calendar.anchor, "skipped": calendar.skipped, "set_back": subscription.set_back + further}


def begun_anew(subscription: Subscription, package: Package, *, at: datetime) -> Subscription:
    """It is of another package, or its trial is over, and a period begins now, which is charged at
    once: its calendar counts from here, its payments count on.
    """
    version = on_plan(subscription, package)
    calendar = version.schedule.beginning(subscription.next_period, at)
    return replace(version, **_moved(version, calendar), date_next=calendar.due(subscription.next_period))


def kept(subscription: Subscription) -> Subscription:
    """It neither ends nor changes after all: all is as it was before that was asked for."""
    due = subscription.schedule.due(subscription.next_period)
    return _if_charged(replace(subscription, change=None, date_next=due, revision=subscription.revision + 1))


def resumed(subscription: Subscription, *, at: datetime) -> Subscription:
    """It goes on with what was left of its period: its calendar has moved on by the pause.

    A charge that had failed before, or that the acquirer had refused, is not tried sooner than it
    would have been without a pause.
    """
    assert subscription.change is not None, "only what is paused is resumed"
    away = at - min(subscription.change.since, at)
    schedule = subscription.schedule.beginning(subscription.next_period, subscription.paid_until + away)
    due = schedule.due(subscription.next_period)
    over = due is None
    if due is not None and due <= at:
        due = _tried_from(subscription, at) if subscription.failures else due
        due = max(due, subscription.refused_until or due)
    gone_on = replace(
        subscription,
        change=None,
        **_moved(subscription, schedule),
        date_next=due,
        date_end=schedule.end() if over else None,
        revision=subscription.revision + 1,
    )
    return _if_charged(gone_on)


def _tried_from(subscription: Subscription, at: datetime) -> datetime:
    """When a failing charge is tried again that goes on at a moment: after the usual pause, or by
    its plan if that is later.

    It is at once if no try is left: somebody wants that, or there is another card.
    """
    plan, usual = subscription.dunning, at + RETRY_AFTER
    if subscription.paused_by_retries or (plan is not None and plan.due_at is None):
        return at
    return usual if plan is None or plan.due_at is None else max(usual, plan.due_at)


def expired(subscription: Subscription, *, at: datetime) -> Subscription:
    """The last agreed period is over."""
    return replace(
        subscription,
        state=SubscriptionState.EXPIRED,
        change=None,
        date_expired=at,
        revision=subscription.revision + 1,
    )
