"""Payouts as an operator records them, without the line in the audit log,
by whatever clock a test has.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from paydesk.database.pool import Database
from paydesk.domain.ledger.payouts import Payout, Sent, record_payout_on, record_sent
from paydesk.domain.merchants.shop import Shop


async def record_payout(
    database: Database, shop: Shop, amount: Decimal, currency: str, *, now: datetime, **more: Any
) -> Payout:
    """Record that money was sent; with a `request_key` the reference may repeat an earlier one."""
    sent = Sent(amount, currency, repeats="request_key" in more, **more)
    return await record_sent(database, lambda connection: record_payout_on(connection, shop, sent, now=now))
