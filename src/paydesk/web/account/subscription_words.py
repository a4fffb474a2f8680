"""What the account calls the states of subscriptions and who ended them, and how terms read."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from paydesk.core.periods import Period
from paydesk.domain.subscriptions.changes import NO_CARD, ChangeType
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.moving import MoveState, Stays
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk.web.agreement import length_in_words
from paydesk.web.console.payment_words import SUBSCRIPTION_STATES, Badge
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

_CANCELLERS: Mapping[str, str] = {
    "customer": mark("by the customer"),
    "api": mark("by your server, through the API"),
    "merchant": mark("by your team"),
    "retries": mark("because every retry failed"),
    "chargeback": mark("because of a chargeback"),
    NO_CARD: mark("because its free trial was over and no card was given"),
}

MOVE_STATES: Mapping[MoveState, Badge] = {
    MoveState.MOVING: (mark("Under way"), "blue"),
    MoveState.MOVED: (mark("All planned"), "green"),
    MoveState.TAKING_BACK: (mark("Being taken back"), "yellow"),
    MoveState.TAKEN_BACK: (mark("Taken back"), "secondary"),
}

STAYS: Mapping[Stays, str] = {
    Stays.ENDED: mark("ended"),
    Stays.COUPON: mark("with a coupon, until it is used up"),
    Stays.CHARGING: mark("due, or being charged just now"),
    Stays.PAUSED: mark("paused"),
    Stays.CHANGING: mark("waiting for another change, or their end"),
    Stays.FAILING: mark("with a failing charge"),
    Stays.LAST_PERIOD: mark("not charged again"),
    Stays.LIMIT: mark("with as many payments as the other version has in all"),
    Stays.TOO_SLOW: mark("paid by what takes longer than its periods allow"),
}
"""Which subscriptions a move leaves alone."""

_EACH: Mapping[str, str] = {"day": mark("day"), "week": mark("week"), "month": mark("month"), "year": mark("year")}
"""How a price's period is called if it is a single one."""


def state_badge(subscription: Subscription) -> Badge:
    """A subscription's badge; one that is paused, or whose charges fail, stands out."""
    if subscription.paused:
        return mark("Paused"), "yellow"
    if subscription.running and subscription.failures:
        return mark("Payment failing"), "red"
    return SUBSCRIPTION_STATES[subscription.state]


def ended_words(subscription: Subscription) -> str:
    """Who ended a subscription, to be translated; empty if nobody did."""
    return _CANCELLERS.get(subscription.cancelled_by, "")


def change_words(visit: Visit, subscription: Subscription) -> str:
    """What is to come of a subscription, in a sentence; empty without a change."""
    change = subscription.change
    if change is None:
        return ""
    by = visit.texts.get(_CANCELLERS.get(change.by, ""))
    when = visit.moment(change.due_at) if change.due_at else ""
    if change.by == NO_CARD:
        said = visit.texts.get("It began without a card, and ends on %(moment)s unless its customer gives one.")
    elif change.type is ChangeType.CANCEL:
        said = visit.texts.get("It ends on %(moment)s, and is not charged any more: that was asked %(by)s.")
    elif change.package is not None:
        said = visit.texts.get("From %(moment)s on it is %(plan)s: that was asked %(by)s.")
        terms = change.package.terms
        return said % {"moment": when, "by": by, "plan": f"{terms.name}, {price_words(visit, terms)}"}
    elif when:
        said = visit.texts.get("Paused %(by)s until %(moment)s: nothing is charged, and nothing is owed.")
    else:
        said = visit.texts.get("Paused %(by)s until it is resumed: nothing is charged, and nothing is owed.")
    return said % {"moment": when, "by": by}


def period_words(visit: Visit, period: Period) -> str:
    """A period in the person's language: `1 month`, `14 days`."""
    return length_in_words(period, visit.texts)


def price_words(visit: Visit, terms: Terms) -> str:
    """What is paid how often: `10.00 USD / month`, `10.00 USD / 2 weeks`."""
    return sum_words(visit, terms, terms.price)


def sum_words(visit: Visit, terms: Terms, amount: Decimal) -> str:
    """What several pay together, how often."""
    return per_words(visit, amount, terms.currency, often_words(visit, terms.period))


def per_words(visit: Visit, amount: Decimal, currency: str, often: str) -> str:
    """An amount and how often it is paid: `10.00 USD / month`."""
    return visit.texts.in_line(f"{visit.money(amount, currency)} / {often}")


def often_words(visit: Visit, period: Period) -> str:
    """How often a price is paid: `month`, `2 weeks`."""
    return visit.texts.get(_EACH[period.unit]) if period.length == 1 else period_words(visit, period)
