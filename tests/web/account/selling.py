"""What a merchant's pages show: a side of the merchant whose customers have paid."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from tests.web.account.conftest import Visitor

from paydesk.adapters.acquirers.interface import CardDetails
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import find_checkout, open_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.paying import Payer, pay
from paydesk.domain.payments.requests import CheckoutRequest
from paydesk.domain.subscriptions.terms import Terms

GOOD, POOR = "4242424242424242", "4000000000009995"


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
        at = now or utc_now()
        reference = reference or f"order-{secrets.token_hex(6)}"
        key_id = await self.database.fetchval(
            "select id from merchant_key where merchant_id = $1 order by id limit 1", self.shop.merchant_id
        )
        request = CheckoutRequest(
            reference, Decimal(amount), "USD", "A mug", "https://shop.example/thanks", "https://shop.example/pingback",
            "v2", email, "Grace", "Hopper", "GB", False, terms,
        )  # fmt: skip
        form = {"n": secrets.token_hex(8)}
        token = await open_checkout(self.database, self.shop, request, form=form, key_id=key_id, now=at)
        checkout = await find_checkout(self.database, token, now=at)
        payer = Payer(CardDetails(number, 12, 2040, "Grace Hopper", "123"), email, "GB", "192.0.2.1", "ok")
        await pay(self.desk, checkout, payer, return_url="https://pay.test/back", now=at)
        found = await self.database.fetchval(
            "select id from payment where merchant_id = $1 and live = $2 and merchant_order_id = $3",
            self.shop.merchant_id,
            self.shop.live,
            reference,
        )
        return int(found)

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
