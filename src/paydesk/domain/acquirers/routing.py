"""Which account a payment goes to, by ordered rules; and why, for whoever tries them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.domain.acquirers.accounts import queries
from paydesk.domain.merchants.shop import Shop


@dataclass(frozen=True, slots=True)
class Order:
    """What is known of an order that is to be paid; what is not known yet is empty.

    `amount` is in the main unit of `currency`; `country` is its customer's, `brand` the card's.
    """

    shop: Shop
    reference: str
    currency: str
    amount: Decimal
    country: str = ""
    brand: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: what is empty or None fits every order, `share` of a hundred."""

    id: int
    account: str
    for_merchant_id: int | None
    currency: str
    country: str
    brand: str
    least: Decimal | None
    most: Decimal | None
    share: int


@dataclass(frozen=True, slots=True)
class Step:
    """A rule, or what stands in its place, and why the order went there or did not."""

    what: str
    account: str
    is_taken: bool
    why: str


async def list_rules(database: Database) -> list[Rule]:
    """The rules, in the order in which they are tried."""
    return await records_of(Rule, queries.rules(database))


def route(
    order: Order, rules: Sequence[Rule], serving: Sequence[str], left: Mapping[str, str] | None = None
) -> list[Step]:
    """Try the rules on an order; the last step is the one that was taken, if any was. Pure.

    `serving` are the accounts that take such a payment, in the order in which they are asked where
    no rule says anything else; those in `left` are passed over, for the reason there.
    """
    steps, left = [], left or {}
    for rule in rules:
        why = _unfit(rule, order)
        if not why and rule.account not in serving:
            why = "this account takes no such payment"
        why = why or left.get(rule.account, "")
        steps.append(Step(f"rule {rule.id}", rule.account, not why, why or "it fits"))
        if not why:
            return steps
    for account in serving:
        why = left.get(account, "")
        steps.append(Step("no rule", account, not why, why or "the first account that takes such a payment"))
        if not why:
            return steps
    return steps


def _unfit(rule: Rule, order: Order) -> str:
    """Why a rule is not for an order, empty if it is."""
    if rule.for_merchant_id not in (None, order.shop.merchant_id):
        return f"it is for merchant {rule.for_merchant_id}"
    for name, wanted, known in (
        ("currency", rule.currency, order.currency),
        ("country", rule.country, order.country),
        ("brand", rule.brand, order.brand),
    ):
        if wanted and wanted != known:
            return f"the {name} is {known or 'not known'}, not {wanted}"
    if rule.least is not None and order.amount < rule.least:
        return f"the amount is below {rule.least:f}"
    if rule.most is not None and order.amount > rule.most:
        return f"the amount is above {rule.most:f}"
    if (place := place_of(order, rule.account)) >= rule.share:
        return f"the order's place among a hundred is {place}, and the first {rule.share} go there"
    return ""


def place_of(order: Order, account: str) -> int:
    """An order's place among a hundred, from 0: the same each time; each account has its own."""
    side = "live" if order.shop.live else "test"
    named = f"{account} {order.shop.merchant_id} {side} {order.reference}"
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:8]) % 100
