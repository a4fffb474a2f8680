"""What an operator asks about subscriptions who knows an id, or wants to see everybody's.
Moves no money.
"""

from __future__ import annotations

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.for_api import SeenSubscription
from paydesk.domain.subscriptions.rows import SubscriptionRow, link_of, subscription_of
from paydesk.domain.subscriptions.states import SubscriptionState

queries = load_statements(__package__ or "", "subscriptions_for_operator.sql")


async def newest_subscriptions(
    database: Database,
    *,
    merchant_id: int | None = None,
    live: bool | None = None,
    state: SubscriptionState | None = None,
    most: int = 50,
) -> list[SeenSubscription]:
    """The newest subscriptions, newest first: of everybody, or of one merchant, one side,
    one state.
    """
    rows = queries.newest_of_all(database, merchant_id=merchant_id, live=live, state=state, most=most)
    return [SeenSubscription(subscription_of(row), link_of(row)) for row in await records_of(SubscriptionRow, rows)]


async def shop_of_subscription(database: Database, subscription_id: int) -> Shop:
    """The side of the merchant that a subscription belongs to.

    Raises: NotFound.
    """
    shop = record_if_any(Shop, await queries.side_of(database, id=subscription_id))
    if shop is None:
        raise NotFound(f"there is no subscription {subscription_id}; see: paydesk subscription list")
    return shop
