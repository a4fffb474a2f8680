"""What a merchant's pages show: a side of the merchant whose customers have paid."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.shopfront import order, pay, payment_of
from tests.web.account.conftest import Visitor

from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.subscription_terms import Terms

GOOD, POOR, ANSWER_LOST = "4242424242424242", "4000000000009995", "4000000000009987"


@dataclass(frozen=True, slots=True)
class Seller:
    """The test side of whoever is logged in, and its desk."""

    desk: Desk
    shop: Shop

    @property
    def database(self) -> Database:
        return self.desk.database

    async def sell(
        self,
        reference: str = "",
        *,
        amount: str = "10.00",
        number: str = GOOD,
        email: str = "grace@example.com",
        terms: Terms | None = None,
        now: datetime | None = None,
    ) -> int:
        """Somebody pays, or tries to; the payment's id."""
        reference = reference or f"order-{secrets.token_hex(6)}"
        wish: dict[str, Any] = {"amount": amount, "terms": terms, "email": email}
        link = await order(self.database, self.shop, reference, now=now, **wish)
        await pay(self.desk, link, number, email=email, name="Grace Hopper", now=now)
        return await payment_of(self.database, self.shop, reference)

    async def state(self, payment_id: int) -> str:
        return str(
            await self.database.fetchval(
                "select state from payment where merchant_id = $1 and id = $2", self.shop.merchant_id, payment_id
            )
        )

    async def audited(self, action: str) -> list[str]:
        """What an action was done to, first to last."""
        rows = await self.database.fetch(
            "select subject from audit_entry where merchant_id = $1 and action = $2 order by at, id",
            self.shop.merchant_id,
            action,
        )
        return [row["subject"] for row in rows]


def seller_of(desk: Desk, visitor: Visitor) -> Seller:
    """The test side of the merchant that a visitor looks at."""
    return Seller(desk, Shop(int(visitor.merchant_path.split("/")[2]), live=False))
