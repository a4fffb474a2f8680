"""A merchant's customers, and its server that calls the API."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import Any

import httpx
import pytest
from tests import shopfront
from tests.shopfront import MONTHLY, find_subscription

from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.paying import Result
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms


class Customers:
    """Whoever buys from one side of the merchant."""

    def __init__(self, desk: Desk, shop: Shop) -> None:
        self.desk, self.shop, self.run = desk, shop, BillingRun(desk)

    async def buy(
        self,
        order: str = "",
        *,
        number: str = "4242424242424242",
        email: str = "ada@example.com",
        terms: Terms | None = None,
        amount: str = "",
    ) -> Result:
        """Go through a checkout with a card."""
        wish: dict[str, Any] = {"amount": amount, "terms": terms, "pingback_url": None, "sign_version": "v1"}
        link = await shopfront.order(
            self.desk.database, self.shop, order or f"order-{secrets.token_hex(6)}", description="Golden Ticket", **wish
        )
        return await shopfront.pay(self.desk, link, number, email=email)

    async def subscribe(
        self, order: str = "", *, email: str = "ada@example.com", number: str = "4242424242424242"
    ) -> Subscription:
        """Buy a monthly subscription."""
        await self.buy(order, number=number, email=email, terms=MONTHLY)
        newest = await self.desk.database.fetchval(
            "select max(id) from subscription where merchant_id = $1 and live = $2",
            self.shop.merchant_id,
            self.shop.live,
        )
        return await find_subscription(self.desk.database, self.shop, newest)

    async def charge(self, at: datetime) -> int:
        """Charge what is due at a time."""
        return await self.run.charge_due(merchant_id=self.shop.merchant_id, at=at)


@pytest.fixture
def customers(desk: Desk, shop: Shop) -> Customers:
    return Customers(desk, shop)


class Server:
    """The merchant's server: calls with its key and reads the JSON."""

    def __init__(self, web: httpx.AsyncClient, key: str) -> None:
        self.web, self.key = web, key

    async def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"X-ApiKey": self.key, **options.pop("headers", {})}
        return await self.web.request(method, path, headers=headers, **options)

    async def get(self, path: str, **query: Any) -> dict[str, Any]:
        response = await self.call("GET", path, params=query or None)
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        assert body["success"] is True
        return body

    async def pages(self, path: str, **query: Any) -> AsyncIterator[list[dict[str, Any]]]:
        """Page after page of a list, to its end."""
        cursor: dict[str, str] = {}
        while True:
            page = await self.get(path, **query, **cursor)
            yield page["data"]
            if page["next_cursor"] is None:
                return
            cursor = {"cursor": page["next_cursor"]}


@pytest.fixture
def server(web: httpx.AsyncClient, merchant: Merchant) -> Server:
    return Server(web, merchant.private_key)


@pytest.fixture
def server_of(web: httpx.AsyncClient) -> Callable[[str], Server]:
    """A server with another key."""
    return lambda key: Server(web, key)


@pytest.fixture
def told(desk: Desk, shop: Shop) -> Callable[[], Awaitable[list[str]]]:
    """The events of the merchant's pingbacks, in order."""

    async def events() -> list[str]:
        rows = await desk.database.fetch(
            "select event from pingback where merchant_id = $1 order by id", shop.merchant_id
        )
        return [row["event"] for row in rows]

    return events
