"""Versions of packages that coupons make."""

from __future__ import annotations

from datetime import datetime

from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.subscription_terms import Terms

queries = load_statements(__package__ or "", "discounting.sql")


async def agree_discounted(database: Database, shop: Shop, list_version_id: int, terms: Terms, *, now: datetime) -> int:
    """The id of the version with these terms, which a coupon has made of another version; made if
    there is none yet. Moves no money.
    """
    assert terms.discount is not None, "a coupon takes something off"
    return int(
        await queries.agree_discounted(
            database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            list_version_id=list_version_id,
            price=terms.price,
            periods=terms.discount.periods,
            now=now,
        )
    )
