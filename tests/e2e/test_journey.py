"""The whole way, as a customer goes it: shop, hosted page, bank, thank-you page;
against `paydesk run` itself.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect
from tests.e2e.looks import violations
from tests.e2e.running import PATIENCE_MS, OpenPage, Running, fill_in
from tests.lengths import long, one_of

from paydesk_client import Gateway

pytestmark = pytest.mark.browser


async def to_the_page(open_page: OpenPage, running: Running, *, version: str = "v1", **options: Any) -> Page:
    """Buy something in the sample shop, as far as the hosted page."""
    page = await open_page(f"{running.shop}/?sign_version={version}", **options)
    page.set_default_timeout(PATIENCE_MS)
    await page.get_by_role("button", name=re.compile("Buy House espresso")).click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    return page


async def press_pay(page: Page) -> None:
    await page.get_by_role("button", name="Pay 10.00 USD").click()


async def expect_thanks(page: Page, running: Running) -> None:
    """The customer is back at the shop, and the shop has verified the pingback."""
    await page.wait_for_url(f"{running.shop}/thanks?order=*")
    await expect(page.get_by_role("status")).to_contain_text("Paid.", timeout=PATIENCE_MS)


@pytest.mark.parametrize("version", one_of(2, ["v2", "v1"]))
async def test_a_purchase_ends_at_the_shop_with_a_verified_pingback(
    open_page: OpenPage, running: Running, version: str
) -> None:
    page = await to_the_page(open_page, running, version=version)
    await fill_in(page, "4242424242424242")
    await press_pay(page)
    await expect_thanks(page, running)
    await expect(page.locator("body")).to_contain_text('"event": "payment"')
    await expect(page.locator("body")).to_contain_text('"firstname": "Ada King"')
    assert running.private_key not in await page.content()


async def test_it_works_without_javascript(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running, java_script_enabled=False)
    await fill_in(page, "4000000000000002")
    await press_pay(page)
    await expect(page.get_by_role("alert")).to_contain_text("declined")
    await expect(page.get_by_label("E-mail")).to_have_value("ada@example.com")
    await expect(page.get_by_label("Security code")).to_have_value("")
    await fill_in(page, "5555555555554444")
    await press_pay(page)
    await expect_thanks(page, running)


async def test_a_customer_who_confirms_with_the_bank_pays(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running)
    await fill_in(page, "4000000000003220")
    await press_pay(page)
    await page.wait_for_url("**/simulator/challenge/**")
    await page.get_by_role("button", name=re.compile("Approve|Confirm")).click()
    await expect_thanks(page, running)


@long
async def test_a_customer_who_is_rejected_by_the_bank_can_try_another_card(
    open_page: OpenPage, running: Running
) -> None:
    page = await to_the_page(open_page, running)
    await fill_in(page, "4000000000003220")
    await press_pay(page)
    await page.wait_for_url("**/simulator/challenge/**")
    await page.get_by_role("button", name="Reject").click()
    await page.wait_for_url("**/checkout/**")
    await expect(page.get_by_role("alert")).to_contain_text("declined")
    await fill_in(page, "378282246310005", cvc="1234")
    await press_pay(page)
    await expect_thanks(page, running)


@long
async def test_a_customer_who_leaves_the_bank_can_pay_with_another_card(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running)
    await fill_in(page, "4000000000003220")
    await press_pay(page)
    await page.wait_for_url("**/simulator/challenge/**")
    await page.go_back()
    await page.wait_for_url("**/checkout/**")
    await fill_in(page, "4242424242424242")
    await press_pay(page)
    await expect_thanks(page, running)


@long
async def test_a_lost_answer_is_found_while_the_customer_waits(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running)
    await fill_in(page, "4000000000009987")
    await press_pay(page)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("checking with your bank", ignore_case=True)
    await expect_thanks(page, running)


@long
async def test_the_back_button_after_paying_shows_that_it_is_paid(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running)
    checkout = page.url
    await fill_in(page, "4242424242424242")
    await press_pay(page)
    await expect_thanks(page, running)
    again = await open_page(checkout)
    await expect(again.get_by_role("link", name="Continue to Fern & Kettle")).to_have_attribute(
        "href", re.compile("/thanks")
    )
    assert await again.get_by_role("button", name=re.compile("^Pay ")).count() == 0


@long
async def test_two_tabs_pay_once(open_page: OpenPage, running: Running) -> None:
    first = await to_the_page(open_page, running)
    second = await open_page(first.url)
    for page in (first, second):
        await fill_in(page, "4242424242424242")
    await press_pay(first)
    await press_pay(second)
    # A customer is led back by himself once, in the tab that is answered first; the other one has
    # a button.
    led_back = re.compile(f"^{re.escape(running.shop)}/thanks")
    buttons = [page.get_by_role("link", name=re.compile("^Continue to ")) for page in (first, second)]
    arrivals = [asyncio.create_task(page.wait_for_url(led_back)) for page in (first, second)]
    await asyncio.wait(arrivals, return_when=asyncio.FIRST_COMPLETED)
    for arrival, button in zip(arrivals, buttons, strict=True):
        if not arrival.done():
            await button.click()
    await asyncio.gather(*arrivals)
    for page in (first, second):
        await expect_thanks(page, running)
    received = await first.get_by_text('"event": "payment"').count()
    assert received == 1


@long
async def test_a_wrong_hash_in_test_mode_shows_what_was_hashed(open_page: OpenPage, running: Running) -> None:
    form = Gateway(running.public_key, "not-the-private-key-at-all", base_url=running.address).payment_form()
    html = form.build_form(
        {
            "merchant_order_id": "wrong",
            "amount": "5.00",
            "currency": "EUR",
            "description": "Golden Ticket",
            "success_url": f"{running.shop}/thanks",
        }
    )
    page = await open_page("about:blank")
    await page.set_content(html)
    async with page.expect_navigation() as navigation:
        await page.get_by_role("button").click()
    response = await navigation.value
    assert response is not None
    assert response.status == 403
    await expect(page.locator("body")).to_contain_text("amount=5.00&api_key=")
    await expect(page.locator("body")).to_contain_text("the private key")
    assert running.private_key not in await page.content()
    assert await violations(page) == []


async def test_the_first_view_asks_nobody_else_and_weighs_little(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running)
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    await page.reload()
    assert hosts == {running.address.removeprefix("http://")}
    async with httpx.AsyncClient(headers={"Accept-Encoding": "gzip"}) as client:
        html = await client.get(page.url)
        assets = re.findall(r'(?:href|src)="?(/(?:static|brand)/[^" >]+)', html.text)
        sizes = [html.num_bytes_downloaded]
        sizes += [(await client.get(running.address + asset)).num_bytes_downloaded for asset in assets]
    assert len(assets) >= 3
    assert sum(sizes) <= 25_000
