"""What an operator finds who wants to see everybody's subscriptions, or knows an id."""

from __future__ import annotations

import pytest
from tests import shopfront

from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.subscriptions_for_operator import newest_subscriptions, shop_of_subscription
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.states import SubscriptionState


async def test_the_newest_of_everybody_come_first_and_filters_leave_the_rest_out(
    desk: Desk, database: Database, shop: Shop, other_shop: Shop
) -> None:
    older = await shopfront.subscribe(desk, shop, reference="club-1")
    newer = await shopfront.subscribe(desk, shop, reference="club-2")
    others = await shopfront.subscribe(desk, other_shop)
    await cancel(database, shop, older.id, by="api", now=utc_now())

    async def found(**wanted: object) -> list[int]:
        listed = await newest_subscriptions(database, most=3, **wanted)  # type: ignore[arg-type]
        return [one.subscription.id for one in listed]

    assert await found() == [others.id, newer.id, older.id]
    assert await found(merchant_id=shop.merchant_id) == [newer.id, older.id]
    assert await found(merchant_id=shop.merchant_id, state=SubscriptionState.CANCELLED) == [older.id]
    assert await found(merchant_id=shop.merchant_id, live=True) == []


async def test_an_id_alone_leads_to_the_side_of_its_merchant(desk: Desk, database: Database, shop: Shop) -> None:
    subscription = await shopfront.subscribe(desk, shop)
    assert await shop_of_subscription(database, subscription.id) == shop
    with pytest.raises(NotFound, match="paydesk subscription list"):
        await shop_of_subscription(database, 2**52)
