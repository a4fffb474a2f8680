"""Our books and the bank's, of one merchant and one payment, to compare with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests import breaking, shopfront
from tests.proving import check

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.alarms import list_alarms
from paydesk.domain.operations.differences import Difference, Reconciled
from paydesk.domain.operations.reconciling import SETTLED, reconcile
from paydesk.domain.payments.desk import Desk

FOUR, TEN = Decimal(4), Decimal(10)


@dataclass(frozen=True)
class Books:
    """Our books and the bank's, some minutes after everything was written down."""

    desk: Desk
    shop: Shop
    bank: Bank
    payment_id: int

    @property
    def database(self) -> Database:
        return self.desk.database

    def at(self, acquirer: Acquirer) -> Books:
        """The same books beside another bank's list."""
        return replace(self, desk=replace(self.desk, acquirers={"simulator": acquirer}))

    async def compare(self, *, fix: bool = False) -> Reconciled:
        now = utc_now()
        return await reconcile(self.desk, "simulator", since=now - timedelta(hours=1), now=now + 2 * SETTLED, fix=fix)

    async def differences(self) -> list[Difference]:
        """What differs of this test's own merchant, or of nobody's."""
        found = (await self.compare()).differences
        return [one for one in found if one.merchant_id in (None, self.shop.merchant_id)]

    async def reasons(self) -> list[str]:
        return [one.reason for one in await self.differences()]

    async def alarms(self) -> list[str]:
        """What the operator's list says of it."""
        listed = await list_alarms(self.database, Page(100), kind=AlarmKind.not_reconciled)
        return [one.subject for one in listed]

    async def give(self, amount: Decimal) -> int:
        return (await shopfront.give_back(self.desk, self.shop, self.payment_id, amount)).reference_id

    async def say(self, **columns: Any) -> None:
        """Our books say something else of the payment than what came to pass."""
        await breaking.say(self.database, "payment", {"id": self.payment_id}, **columns)

    async def forget(self) -> None:
        """Our books have forgotten all that this shop was paid."""
        await breaking.forget_payments(self.database, self.shop)

    async def attempt(self) -> Any:
        return await self.database.fetchrow(
            "select * from payment_attempt where merchant_id = $1 and payment_id = $2",
            self.shop.merchant_id,
            self.payment_id,
        )

    async def another(self, reference: str = "", **asked: Any) -> Books:
        """The same of one more order, which `asked` may describe."""
        return replace(self, payment_id=await shopfront.buy(self.desk, self.shop, reference, **asked))

    async def states(self) -> Sequence[str]:
        """How the shop's payments stand in our books."""
        rows = await self.database.fetch(
            "select state from payment where merchant_id = $1 and live = $2 order by id",
            self.shop.merchant_id,
            self.shop.live,
        )
        return [row["state"] for row in rows]

    async def in_order(self) -> bool:
        """Whether `paydesk check` finds nothing at the merchant."""
        return not any(
            one.found for one in await check(self.database, now=utc_now(), merchant_id=self.shop.merchant_id)
        )
