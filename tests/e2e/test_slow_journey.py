"""Paying by what takes days, as a customer goes it: the bank's page, some days of waiting, and the
money arrives or it does not; against `paydesk run` itself.
"""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect
from tests.e2e.looks import violations
from tests.e2e.running import OpenPage, Running
from tests.e2e.test_hosted_journey import press, to_their_page
from tests.e2e.test_journey import expect_thanks, to_the_page
from tests.e2e.test_subscription_journey import advance
from tests.lengths import long

pytestmark = [pytest.mark.browser, long]


async def transfer(open_page: OpenPage, running: Running, button: str) -> tuple[Page, str]:
    """A customer chooses a transfer, and reads that it takes days; their page, and its address."""
    page = await to_the_page(open_page, running)
    checkout = page.url
    await to_their_page(page)
    await press(page, button)
    await page.wait_for_url("**/result")
    for address in (page.url, checkout):
        await page.goto(address)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Your payment is on its way")
        await expect(page.get_by_role("button")).to_have_count(0)
    assert await violations(page) == []
    return page, checkout


async def test_a_transfer_arrives_after_two_days_and_the_shop_is_told(open_page: OpenPage, running: Running) -> None:
    page, checkout = await transfer(open_page, running, "Pay by bank transfer (two days)")
    advance(running, "3d")
    await page.goto(f"{checkout}/result")
    await expect_thanks(page, running)
    await expect(page.locator("body")).to_contain_text('"payment_system": 4')


async def test_one_that_fails_charges_nobody_and_its_page_is_over_by_then(
    open_page: OpenPage, running: Running
) -> None:
    page, checkout = await transfer(open_page, running, "Pay by bank transfer that fails (two days)")
    advance(running, "3d")
    for address in (f"{checkout}/result", checkout):
        await page.goto(address)
        await expect(page.get_by_role("heading", level=1)).to_have_text("This payment page has expired")
        await expect(page.locator("main")).to_contain_text("You have not been charged here")
        await expect(page.get_by_role("link", name="Back to Fern & Kettle")).to_be_visible()
