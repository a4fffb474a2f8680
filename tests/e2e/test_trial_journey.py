"""How a free trial begins, in the sample shop of `paydesk run`."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from tests.e2e.running import PATIENCE_MS, OpenPage, Running
from tests.lengths import long

pytestmark = pytest.mark.browser


@long
async def test_a_free_trial_begins_without_a_charge_a_card_and_javascript(
    open_page: OpenPage, running: Running
) -> None:
    page = await open_page(running.shop, java_script_enabled=False)
    page.set_default_timeout(PATIENCE_MS)
    await expect(page.get_by_text("No card is asked for until you stay.")).to_be_visible()
    await page.get_by_role("button", name="Subscribe to Tea letter").click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    await expect(page.get_by_label("Card number")).to_have_count(0)
    await page.get_by_label("E-mail").fill("ada@example.com")
    await page.get_by_role("checkbox").check()
    await page.get_by_role("button", name="Start free trial").click()
    await page.wait_for_url(f"{running.shop}/thanks?order=*")
    await expect(page.get_by_role("status")).to_contain_text("Subscribed.", timeout=PATIENCE_MS)
    await expect(page.locator("body")).to_contain_text('"paid_amount": 0')
    await expect(page.locator("body")).to_contain_text('"status": "Trial"')
