"""Goods that are shipped, from the order to the parcel or to the end of the hold,
and money given back.
"""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect
from tests.e2e.looks import flaws
from tests.e2e.running import PATIENCE_MS, OpenPage, Running, fill_in
from tests.e2e.test_hosted_journey import to_their_page
from tests.lengths import long, one_of

pytestmark = pytest.mark.browser

ARTICLE, PRICE = "Hand grinder", 89


async def order(open_page: OpenPage, running: Running, *, version: str = "v1", **options: Any) -> Page:
    """Order the shipped article, as far as the shop's page with the verified pingback."""
    page = await open_page(f"{running.shop}/?sign_version={version}", **options)
    page.set_default_timeout(PATIENCE_MS)
    await page.get_by_role("button", name=f"Buy {ARTICLE}").click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    await fill_in(page, "4242424242424242")
    await page.get_by_role("button", name="Pay €89.00").click()
    await page.wait_for_url(f"{running.shop}/thanks?order=*")
    await expect(page.get_by_role("status")).to_contain_text("Authorized.", timeout=PATIENCE_MS)
    await expect(page.get_by_role("status")).to_contain_text(
        re.compile(r"ship by\s+\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
    )
    return page


async def ship(page: Page) -> None:
    await page.get_by_role("button", name="Mark as shipped").click()
    await expect(page.get_by_role("status")).to_contain_text("Shipped.")


class Merchant:
    """The shop's account with shipped goods: its server, and its operator's commands."""

    def __init__(self, running: Running) -> None:
        self.running = running
        (self.id,) = (one["id"] for one in running.command("merchant", "list") if one["name"].endswith("shipped goods"))
        self.key = running.command("merchant", "show", str(self.id), "--with-private-key")["private_key"]

    async def get(self, path: str, **query: str) -> Any:
        async with httpx.AsyncClient(base_url=self.running.address, headers={"X-ApiKey": self.key}) as server:
            answered = await server.get(path, params=query)
            assert answered.status_code == 200, answered.text
            return answered.json()["data"]

    async def payment(self, page: Page) -> Any:
        """What the API knows of the order on a page."""
        reference = httpx.URL(page.url).params["order"]
        (found,) = await self.get("/api/v1/payments", merchant_order_id=reference)
        return await self.get(f"/api/v1/payments/{found['payment_order']['id']}")

    async def pending(self) -> float:
        """What is in the pending balance."""
        balances = await self.get("/api/v1/balance")
        return float(balances[0]["pending"]) if balances else 0.0

    def wait(self, length: str) -> Any:
        """Let time pass by the account's test clock."""
        return self.running.command("clock", "advance", str(self.id), length)


@pytest.fixture(scope="module")
def merchant(running: Running) -> Merchant:
    return Merchant(running)


async def told(page: Page) -> list[dict[str, Any]]:
    """The bodies of the pingbacks that the shop received, all of them genuine."""
    articles = page.get_by_role("article")
    assert await articles.get_by_text("Genuine", exact=True).count() == await articles.count()
    return [json.loads(await one.inner_text()) for one in await articles.locator("pre").all()]


@long
async def test_what_is_paid_on_the_acquirers_page_is_held_there_until_the_shipment(
    open_page: OpenPage, running: Running, merchant: Merchant
) -> None:
    page = await open_page(running.shop)
    page.set_default_timeout(PATIENCE_MS)
    await page.get_by_role("button", name=f"Buy {ARTICLE}").click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    await to_their_page(page)
    await expect(page.get_by_role("button", name="Pay from your bank")).to_have_count(0)
    await page.get_by_role("button", name="Pay with Test Wallet").click()
    await page.wait_for_url(f"{running.shop}/thanks?order=*")
    await expect(page.get_by_role("status")).to_contain_text("Authorized.", timeout=PATIENCE_MS)
    assert (await merchant.payment(page))["captured"] is False
    await ship(page)
    assert (await merchant.payment(page))["captured"] is True
    assert [one["event"] for one in await told(page)] == ["payment"]


@long
@pytest.mark.parametrize("version", one_of(2, ["v1", "v2"]))
async def test_a_shipment_takes_the_money(
    open_page: OpenPage, running: Running, merchant: Merchant, version: str
) -> None:
    page = await order(open_page, running, version=version)
    before, held = await merchant.pending(), await merchant.payment(page)
    assert (held["captured"], held["payment_order"]["status"]) == (False, "successful")
    await ship(page)
    await expect(page.get_by_role("list", name="Calls to Paydesk")).to_contain_text("Paydesk took the money.")
    shipped = await merchant.payment(page)
    assert (shipped["captured"], shipped["payment_order"]["status"]) == (True, "successful")
    assert shipped["delivery_status"] == "order_shipped"
    assert shipped["deliveries"][0]["carrier_tracking_url"].startswith("https://www.dhl.com/")
    assert await merchant.pending() == pytest.approx(before + shipped["payment_order"]["merchant_net_revenue"])
    assert [one["event"] for one in await told(page)] == ["payment"]


@long
async def test_what_is_not_shipped_within_a_week_is_let_go(
    open_page: OpenPage, running: Running, merchant: Merchant
) -> None:
    page = await order(open_page, running, version="v2")
    before = await merchant.pending()
    merchant.wait("8d")  # By what it did itself, or the worker, who was faster.
    await expect(page.get_by_role("status")).to_contain_text("Not taken.", timeout=PATIENCE_MS)
    payment, refund = await told(page)
    assert (payment["event"], refund["event"]) == ("payment", "refund")
    assert refund["payment_order"]["status"] == "reversal_refunded"
    assert refund["payment_order"]["refund_amount"] == PRICE
    voided = await merchant.payment(page)
    assert (voided["captured"], voided["payment_order"]["status"]) == (False, "reversal_refunded")
    assert await merchant.pending() <= before
    assert await page.get_by_role("button", name="Mark as shipped").count() == 0


@long
async def test_money_is_given_back_in_part_and_then_whole(
    open_page: OpenPage, running: Running, merchant: Merchant
) -> None:
    page = await order(open_page, running)
    await ship(page)
    amount, button = page.get_by_label("Amount in EUR"), page.get_by_role("button", name="Refund")
    await amount.fill("9.50")
    await button.click()
    await expect(page.get_by_role("status")).to_contain_text("€9.50 went back", timeout=PATIENCE_MS)
    await amount.fill("79.51")
    await button.click()
    await expect(page.get_by_text("Invalid requested amount")).to_be_visible()
    await button.click()
    await expect(page.get_by_role("status")).to_contain_text("Refunded.", timeout=PATIENCE_MS)
    _, part, whole = [one["payment_order"] for one in await told(page)]
    assert (part["status"], part["refund_amount"]) == ("reversal_refunded_partially", 9.5)
    assert (whole["status"], whole["refund_amount"], whole["total_refunded_amount"]) == ("reversal_refunded", 79.5, 89)
    assert part["reference_id"] != whole["reference_id"]
    given_back = await merchant.payment(page)
    assert [one["amount"] for one in given_back["refunds"]] == [9.5, 79.5]
    assert given_back["refunded_amount"] == PRICE
    assert await button.count() == 0


@long
async def test_the_counter_works_without_javascript(open_page: OpenPage, running: Running) -> None:
    page = await order(open_page, running, java_script_enabled=False)
    await ship(page)
    await page.get_by_role("button", name="Refund").click()
    await expect(page.get_by_role("status")).to_contain_text("Refunded.", timeout=PATIENCE_MS)


@long
async def test_the_counter_suits_everyone(open_page: OpenPage, running: Running) -> None:
    page = await order(open_page, running)
    assert await flaws(page) == []
    await ship(page)
    await page.get_by_label("Amount in EUR").fill("nothing")
    await page.get_by_role("button", name="Refund").click()
    await page.wait_for_load_state()
    assert await flaws(page) == []
