"""No next charge of a subscription is larger than a payment may be: it could be charged, and not
be given back in part.
"""

from __future__ import annotations

from decimal import Decimal

from paydesk.core.errors import Conflict
from paydesk.core.money import LARGEST, written
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.prorating import Proration, charge_for
from paydesk.domain.subscriptions.subscription_terms import Terms


def charged_next(subscription: Subscription, balance: Decimal) -> Decimal:
    """What its next charge takes with such a balance."""
    terms = _terms(subscription)
    return charge_for(terms.price, balance, terms.currency, live=subscription.live)


def require_payable(amount: Decimal, currency: str) -> None:
    """Raises: Conflict if no payment may be as large."""
    if amount > LARGEST:
        raise Conflict(
            worded(
                "the next charge would be %(amount)s %(currency)s, and no payment is larger than %(largest)s",
                amount=written(amount, currency),
                currency=currency,
                largest=LARGEST,
            )
        )


async def require_next_payable(
    database: Database, shop: Shop, before: Subscription, after: Subscription, proration: Proration | None
) -> None:
    """Raises: Conflict if a step makes the next charge larger than a payment may be."""
    if not after.running or (proration is None and _terms(after).price <= _terms(before).price):
        return
    balance = await find_balance(database, shop, before.id)
    amount = charged_next(after, balance if proration is None else balance + proration.amount)
    if amount > charged_next(before, balance):
        require_payable(amount, _terms(after).currency)


def _terms(subscription: Subscription) -> Terms:
    return subscription.as_charged_next.package.terms
