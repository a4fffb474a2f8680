"""Why the simulated bank refuses a request as such:
pure, each function's answer is empty if it does not.
"""

from __future__ import annotations

from decimal import Decimal

from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import disputing
from paydesk.adapters.acquirers.simulator.purchase_state import Standing, Status
from paydesk.adapters.acquirers.simulator.record import Kind, Operation, Record, plain
from paydesk.adapters.acquirers.simulator.test_cards import ANY_OTHER, BY_NUMBER, CHALLENGED
from paydesk.core.wording import noted


def why_nonsense(purchase: Purchase, kind: Kind) -> str:
    """What is wrong with a request that no bank could decide, empty if nothing."""
    if not purchase.amount.is_finite() or purchase.amount < 0:
        return noted("the amount %(amount)s is not a sum of money", amount=purchase.amount)
    if kind is Kind.CHARGE and not (purchase.network_reference or purchase.stored_reference):
        return noted("a charge of a stored card must name the customer's first payment")
    sample = BY_NUMBER.get(purchase.card.number, ANY_OTHER)
    asks_customer = sample.at_checkout == CHALLENGED or purchase.stored_reference
    if kind is Kind.AUTHORIZE and asks_customer and not purchase.return_url.startswith(("https://", "http://")):
        return noted("3-D Secure needs a return_url that starts with https:// or http://")
    return ""


def why_not_money(standing: Standing, amount: Decimal, currency: str) -> str:
    """Why this is not money of the payment's kind, empty if it is."""
    if not amount.is_finite() or amount <= 0:
        return noted("%(amount)s is not an amount above 0", amount=amount)
    return (
        ""
        if currency == standing.currency
        else noted("the payment is in %(currency)s, not in %(asked)s", currency=standing.currency, asked=currency)
    )


def why_not_capture(standing: Standing, amount: Decimal) -> str:
    """Why an amount can't be captured, empty if it can."""
    if not standing.held:
        return (
            noted("nothing is held any more")
            if standing.status is Status.VOIDED
            else noted("nothing is left to capture")
        )
    if amount > standing.held:
        return noted("%(amount)s can't be captured, %(held)s is held", amount=plain(amount), held=plain(standing.held))
    return ""


def why_not_void(standing: Standing) -> str:
    """Why a purchase can't be voided, empty if it can."""
    if standing.refunded:
        return noted("the payment was refunded and can't be voided any more")
    return disputing.why_disputed(standing)


def why_not_refund(standing: Standing, amount: Decimal) -> str:
    """Why an amount can't be refunded, empty if it can."""
    disputed = disputing.why_disputed(standing)
    if disputed:
        return disputed
    if amount > standing.net:
        return noted(
            "%(amount)s can't be refunded, %(left)s is left of what was captured",
            amount=plain(amount),
            left=plain(standing.net),
        )
    return ""


def why_used(made: Operation) -> str:
    """Why a key can't be used any more that something was made with."""
    return noted("the key was used for another %(kind)s", kind=made.kind)


def why_not_kept(record: Record, purchase: Purchase) -> str:
    """Why an instrument can't be charged by its reference."""
    if not purchase.stored_reference or record.kept(purchase.stored_reference):
        return ""
    return noted("nothing is kept under this reference")
