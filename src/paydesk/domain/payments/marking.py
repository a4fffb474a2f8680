"""What a purchase carries at the acquirer, from the row of its intent:
by it is found what we forgot.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import msgspec

from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.domain.subscriptions.rows import OrderReport
from paydesk.domain.subscriptions.subscription_terms import Terms


class BegunAttempt(OrderReport, frozen=True):
    """An order's attempt whose intent has just been committed: a row of `begin_attempt`."""

    idempotency_key: str
    number: int
    key_tag: str
    deployment: str
    epoch: int
    was_forgotten: bool


def order_mark(row: BegunAttempt, terms: Terms | None) -> Mark:
    """The mark of an order's attempt."""
    return Mark(
        deployment=row.deployment,
        epoch=row.epoch,
        merchant=row.key_tag,
        live=row.live,
        kind=PurchaseKind.ORDER,
        order=row.merchant_order_id,
        payment_id=row.payment_id,
        attempt=row.number,
        subscription_id=row.fresh_subscription_id or 0,
        terms=digest_of(terms),
    )


def difference_mark(row: BegunAttempt, subscription_id: int, period: int) -> Mark:
    """The mark of the charge for a change of plan within a period: an order's, of a subscription
    that it does not begin.
    """
    return replace(order_mark(row, None), subscription_id=subscription_id, period=period)


def digest_of(terms: Terms | None) -> str:
    """By what terms are known to be the same; empty if nothing will be charged again."""
    if terms is None:
        return ""
    trial = (f"{terms.trial.price:.4f}", terms.trial.period) if terms.trial else None
    agreed = (terms.name, terms.sku_id, terms.currency, f"{terms.price:.4f}", terms.period, trial, terms.limit)
    return hashlib.sha256(msgspec.json.encode(agreed)).hexdigest()[:16]
