"""How subscriptions, and what becomes of them, are said on the command line."""

from __future__ import annotations

import typer

from paydesk.commands.printing import shown
from paydesk.core.money import written
from paydesk.domain.billing.differences import Difference
from paydesk.domain.subscriptions.changes import NO_CARD, ChangeType
from paydesk.domain.subscriptions.changing import Changed
from paydesk.domain.subscriptions.items import Item
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_object import price_text
from paydesk.domain.subscriptions.subscription_terms import Terms


def tell_difference(changed: Changed, difference: Difference, *, preview: bool) -> None:
    """Say what the rest of the period costs more, or less, and when that is charged."""
    currency = changed.subscription.package.terms.currency
    amount = f"{written(difference.amount, currency)} {currency}"
    if difference.is_open:
        typer.echo(f"the bank has not said yet whether it takes {amount}: the plan changes once that is paid")
    elif difference.amount:
        named = f", payment {difference.payment_id}" if difference.payment_id else ""
        begins = changed.proration is not None and changed.proration.begins
        what = "the period that begins now" if begins else "the rest of the period"
        typer.echo(f"{amount} for {what} {'would be' if preview else 'is'} charged now{named}")
    elif difference.taken_up:
        taken = f"{written(difference.taken_up, currency)} {currency}"
        typer.echo(f"{taken} were charged for it before and forgotten: they count, and nothing is charged")
    elif changed.proration is not None:
        besides = written(changed.proration.amount, currency)
        typer.echo(f"its next charge has {besides} besides for the rest of the period (less than 0 is a credit)")


CHANGES = {
    ChangeType.CANCEL: "it was to end with its period",
    ChangeType.PLAN: "it was to change its plan with its next period",
    ChangeType.RESUME: "it was paused",
}


def said_of(subscription: Subscription) -> str:
    """How a subscription stands, in a sentence."""
    named, change = f"subscription {subscription.id}", subscription.change
    if not subscription.running:
        return f"{named} is {subscription.state}; nothing is charged any more"
    if change is None:
        return f"{named} is {subscription.state}, and next charged {shown(subscription.date_next)}"
    if change.by == NO_CARD:
        return f"{named} has no card, and ends {shown(change.due_at)} unless its customer gives one"
    if change.type is ChangeType.CANCEL:
        return f"{named} ends {shown(change.due_at)}; nothing is charged any more"
    if change.package is not None:
        return (
            f"{named} goes on {shown(change.due_at)} as {change.package.terms.name}, {price_of(change.package.terms)}"
        )
    if change.due_at is None:
        return f"{named} is paused until it is resumed"
    return f"{named} is paused until {shown(change.due_at)}, and next charged {shown(subscription.charged_next_at)}"


def item_facts(item: Item, currency: str) -> dict[str, object]:
    """A one-off item for scripts."""
    return {
        "id": item.id,
        "amount": price_text(item.amount, currency),
        "currency": currency,
        "description": item.description,
        "status": str(item.state),
        "payment_id": item.payment_id,
        "created_at": item.created_at,
        "taken_back_at": item.taken_back_at,
    }


def price_of(terms: Terms) -> str:
    """What a period costs, and how long one is."""
    price = price_text(terms.price, terms.currency)
    return f"{price} {terms.currency} every {terms.period.length} {terms.period.unit}"
