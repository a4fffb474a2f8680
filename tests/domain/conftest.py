"""A customer who has paid, for what comes after the payment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal

import pytest

from paydesk.adapters.acquirers.interface import CardDetails
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.payments.checkouts import find_checkout, open_checkout
from paydesk.domain.payments.paying import Desk, Paid, Payer, pay
from paydesk.domain.payments.requests import CheckoutRequest

GOOD = "4242424242424242"

Buy = Callable[..., Awaitable[int]]


@pytest.fixture
def buy(desk: Desk, shop: Shop, database: Database) -> Buy:
    """A customer pays, 10 USD unless it is said; the payment's id."""

    async def do(number: str = GOOD, order: str = "A-1", amount: str = "10.00", currency: str = "USD") -> int:
        key_id = await database.fetchval("select id from merchant_key where merchant_id = $1", shop.merchant_id)
        request = CheckoutRequest(
            merchant_order_id=order,
            amount=Decimal(amount),
            currency=currency,
            description="A mug",
            success_url="https://shop.example/thanks",
            pingback_url="https://shop.example/pingback",
            sign_version="v2",
            email="ada@example.com",
            first_name="Ada",
            last_name="Lovelace",
            country="GB",
            wants_qr_code=False,
        )
        token = await open_checkout(database, shop, request, form={"order": order}, key_id=key_id, now=utc_now())
        checkout = await find_checkout(database, token, now=utc_now())
        payer = Payer(CardDetails(number, 12, 2040, "Ada Lovelace", "123"), "ada@example.com", "GB", "192.0.2.1")
        assert await pay(desk, checkout, payer, return_url="", now=utc_now()) == Paid()
        return int(
            await database.fetchval(
                "select id from payment where merchant_id = $1 and merchant_order_id = $2", shop.merchant_id, order
            )
        )

    return do
