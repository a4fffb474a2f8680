"""A live payment on Mollie's own page, as a customer goes it: shop, our page, theirs, and back;
against `paydesk run` itself, with a stand-in of ours for Mollie in a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from tests.conftest import accept_waiting, submit_profile
from tests.e2e.running import OpenPage, Running, run_paydesk
from tests.e2e.test_journey import expect_thanks, to_the_page
from tests.lengths import long, one_of
from tests.standins.account import Account
from tests.standins.account import running as standin

from paydesk.commands.connecting import database_address
from paydesk.core.clock import utc_now
from paydesk.database.pool import connected
from paydesk.domain.merchants.merchant import go_live
from paydesk.settings import load_settings

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def mollie() -> Iterator[Account]:
    with standin("tests.standins.mollie") as account:
        yield account


@pytest.fixture(scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory, mollie: Account) -> AsyncIterator[Running]:
    """A Paydesk whose sample shop is live, at Mollie."""
    folder = tmp_path_factory.mktemp("live")
    settings: dict[str, Any] = {
        "live_acquirer": "mollie",
        "mollie_key": "test_standin",
        "mollie_api_base": mollie.base_url,
        "idempotency_secret": "i" * 40,
        "allow_async": "1",
    }
    with run_paydesk(folder, **settings) as started:
        await _go_live(folder)
        yield started


async def _go_live(folder: Path) -> None:
    settings = load_settings(data_dir=folder / "data")
    async with database_address(settings) as address, connected(address, most=2) as database:
        merchant = await database.fetchval("select min(id) from merchant")
        await submit_profile(database, merchant)
        await accept_waiting(database, merchant)
        await go_live(database, merchant, now=utc_now())


async def to_mollies_page(page: Page) -> None:
    await page.get_by_label("E-mail").fill("ada@example.com")
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/select-method/tr_*")


@long
@pytest.mark.parametrize("javascript", one_of(2, [True, False]))
async def test_a_purchase_goes_by_mollies_page_to_a_verified_pingback(
    open_page: OpenPage, live: Running, mollie: Account, javascript: bool
) -> None:
    page = await to_the_page(open_page, live, version="v2", java_script_enabled=javascript)
    await to_mollies_page(page)
    await page.get_by_role("button", name="Pay with iDEAL").click()
    await expect_thanks(page, live)
    await expect(page.locator("body")).to_contain_text('"payment_system": 2')
    newest = max(mollie.see()["payments"].items())[1]
    assert (newest["status"], newest["amount"]) == ("paid", {"currency": "USD", "value": "10.00"})


@long
async def test_a_card_that_is_declined_there_and_going_back_lead_to_the_same_page(
    open_page: OpenPage, live: Running
) -> None:
    page = await to_the_page(open_page, live, version="v2")
    await to_mollies_page(page)
    address = page.url
    await page.get_by_role("button", name="Pay by a card that is declined").click()
    await page.get_by_role("button", name="Back without paying").click()
    await page.wait_for_url(re.compile("/checkout/[^s]"))
    await expect(page.get_by_role("alert")).to_contain_text("You have not paid yet")
    await to_mollies_page(page)
    assert page.url == address
    await page.get_by_role("button", name="Pay by card").click()
    await expect_thanks(page, live)


@long
async def test_two_tabs_and_the_back_button_lead_to_one_page_which_is_paid_once(
    open_page: OpenPage, live: Running, mollie: Account
) -> None:
    first = await to_the_page(open_page, live, version="v2")
    checkout = first.url
    second = await open_page(checkout)
    for page in (first, second):
        await to_mollies_page(page)
    address = first.url
    await first.go_back()
    await first.wait_for_url(f"{live.address}/checkout/**")
    await to_mollies_page(first)
    assert (first.url, second.url) == (address, address)
    before = len(mollie.see()["payments"])
    await first.get_by_role("button", name="Pay with iDEAL").click()
    await expect_thanks(first, live)
    await second.goto(checkout)
    await expect(second.locator("body")).to_contain_text("This order is paid")
    assert len(mollie.see()["payments"]) == before
