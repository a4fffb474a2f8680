"""A merchant's customers, and its server that calls the API."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from tests.till import Till

from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk


@pytest.fixture
def customers(desk: Desk, shop: Shop) -> Till:
    return Till(desk, shop)


async def subscribe(customers: Till, order: str = "", **asked: Any) -> Any:
    """A customer subscribes, by a new order unless it is named, at a shop that hears of nothing."""
    return await customers.subscribe(order=order or secrets.token_hex(8), pingback_url=None, **asked)


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

    return Till(desk, shop).events
