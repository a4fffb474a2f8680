"""An operator looks for something: by the keyboard alone, on a desk and on a phone."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from tests.e2e.looks import flaws
from tests.e2e.running import OpenPage, Running
from tests.e2e.test_console_pages import buy, operators_page
from tests.e2e.test_lists import LINES, PHONES, SIDEWAYS

pytestmark = pytest.mark.browser


async def test_a_payment_is_found_and_opened_with_the_keyboard(open_page: OpenPage, running: Running) -> None:
    await buy(open_page, running, "House espresso")
    page = await operators_page(open_page, running)
    await page.goto(f"{running.address}/operator/overview")
    await page.keyboard.press("/")
    box = page.get_by_role("searchbox", name="Search everything")
    await expect(box).to_be_focused()
    await page.keyboard.type("ada@example.com")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/operator/search?q=ada%40example.com")
    await expect(page.get_by_role("status")).to_contain_text("for “ada@example.com”")
    first = page.get_by_role("region", name="Payments").locator("a.whole-row").first
    await first.focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/operator/merchants/*/payments/*")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Payment")
    # A slash that is typed into a field stays there.
    await box.fill("a")
    await page.keyboard.press("/")
    await expect(box).to_have_value("a/")


async def test_what_is_found_is_two_lines_a_row_on_a_phone(open_page: OpenPage, running: Running) -> None:
    await buy(open_page, running, "Coffee club")
    page = await operators_page(open_page, running)
    await page.goto(f"{running.address}/operator/search?q=ada%40example.com")
    for width in PHONES:
        await page.set_viewport_size({"width": width, "height": 800})
        lines = await page.evaluate(LINES)
        assert lines
        assert set(lines) <= {1, 2}, width
        assert await page.evaluate(SIDEWAYS) == [], width
        assert await flaws(page) == [], width
