"""What an operator finds who wants to see everybody's pingbacks, or knows an id."""

from __future__ import annotations

import pytest
from tests import shopfront

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.pingbacks_for_operator import exhausted_pingbacks, newest_pingbacks, shop_of_pingback
from paydesk.domain.payments.desk import Desk
from paydesk.domain.pingbacks.states import PingbackState


async def test_the_newest_of_everybody_come_first_with_whose_they_are(
    desk: Desk, database: Database, shop: Shop, other_shop: Shop
) -> None:
    for one in (shop, other_shop):
        await shopfront.buy(desk, one)
    newest, before = await newest_pingbacks(database, most=2)
    assert [newest.merchant_id, before.merchant_id] == [other_shop.merchant_id, shop.merchant_id]
    assert await newest_pingbacks(database, merchant_id=shop.merchant_id) == [before]
    assert await newest_pingbacks(database, merchant_id=shop.merchant_id, state=PingbackState.DUE) == [before]
    assert await newest_pingbacks(database, merchant_id=shop.merchant_id, state=PingbackState.EXHAUSTED) == []
    assert await newest_pingbacks(database, merchant_id=shop.merchant_id, live=True) == []
    assert await exhausted_pingbacks(database, shop.merchant_id) == []


async def test_an_id_alone_leads_to_the_side_of_its_merchant(desk: Desk, database: Database, shop: Shop) -> None:
    await shopfront.buy(desk, shop)
    [one] = await newest_pingbacks(database, merchant_id=shop.merchant_id)
    assert await shop_of_pingback(database, one.id) == shop
    with pytest.raises(NotFound, match="paydesk pingback list"):
        await shop_of_pingback(database, 2**52)
