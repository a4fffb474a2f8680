from __future__ import annotations

import pytest
from tests.till import Till

from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk


@pytest.fixture
def till(desk: Desk, shop: Shop) -> Till:
    return Till(desk, shop)
