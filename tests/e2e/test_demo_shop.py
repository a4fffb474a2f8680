from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.e2e.looks import flaws
from tests.lengths import long

from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.web.demo import create_shop
from paydesk_client import Gateway
from paydesk_client.signature import parse_form, pingback_signature

pytestmark = pytest.mark.browser

PRIVATE_KEY = "9c4d4efcfe74317c5df7d564cfe9565t"
Serve = Callable[[ASGIApp], AbstractAsyncContextManager[str]]


@dataclass
class Desk:
    """Paydesk played: it takes every form for paid, sends the customer back,
    and the pingback when it is told to.
    """

    shop: str = ""
    posts: list[dict[str, Any]] = field(default_factory=list)
    subscription_id: int = 31

    async def form(self, request: Request) -> Response:
        self.posts.append(dict(parse_form(await request.body())))
        return RedirectResponse("/checkout/1", status_code=303)

    async def checkout(self, request: Request) -> Response:
        return RedirectResponse(self.posts[-1]["success_url"], status_code=303)

    async def subscription(self, request: Request) -> Response:
        if request.headers.get("x-apikey") != PRIVATE_KEY or request.path_params["id"] != 31:
            return JSONResponse({"success": False}, 404)
        return JSONResponse({"success": True, "data": {"id": 31, "portal_url": f"{self.shop}/orders?portal"}})

    async def send_pingback(self, key: str = PRIVATE_KEY) -> str:
        posted = self.posts[-1]
        order = {
            "id": 7,
            "merchant_order_id": posted["merchant_order_id"],
            "status": "successful",
            "paid_amount": float(posted.get("recurring_trial_amount", posted["amount"])),
            "paid_currency": posted["currency"],
        }
        payload = {"event": "payment", "payment_order": order, "pingback_ts": int(time.time())}
        if "recurring_name" in posted:
            payload["subscription"] = {
                "id": self.subscription_id,
                "recurring_id": 7,
                "status": "Trial",
                "init_merchant_order_id": posted["merchant_order_id"],
            }
        body = json.dumps(payload).encode()
        headers = {"Content-Type": "application/json", "X-ApiKey": key}
        if posted.get("sign_version") == "v2":
            del headers["X-ApiKey"]
            headers |= {
                "X-Service-Signature-Version": "v2",
                "X-Service-Signature": pingback_signature(body, key),
            }
        async with httpx.AsyncClient() as client:
            return (await client.post(posted["pingback_url"], content=body, headers=headers)).text

    def app(self) -> ASGIApp:
        return Starlette(
            routes=[
                Route("/payment/form", self.form, methods=["POST"]),
                Route("/checkout/1", self.checkout, methods=["GET"]),
                Route("/api/v1/subscriptions/{id:int}", self.subscription, methods=["GET"]),
            ]
        )


@pytest.fixture
async def desk(serve: Serve, tmp_path: Path) -> AsyncIterator[Desk]:
    desk, shop = Desk(), Starlette()

    async def later(scope: Scope, receive: Receive, send: Send) -> None:
        await shop(scope, receive, send)

    # Each needs the other's address, so the shop is made once both are known.
    async with serve(desk.app()) as base, serve(later) as desk.shop:
        shop = create_shop(
            Gateway("public", PRIVATE_KEY, base),
            Gateway("shipping", "x" * 32, base),
            base_url=desk.shop,
            folder=tmp_path,
            time_to_ship=TIME_TO_SHIP,
        )
        yield desk


async def buy(page: Page, desk: Desk, article: str, verb: str = "Buy") -> None:
    """Buy as far as the thank-you page."""
    await page.get_by_role("button", name=f"{verb} {article}").click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url(f"{desk.shop}/thanks?order=*")


@long
async def test_a_purchase_ends_with_the_pingback_on_the_thank_you_page(page: Page, desk: Desk) -> None:
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    await page.goto(f"{desk.shop}/?sign_version=v2")
    await buy(page, desk, "Stoneware mug")
    await expect(page.get_by_role("status")).to_contain_text("Waiting for the pingback")
    assert await desk.send_pingback(key="guessed") == "NOK"
    await expect(page.get_by_role("article")).to_contain_text("Refused")
    await expect(page.get_by_role("status")).to_contain_text("Waiting for the pingback")
    assert await desk.send_pingback() == "ok"
    await expect(page.get_by_role("status")).to_contain_text("Paid.")
    await expect(page.get_by_role("article")).to_have_count(2)
    await expect(page).to_have_title("Paid, thank you · Fern & Kettle")
    assert problems == []


@long
async def test_a_purchase_works_without_javascript(browser: Browser, desk: Desk) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(desk.shop)
    await buy(page, desk, "House espresso")
    assert await desk.send_pingback() == "ok"
    await expect(page.get_by_role("status")).to_contain_text("Paid.")
    await context.close()


@long
async def test_a_purchase_works_with_the_keyboard(page: Page, desk: Desk) -> None:
    await page.goto(desk.shop)
    for _ in range(5):
        await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Buy House espresso")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Continue to payment").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{desk.shop}/thanks?order=*")


@long
async def test_a_subscriber_finds_the_portal_through_the_shops_server(page: Page, desk: Desk) -> None:
    await page.goto(desk.shop)
    await buy(page, desk, "to Coffee club", "Subscribe")
    thanks = page.url
    await desk.send_pingback()
    await expect(page.get_by_role("status")).to_contain_text("Subscribed.")
    await page.get_by_role("link", name="Change the card or cancel").click()
    await page.wait_for_url(f"{desk.shop}/orders?portal")
    assert PRIVATE_KEY not in await page.content()
    assert "portal" not in thanks


@long
async def test_a_portal_that_paydesk_does_not_name_is_a_calm_page(page: Page, desk: Desk) -> None:
    desk.subscription_id = 32
    await page.goto(desk.shop)
    await buy(page, desk, "to Tea letter", "Subscribe")
    await desk.send_pingback()
    await page.get_by_role("link", name="Change the card or cancel").click()
    await expect(page.get_by_text("Paydesk did not say where the subscription is managed")).to_be_visible()


@long
async def test_every_page_suits_everyone(page: Page, desk: Desk) -> None:
    await page.goto(f"{desk.shop}/orders")
    found = await flaws(page)
    await page.goto(desk.shop)
    found += await flaws(page)
    await page.get_by_role("button", name="Buy Brass coffee pot").click()
    await page.get_by_text("For programmers").click()
    found += await flaws(page)
    await page.get_by_role("button", name="Continue to payment").click()
    await expect(page.get_by_text("Nothing yet.")).to_be_visible()
    found += await flaws(page)
    await desk.send_pingback(key="guessed")
    await desk.send_pingback()
    await expect(page.get_by_role("status")).to_contain_text("Paid.")
    found += await flaws(page)
    await page.goto(desk.shop)
    await page.get_by_role("button", name="Subscribe to Coffee club").click()
    found += await flaws(page)
    await page.get_by_role("button", name="Continue to payment").click()
    await desk.send_pingback()
    await expect(page.get_by_role("status")).to_contain_text("Subscribed.")
    found += await flaws(page)
    await page.goto(f"{desk.shop}/orders")
    found += await flaws(page)
    await page.goto(f"{desk.shop}/nowhere")
    found += await flaws(page)
    assert found == []
