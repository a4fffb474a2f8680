"""Setting the rules that choose an account: by operators alone, with a line in the audit log.
Moves no money.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from decimal import Decimal, InvalidOperation

import asyncpg

from paydesk.core.cards import Brand
from paydesk.core.errors import Malformed, NotFound
from paydesk.core.money import parse_currency
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.acquirers.accounts import queries
from paydesk.domain.acquirers.routing import Rule, list_rules


async def add_rule(database: Database, actor: Actor, rule: Rule, known: Collection[str], *, now: datetime) -> Rule:
    """Add a rule behind the others; its own id does not matter.

    Raises: Malformed, naming the field; NotFound without its account or merchant.
    """
    _check(rule)
    if rule.account not in known:
        raise NotFound(f'there is no account "{rule.account[:40]}" here, only {", ".join(sorted(known))}')
    try:
        async with database.acquire() as connection, connection.transaction():
            made = int(
                await queries.add_rule(
                    connection,
                    account=rule.account,
                    for_merchant_id=rule.for_merchant_id,
                    currency=rule.currency,
                    country=rule.country,
                    brand=rule.brand,
                    least=rule.least,
                    most=rule.most,
                    share=rule.share,
                    now=now,
                )
            )
            details: dict[str, object] = {"added": made, "if": in_words(rule)}
            await record(connection, actor, Action.acquirer_changed, now=now, subject=rule.account, details=details)
    except asyncpg.ForeignKeyViolationError:
        raise NotFound(f"there is no merchant {rule.for_merchant_id}") from None
    return next(one for one in await list_rules(database) if one.id == made)


async def remove_rule(database: Database, actor: Actor, rule_id: int, *, now: datetime) -> None:
    """Take a rule away; orders that were tried stay where they are. Raises: NotFound."""
    async with database.acquire() as connection, connection.transaction():
        account = await queries.remove_rule(connection, id=rule_id)
        if account is None:
            raise NotFound(f"there is no rule {rule_id}")
        details: dict[str, object] = {"removed": rule_id}
        await record(connection, actor, Action.acquirer_changed, now=now, subject=str(account), details=details)


def parse_bound(text: str, name: str) -> Decimal:
    """An amount that was typed, in main units. Raises: Malformed, naming the field."""
    try:
        amount = Decimal(text) if text.isascii() and len(text) <= 20 else Decimal("NaN")
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise Malformed(worded("%(name)s is not a number: %(text)s", name=name, text=f"{text[:20]!r}"), name)
    return amount


def in_words(rule: Rule) -> str:
    """What a rule fits, for people who look at it."""
    said = [
        f"merchant {rule.for_merchant_id}" if rule.for_merchant_id is not None else "",
        rule.currency,
        f"from {rule.country}" if rule.country else "",
        rule.brand,
        f"at least {rule.least:f}" if rule.least is not None else "",
        f"at most {rule.most:f}" if rule.most is not None else "",
        f"{rule.share} %" if rule.share < 100 else "",
    ]
    return ", ".join(one for one in said if one) or "every order"


def _check(rule: Rule) -> None:
    """Make sure that a rule may be one. Raises: Malformed, naming the field."""
    if rule.currency:
        parse_currency(rule.currency, "currency")
    if rule.country and not re.fullmatch("[A-Z]{2}", rule.country):
        raise Malformed(worded("a country is two letters, like CH"), "country")
    if rule.brand and rule.brand not in list(Brand):
        raise Malformed(worded("a brand is one of %(brand)s", brand=", ".join(Brand)), "brand")
    for name, amount in (("least", rule.least), ("most", rule.most)):
        if amount is not None and not (amount.is_finite() and Decimal(0) <= amount <= Decimal(10**12)):
            raise Malformed(worded("an amount is a number that is not negative"), name)
    if (rule.least is not None or rule.most is not None) and not rule.currency:
        raise Malformed(worded("a rule about amounts names their currency"), "currency")
    if not 1 <= rule.share <= 100:
        raise Malformed(worded("a share is from 1 to 100 per cent"), "share")
