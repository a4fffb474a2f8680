"""A subscription as pingbacks and answers show it, field by field (interface.md §5.4, §5.5)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from paydesk.core.money import minor_digits
from paydesk.domain.subscriptions.changes import Change, ChangeType
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Package, Terms

PAUSED = "Paused"
"""The `status` of a paused subscription, for accounts that ask to be told of pauses."""

BY_CARD = 1
"""The `billing_type` of subscriptions that are charged to a stored card."""


def subscription_object(subscription: Subscription, *, with_init: bool = False) -> dict[str, Any]:
    """The subscription object; `with_init` adds `init_merchant_order_id`,
    which only `payment` events carry.
    """
    terms = subscription.package.terms
    trial = terms.trial
    body: dict[str, object] = {
        "id": subscription.id,
        "u_email": subscription.email,
        "recurring_id": subscription.init_payment_id,
        "status": PAUSED if subscription.paused and subscription.tells_pauses else str(subscription.state),
        "cancel_delay": _cancel_delay(subscription.change),
        "currency_code": terms.currency,
        "trial": 1 if trial else 0,
        "trial_price": price_text(trial.price if trial else Decimal(0), terms.currency),
        "trial_period_length": trial.period.length if trial else 0,
        "trial_period_type": trial.period.unit if trial else "day",
        "counter": subscription.counter,
        "limit": terms.limit,
        "failures": subscription.failures,
        "period_length": terms.period.length,
        "period_type": terms.period.unit,
        "billing_type": BY_CARD,
        "price": price_text(terms.list_price, terms.currency),
        "date_active": _seconds(subscription.date_active),
        "date_start": _seconds(subscription.date_start),
        "date_next": _seconds(subscription.date_next),
        "date_end": _seconds(subscription.date_end),
        "date_paid": _seconds(subscription.date_paid),
        "date_expired": _seconds(subscription.date_expired),
        "date_cancelled": _seconds(subscription.date_cancelled),
        "date_stopped": _seconds(subscription.date_stopped),
        "created_at": _seconds(subscription.created_at),
        "package_version_id": subscription.package.version_id,
        "change_request": change_object(subscription, subscription.change),
        "package": package_object(subscription.package),
        "paid_number_counter": subscription.paid_number_counter,
    }
    body |= _of_several(terms)
    if with_init:
        body["init_merchant_order_id"] = subscription.init_merchant_order_id
    return body


def change_object(subscription: Subscription, change: Change | None) -> dict[str, object] | None:
    """A change that is to come, as `change_request` shows it; None without one."""
    if change is None:
        return None
    package = change.package or subscription.package
    terms = package.terms
    shown = {
        "type": str(change.type),
        "at": _seconds(change.due_at),
        "package_version_id": package.version_id,
        "price": price_text(terms.list_price, terms.currency),
        "since": _seconds(change.since),
        "requested_by": change.by,
    }
    if change.package is not None:
        shown |= _of_several(terms)
    return shown if change.package is None else shown | {"package": package_object(package)}


def _of_several(terms: Terms) -> dict[str, object]:
    """What one of several shows besides; nothing of one, so that it is told as ever."""
    if terms.quantity == 1:
        return {}
    return {"quantity": terms.quantity, "unit_price": price_text(terms.unit_price, terms.currency)}


def _cancel_delay(change: Change | None) -> int:
    """How many seconds after it was asked for a cancellation comes; 0 without one."""
    if change is None or change.due_at is None or change.type is not ChangeType.CANCEL:
        return 0
    return _seconds(change.due_at) - _seconds(change.since)


def package_object(package: Package) -> dict[str, Any]:
    """The package object."""
    terms, trial = package.terms, package.terms.trial
    return {
        "id": package.id,
        "sku_id": terms.sku_id,
        "name": terms.name,
        "currency_code": terms.currency,
        "period_length": terms.period.length,
        "period_type": terms.period.unit,
        "recurring_limit": terms.limit,
        "trial": 1 if trial else 0,
        "trial_price": price_text(trial.price if trial else Decimal(0), terms.currency),
        "trial_period_length": trial.period.length if trial else 0,
        "trial_period_type": trial.period.unit if trial else "day",
        "price": price_text(terms.list_price, terms.currency),
        "discount_price": None if terms.discount is None else price_text(terms.price, terms.currency),
        "active": 1,
        "subscriptions_count": package.subscriptions_count,
    }


@lru_cache(maxsize=4096)
def price_text(amount: Decimal, currency: str) -> str:
    """A price as a decimal string with its currency's digits: `10.00`."""
    return f"{amount:.{minor_digits(currency)}f}"


def _seconds(at: datetime | None) -> int:
    """A Unix timestamp in seconds, 0 when unset."""
    return int(at.timestamp()) if at is not None else 0
