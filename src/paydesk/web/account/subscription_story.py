"""What is to come of a subscription, in one line, and what became of it until now, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from paydesk.core.periods import Period
from paydesk.domain.billing.for_customer import PastPayment
from paydesk.domain.business.subscriptions_for_team import CHARGES_AHEAD, ChargeAhead
from paydesk.domain.payments.states import PaymentState
from paydesk.domain.subscriptions.changes import NO_CARD, ChangeType
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.web.account.payment_timeline import TimelineEntry
from paydesk.web.account.subscription_words import change_words, ended_words, period_words
from paydesk.web.console.payment_words import PAYMENT_STATES
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

_OFTEN: Mapping[str, str] = {
    "day": mark("then daily"),
    "week": mark("then weekly"),
    "month": mark("then monthly"),
    "year": mark("then yearly"),
}

_ASKED: Mapping[ChangeType, str] = {
    ChangeType.CANCEL: mark("It was asked to end it with its period"),
    ChangeType.PLAN: mark("Another plan was asked for"),
    ChangeType.RESUME: mark("Paused"),
}

_SIGNS: Mapping[str, str] = {"green": "circle-check", "red": "circle-x", "yellow": "clock", "blue": "clock"}


def future_of(visit: Visit, subscription: Subscription, ahead: Sequence[ChargeAhead]) -> str:
    """What is to come of a subscription, in one line."""
    say, change = visit.texts.get, subscription.change
    if not subscription.running:
        return say("Nothing is charged any more.")
    if change is not None:
        return change_words(visit, subscription)
    if subscription.kept_open:
        return say("Nothing is charged until its customer pays what is open.")
    if not ahead:
        ends = visit.moment(subscription.date_end) if subscription.date_end else ""
        return say("All agreed payments are made; it ends on %(moment)s.") % {"moment": ends}
    first = {"amount": visit.money(ahead[0].amount, _currency(subscription)), "day": visit.day(ahead[0].at)}
    if len(ahead) == 1:
        said = say("Tried again: %(amount)s on %(day)s, the last one") if ahead[0].retry else None
        return (said or say("Last charge %(amount)s on %(day)s")) % first
    said = say("Tried again: %(amount)s on %(day)s") if ahead[0].retry else say("Next charge %(amount)s on %(day)s")
    return f"{said % first}, {_then(visit, subscription, ahead)}"


def _then(visit: Visit, subscription: Subscription, ahead: Sequence[ChargeAhead]) -> str:
    """How it goes on after the next charge, and until when, if that is agreed."""
    often = _often(visit, subscription.package.terms.period)
    amounts = {one.amount for one in ahead[1:]}
    if amounts != {ahead[0].amount}:
        often = f"{often} {visit.money(ahead[-1].amount, _currency(subscription))}"
    if len(ahead) == CHARGES_AHEAD:
        return often
    return visit.texts.get("%(often)s until %(day)s") % {"often": often, "day": visit.day(ahead[-1].at)}


def _often(visit: Visit, period: Period) -> str:
    if period.length == 1:
        return visit.texts.get(_OFTEN[period.unit])
    return visit.texts.get("then every %(period)s") % {"period": period_words(visit, period)}


def _currency(subscription: Subscription) -> str:
    return subscription.as_charged_next.package.terms.currency


def past_of(visit: Visit, subscription: Subscription, payments: Sequence[PastPayment]) -> list[TimelineEntry]:
    """What became of a subscription so far, newest first; a payment leads to its page."""
    lines = [*(_payment(visit, one) for one in payments), *_marks(visit, subscription)]
    return sorted(lines, key=lambda line: line.at, reverse=True)


def _payment(visit: Visit, one: PastPayment) -> TimelineEntry:
    name, tone = PAYMENT_STATES[PaymentState(one.state)]
    say = visit.texts.get
    period = say("Period %(number)s") % {"number": one.period} if one.period else say("Trial")
    return TimelineEntry(
        one.at,
        _SIGNS.get(tone, "receipt-refund"),
        tone,
        f"{visit.money(one.amount, one.currency)} · {say(name)}",
        period,
        f"payments/{one.id}",
    )


def _marks(visit: Visit, subscription: Subscription) -> Iterator[TimelineEntry]:
    """What is no payment: its beginning, a change that is open, its end."""
    say, change = visit.texts.get, subscription.change
    yield _mark(subscription.created_at, "player-play", "blue", say("Taken out"))
    if change is not None and change.by != NO_CARD:
        yield _mark(change.since, "calendar", "yellow", say(_ASKED[change.type]))
    ended = subscription.date_cancelled or subscription.date_expired
    if ended is not None:
        name = mark("Cancelled") if subscription.date_cancelled else mark("Completed")
        yield _mark(ended, "ban", "", say(name), say(ended_words(subscription)) if ended_words(subscription) else "")


def _mark(at: datetime, sign: str, tone: str, title: str, text: str = "") -> TimelineEntry:
    return TimelineEntry(at, sign, tone, title, text)
