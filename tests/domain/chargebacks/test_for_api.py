"""A payment's purchase is found on its own side of its own merchant, and nowhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.for_api import purchase_of
from paydesk.domain.merchants.shop import Shop


async def test_a_payments_purchase_is_found_by_its_own_shop_alone(
    database: Database, shop: Shop, other_shop: Shop, buy: Callable[..., Awaitable[int]]
) -> None:
    payment_id = await buy()
    key = await database.fetchval(
        "select idempotency_key from payment_attempt where merchant_id = $1 and payment_id = $2",
        shop.merchant_id,
        payment_id,
    )
    found = await purchase_of(database, shop, payment_id)
    assert (found.acquirer, found.key) == ("simulator", key)
    for another in (other_shop, replace(shop, live=not shop.live)):
        with pytest.raises(NotFound):
            await purchase_of(database, another, payment_id)
