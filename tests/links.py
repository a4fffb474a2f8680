"""Customers' links as tests find them: nothing in the database is one."""

from __future__ import annotations

from paydesk.database.pool import Database
from paydesk.database.records import record_of
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.subscriptions.rows import SubscriptionRow, link_of


async def newest_portal(database: Database, merchant_id: int) -> Link:
    """The link to the portal of a merchant's newest subscription."""
    row = await database.fetchrow(
        "select * from subscription_planned where merchant_id = $1 order by id desc", merchant_id
    )
    return link_of(record_of(SubscriptionRow, row))
