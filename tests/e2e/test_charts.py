"""The charts of the account in a real browser: keys and a finger look at a day, as a mouse does."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect
from tests.e2e.test_account_getting_in import SignUp, base, complaints, sign_up
from tests.web.account.selling import Seller

from paydesk.core.clock import utc_now
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

__all__ = ["base", "complaints", "sign_up"]

pytestmark = pytest.mark.browser


async def with_a_payment(desk: Desk, page: Page) -> None:
    """Show the overview of a merchant who has sold something today."""
    path = re.sub(r"(/account/\d+).*", r"\1", page.url)
    seller = Seller(desk, Shop(int(path.rsplit("/", 1)[1]), live=False))
    await seller.sell("today", amount="12.00", now=utc_now())
    await page.goto(f"{path}/overview")


async def test_a_chart_is_read_by_keys_and_by_touch(desk: Desk, sign_up: SignUp, complaints: list[str]) -> None:
    page, _ = await sign_up()
    await with_a_payment(desk, page)
    chart = page.get_by_role("slider", name="Volume per day, USD")
    tip = page.locator(".plot-tip")
    await expect(tip).to_be_hidden()
    await chart.press("End")
    await expect(tip).to_contain_text("This period: 12.00")
    assert "12.00" in str(await chart.get_attribute("aria-valuetext"))
    await chart.press("ArrowLeft")
    await expect(tip).to_contain_text("This period: 0.00")
    assert await chart.get_attribute("aria-valuenow") == "28"
    await chart.press("Escape")
    await expect(tip).to_be_hidden()
    over = chart.locator(".u-over")
    end = (await over.bounding_box() or {"width": 0})["width"] - 8
    await over.dispatch_event("pointerdown", await at(page, end))
    await expect(tip).to_contain_text("This period: 12.00")
    assert complaints == [], "the page's policy lets the library draw"


async def at(page: Page, left: float) -> dict[str, object]:
    """A finger so far from the left of the chart."""
    begins = await page.evaluate("document.querySelector('.plot .u-over').getBoundingClientRect().left")
    return {"pointerType": "touch", "clientX": begins + left, "clientY": 0}
