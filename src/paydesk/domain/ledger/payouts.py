"""Payouts: an operator has sent a merchant money, and it leaves the available balance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.ledger.balances import balances
from paydesk.domain.merchants.accounts import Shop

queries = load_statements(__package__ or "", "balances.sql")

LONGEST_REFERENCE = 140


@dataclass(frozen=True, slots=True)
class Payout:
    """Money sent to a merchant's bank; `reference` is what its bank statement shows, `at` is UTC."""

    id: int
    currency: str
    amount: Decimal
    reference: str
    recorded_by: str
    at: datetime


async def record_payout(
    database: Database,
    shop: Shop,
    amount: Decimal,
    currency: str,
    *,
    reference: str,
    recorded_by: str,
    now: datetime,
) -> Payout:
    """Record that money was sent to the merchant, out of its available balance. Moves no money itself.

    `amount` is positive, in main units of `currency`; now is the shop's time, UTC.
    Raises: Malformed without a usable reference, Conflict if less is available, NotFound if there is no such merchant.
    """
    if not reference.strip() or len(reference) > LONGEST_REFERENCE or not reference.isprintable():
        raise Malformed(f"a payout needs the reference of its transfer, at most {LONGEST_REFERENCE} characters")
    async with database.acquire() as connection, connection.transaction():
        if await queries.lock_merchant(connection, merchant_id=shop.merchant_id) is None:
            raise NotFound(f"there is no merchant {shop.merchant_id}; see: paydesk merchant list")
        row = await queries.record_payout(
            connection,
            merchant_id=shop.merchant_id,
            live=shop.live,
            currency=currency,
            amount=amount,
            reference=reference.strip(),
            recorded_by=recorded_by,
            now=now,
        )
    if row is None:
        known = {balance.currency: balance.available for balance in await balances(database, shop)}
        raise Conflict(f"only {known.get(currency, Decimal(0))} {currency} are available, not {amount}")
    return _payout(row)


async def browse_payouts(database: Database, shop: Shop, page: Page) -> list[Payout]:
    """A page of the shop's payouts, newest first."""
    rows = queries.payouts(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        before_at=page.before.at,
        before_id=page.before.id,
        most=page.most,
    )
    return [_payout(row) async for row in rows]


def _payout(row: Mapping[str, Any]) -> Payout:
    return Payout(**{name: row[name] for name in Payout.__slots__})
