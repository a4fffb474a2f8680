"""A shopper who has saved a card that the shop may charge."""

from __future__ import annotations

import pytest
from tests.shopfront import become_known, save_card

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.shoppers.sessions import Shopper


@pytest.fixture
async def shopper(desk: Desk, shop: Shop) -> Shopper:
    return await become_known(desk, shop)


@pytest.fixture
async def card(desk: Desk, bank: Bank, shopper: Shopper) -> int:
    return await save_card(desk, bank, shopper)
