"""A customer who has subscribed at the checkout, and a browser in front of their portal."""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.links import newest_portal
from tests.shopfront import find_subscription, open_page, pay

from paydesk.database.pool import Database
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.merchants.customer_links import LinkTo, open_link
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.results import Paid
from paydesk.domain.subscriptions.lifecycle import Subscription

TYPED = {"expiry": "12 / 40", "cvc": "739", "holder": "Grace Hopper"}


def text_of(answer: httpx.Response) -> str:
    return html.unescape(answer.text)


def leads_to(answer: httpx.Response) -> str:
    assert answer.status_code == 303, text_of(answer)
    return answer.headers["location"]


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A subscription with its portal's path."""

    desk: Desk
    shop: Shop
    id: int
    path: str
    web: httpx.AsyncClient

    async def now(self) -> Subscription:
        return await find_subscription(self.desk.database, self.shop, self.id)

    async def charge(self, at: datetime | None = None) -> int:
        """Charge what is due at that time, or at the subscription's next date."""
        due = at or (await self.now()).date_next
        return await BillingRun(self.desk).charge_due(merchant_id=self.shop.merchant_id, at=due)

    async def page(self, language: str = "en-US", below: str = "") -> str:
        """The text of a page of the portal that must be there."""
        answer = await self.web.get(self.path + below, headers={"Accept-Language": language})
        assert answer.status_code == 200, text_of(answer)
        return text_of(answer)

    async def give(self, number: str, /, **typed: str) -> httpx.Response:
        """Type another card and press the button."""
        return await self.web.post(f"{self.path}/card", data={**TYPED, "number": number, **typed})

    async def cancel(self) -> httpx.Response:
        return await self.web.post(f"{self.path}/cancel", headers={"Content-Type": "application/x-www-form-urlencoded"})

    async def events(self) -> list[str]:
        rows = await self.desk.database.fetch(
            "select event from pingback where merchant_id = $1 and event <> 'payment'", self.shop.merchant_id
        )
        return [row["event"] for row in rows]


Subscribe = Callable[..., Awaitable[Subscriber]]


@pytest.fixture
def subscribe(
    web: httpx.AsyncClient, desk: Desk, shop: Shop, database: Database, signed_form: Callable[..., dict[str, Any]]
) -> Subscribe:
    """Buy a monthly subscription with a card; fields of the form may be changed."""

    async def buy(number: str = "4242424242424242", **fields: Any) -> Subscriber:
        recurring = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}
        path = await open_page(web, signed_form(**{**recurring, **fields}))
        link = open_link(desk.vault, LinkTo.CHECKOUT, path.rpartition("/")[2])
        assert await pay(desk, link, number, address="192.0.2.77") == Paid()
        portal = await newest_portal(database, shop.merchant_id)
        return Subscriber(desk, shop, portal.row_id, f"/portal/{portal.token(desk.vault)}", web)

    return buy


@pytest.fixture
async def subscriber(subscribe: Subscribe) -> Subscriber:
    return await subscribe()


@pytest.fixture
async def failing(subscribe: Subscribe) -> Subscriber:
    """A customer whose second payment was declined once."""
    subscriber = await subscribe("4000000000000341")
    assert await subscriber.charge() == 1
    return subscriber


@pytest.fixture
async def renamed(merchant: Merchant, database: Database) -> str:
    """A merchant's name that would like to be markup."""
    name = "<script>alert('x')</script> & Söhne"
    await set_back.called(database, merchant.id, name)
    return name
