"""A free trial from its page to a card that is given, in a browser: with and without JavaScript, at
a desk and on a phone in the dark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Page, expect
from tests.e2e.looks import violations
from tests.e2e.test_portal import OpenPage, base
from tests.links import newest_portal
from tests.shopfront import GOOD

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.receiving import Reception, receive_form
from paydesk_client.signature import encode_form

__all__ = ["base"]
pytestmark = pytest.mark.browser

DESK = {"viewport": {"width": 1140, "height": 720}, "color_scheme": "light"}
PHONE = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark", "java_script_enabled": False}


async def fits(page: Page) -> None:
    """Nothing is wider than the screen."""
    width = page.viewport_size
    assert width is not None
    box = await page.locator("main").bounding_box()
    assert box is not None
    assert box["width"] <= width["width"]


@pytest.mark.parametrize("look", [DESK, PHONE], ids=["desk", "phone in the dark, no JavaScript"])
async def test_it_begins_without_a_card_and_takes_one_later(
    open_page: OpenPage,
    base: str,
    database: Database,
    desk: Desk,
    vault: Vault,
    merchant: Merchant,
    signed_form: Callable[..., dict[str, Any]],
    look: dict[str, Any],
) -> None:
    await change_merchant(database, merchant.id, trials_without_card=True)
    form = signed_form(
        recurring_name="Coffee club",
        recurring_sku_id="club",
        recurring_period="1m",
        recurring_trial_period="14d",
        success_url="",
    )
    reception = Reception(database, vault, 1000, desk.serving)
    body = encode_form(form).encode()
    received = await receive_form(reception, body, client_address="192.0.2.1", sandbox=False, now=utc_now())
    page = await open_page(f"{base}/checkout/{received.token}", **look)
    await expect(page.get_by_text("No card is needed")).to_be_visible()
    await expect(page.get_by_label("Card number")).to_have_count(0)
    await fits(page)
    if look is DESK:
        assert await violations(page) == []
    await page.get_by_label("E-mail").fill("ada@example.com")
    await page.get_by_role("checkbox").check()
    await page.get_by_role("button", name="Start free trial").click()
    await expect(page.get_by_role("heading", name="Your subscription is set up")).to_be_visible()
    portal = (await newest_portal(database, merchant.id)).token(vault)
    await page.goto(f"{base}/portal/{portal}")
    await expect(page.get_by_text("None yet")).to_be_visible()
    await fits(page)
    await page.get_by_role("link", name="Add a card").click()
    await expect(page.get_by_text("Nothing is charged before")).to_be_visible()
    if look is DESK:
        assert await violations(page) == []
    await page.get_by_label("Card number").fill(GOOD)
    await page.get_by_label("Expiry date").fill("12/40")
    await page.get_by_label("Security code").fill("123")
    await page.get_by_label("Name on card").fill("Ada")
    await page.get_by_role("button", name="Add the card").click()
    await expect(page.get_by_role("heading", name="Your card is saved")).to_be_visible()
    assert await database.fetchval("select count(*) from payment where merchant_id = $1", merchant.id) == 1
