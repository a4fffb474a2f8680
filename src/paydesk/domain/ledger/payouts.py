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
    Raises: Malformed without a usable reference, Conflict if less is available or the merchant is suspended (its test
        side goes on), NotFound if there is no such merchant.
    """
    async with database.acquire() as connection, connection.transaction():
        payout, _ = await record_payout_on(
            connection, shop, amount, currency, reference=reference, recorded_by=recorded_by, now=now
        )
    return payout


async def record_payout_on(
    connection: Any,
    shop: Shop,
    amount: Decimal,
    currency: str,
    *,
    reference: str,
    recorded_by: str,
    now: datetime,
    request_key: str | None = None,
) -> tuple[Payout, bool]:
    """The same within a transaction of the caller's; returns the payout, and whether it is new. Moves no money itself.

    `request_key` names this one wish: however often it comes, the first payout is returned. Raises: as `record_payout`.
    """
    if not reference.strip() or len(reference) > LONGEST_REFERENCE or not reference.isprintable():
        raise Malformed(
            f"a payout needs the reference of its transfer, at most {LONGEST_REFERENCE} characters", "reference"
        )
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    merchant = await queries.lock_merchant(connection, merchant_id=shop.merchant_id)
    if merchant is None:
        raise NotFound(f"there is no merchant {shop.merchant_id}; see: paydesk merchant list")
    if request_key is not None:
        before = await queries.payout_of_request(connection, **side, request_key=request_key)
        if before is not None:
            return _payout(before), False
    row = await queries.record_payout(
        connection,
        **side,
        currency=currency,
        amount=amount,
        reference=reference.strip(),
        recorded_by=recorded_by,
        request_key=request_key,
        now=now,
    )
    if row is None and shop.live and merchant["suspended_at"] is not None:
        raise Conflict(
            f"merchant {shop.merchant_id} is suspended: its money stays where it is until the suspension is lifted"
        )
    if row is None:
        found = [one async for one in queries.balances(connection, **side)]
        known = {one["currency"]: one["available"] for one in found}
        raise Conflict(f"only {known.get(currency, Decimal(0))} {currency} are available, not {amount}")
    return _payout(row), True


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
