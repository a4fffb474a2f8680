"""A shop that ships its goods, its customers, and confirmations of what it ships."""

from __future__ import annotations

import pytest
from tests.till import Till

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.payments.desk import Desk

SHIPPED = {
    "status": "order_shipped",
    "type": "physical",
    "carrier_type": "DHL",
    "carrier_tracking_id": "00340434161094021501",
}


@pytest.fixture
async def warehouse(desk: Desk, vault: Vault, database: Database) -> Till:
    """A merchant of this test's own that ships its goods;
    no other test's movements are in the way.
    """
    await database.execute("update movement set lookup_at = now() + interval '1 year' where lookup_at is not null")
    await database.execute("update payment set shipping_due_at = null where shipping_due_at is not null")
    merchant = await create_merchant(
        database, vault, name="Mug Shop", email="owner@mugs.example", now=utc_now(), shipped_goods=True
    )
    return Till(desk, shop_of(merchant, live=False))
