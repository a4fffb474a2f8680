"""A shop that ships its goods, its customers, and confirmations of what it ships."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests import shopfront
from tests.proving import check

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.record import Kind, Operation
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.deliveries.confirming import Confirmed
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.subscriptions.subscription_terms import Terms

SHIPPED = {
    "status": "order_shipped",
    "type": "physical",
    "carrier_type": "DHL",
    "carrier_tracking_id": "00340434161094021501",
}


@dataclass(frozen=True, slots=True)
class Warehouse:
    """One side of a merchant that ships, its desk, and its bank's record."""

    desk: Desk
    shop: Shop
    bank: Bank

    def at(self, acquirer: Acquirer) -> Warehouse:
        """The same with another acquirer in between."""
        return replace(self, desk=replace(self.desk, acquirers={"simulator": acquirer}))

    async def sell(self, reference: str = "", *, terms: Terms | None = None, now: datetime | None = None) -> int:
        """A customer pays 10 USD; the payment's id."""
        return await shopfront.buy(self.desk, self.shop, reference, terms=terms, now=now)

    async def confirm(self, payment_id: int, *, now: datetime | None = None, **fields: Any) -> Confirmed:
        """Say what became of a payment's goods: shipped with DHL unless told otherwise."""
        return await shopfront.ship(self.desk, self.shop, payment_id, now=now, **fields)

    async def act(self, **later: float) -> int:
        """The worker's look at this side, some time from now."""
        now = utc_now()
        return await act_on_due(self.desk, real_now=now, merchant_id=self.shop.merchant_id, at=now + timedelta(**later))

    async def finish(self, **later: float) -> int:
        """The janitor's round over movements, some time from now."""
        return await finish_movements(self.desk, now=utc_now() + timedelta(**later))

    async def payment(self, payment_id: int) -> Any:
        return await self.desk.database.fetchrow(
            "select * from payment where merchant_id = $1 and id = $2", self.shop.merchant_id, payment_id
        )

    async def state(self, payment_id: int) -> str:
        return str((await self.payment(payment_id))["state"])

    async def rows(self, table: str, payment_id: int) -> list[Any]:
        return list(
            await self.desk.database.fetch(
                f"select * from {table} where merchant_id = $1 and payment_id = $2 order by id",
                self.shop.merchant_id,
                payment_id,
            )
        )

    async def told(self, payment_id: int) -> list[str]:
        """The events of the payment's pingbacks, in order."""
        return [row["event"] for row in await self.rows("pingback", payment_id)]

    async def at_the_bank(self, payment_id: int) -> list[Kind]:
        """What the bank did with the payment, in order, refusals left out."""
        key = await self.desk.database.fetchval(
            "select idempotency_key from payment_attempt where merchant_id = $1 and payment_id = $2",
            self.shop.merchant_id,
            payment_id,
        )
        done: list[Operation] = [one for one in self.bank.record.operations() if one.of_key == key]
        return [one.kind for one in done if one.kind is not Kind.REFUSE]

    async def problems(self) -> list[Any]:
        """What `paydesk check` finds wrong with the merchant."""
        found = await check(
            self.desk.database, now=utc_now(), merchant_id=self.shop.merchant_id, record=self.bank.record
        )
        return [finding.differences for finding in found if finding.found]


@pytest.fixture
async def warehouse(desk: Desk, vault: Vault, database: Database, bank: Bank) -> Warehouse:
    """A merchant of this test's own that ships its goods;
    no other test's movements are in the way.
    """
    await database.execute("update movement set lookup_at = now() + interval '1 year' where lookup_at is not null")
    await database.execute("update payment set shipping_due_at = null where shipping_due_at is not null")
    merchant = await create_merchant(
        database, vault, name="Mug Shop", email="owner@mugs.example", now=utc_now(), shipped_goods=True
    )
    return Warehouse(desk, shop_of(merchant, live=False), bank)
