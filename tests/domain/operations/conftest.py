"""Books that may differ from the bank's, and databases that forget."""

from __future__ import annotations

import pytest
from tests import breaking, shopfront
from tests.domain.conftest import OpenCopy
from tests.domain.operations.books import Books
from tests.domain.operations.forgetting import Forgetful

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk


@pytest.fixture
async def books(desk: Desk, shop: Shop, bank: Bank, database: Database) -> Books:
    """A merchant that was paid once, and no alarm; what other tests left was paid at banks
    of their own.
    """
    await breaking.paid_elsewhere(database)
    await breaking.no_alarms(database)
    return Books(desk, shop, bank, await shopfront.buy(desk, shop))


@pytest.fixture
def forgetful(copies: OpenCopy, desk: Desk, bank: Bank) -> Forgetful:
    return Forgetful(copies, desk, bank)
