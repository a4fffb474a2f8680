"""How a free trial begins, in the sample shop of `paydesk run`."""

from __future__ import annotations

import pytest
from playwright.async_api import expect
from tests.e2e.running import OpenPage, Running
from tests.e2e.test_subscription_journey import subscribe
from tests.lengths import long

pytestmark = pytest.mark.browser


@long
async def test_a_free_trial_begins_without_a_charge_and_without_javascript(
    open_page: OpenPage, running: Running
) -> None:
    page = await subscribe(
        open_page, running, "Tea letter", "Start free trial", version="v1", java_script_enabled=False
    )
    await expect(page.locator("body")).to_contain_text('"paid_amount": 0')
    await expect(page.locator("body")).to_contain_text('"status": "Trial"')
