"""What becomes of a subscription whose charge fails: pure steps, as in lifecycle.py."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from msgspec.structs import replace

from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.subscriptions.changes import Change, ChangeType
from paydesk.domain.subscriptions.dunning import Dunning, usual_left
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.retry_times import refused_retry_at, retry_at, unreached_retry_at
from paydesk.domain.subscriptions.states import SubscriptionState


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
    over = replace(subscription, dunning=dataclasses.replace(plan, failures=subscription.failures, due_at=None))
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
