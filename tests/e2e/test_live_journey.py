"""A live payment on Mollie's own page, as a customer goes it: shop, our page, theirs, and back;
against `paydesk run` itself, with a stand-in of ours for Mollie in a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.conftest import accept_waiting, submit_profile
from tests.e2e.live_month import settings_at
from tests.e2e.running import OpenPage, Running, load_until, run_paydesk
from tests.e2e.test_journey import expect_thanks, to_the_page
from tests.e2e.test_subscription_journey import (
    ask_trials_for_cards,
    to_replace,
    to_the_portal,
    to_their_page_for_later,
)
from tests.lengths import long, one_of
from tests.standins.account import Account
from tests.standins.account import running as standin

from paydesk.commands.connecting import database_address
from paydesk.core.clock import utc_now
from paydesk.database.pool import connected
from paydesk.domain.merchants.merchant import go_live
from paydesk.settings import load_settings
from paydesk.web.texts import LANGUAGES

pytestmark = pytest.mark.browser

THEIRS = "**/checkout/select-method/tr_*"


@pytest.fixture(scope="module")
def mollie() -> Iterator[Account]:
    with standin("tests.standins.mollie") as account:
        yield account


@pytest.fixture(scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory, mollie: Account) -> AsyncIterator[Running]:
    """A Paydesk whose sample shop is live, at Mollie."""
    async with at_mollie(tmp_path_factory.mktemp("live"), mollie) as started:
        yield started


@asynccontextmanager
async def at_mollie(folder: Path, mollie: Account, **more: str) -> AsyncIterator[Running]:
    """The same for the length of a block, with more settings."""
    with run_paydesk(folder, **{**settings_at(mollie), **more}) as started:
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


@long
@pytest.mark.parametrize(("article", "javascript"), [("Coffee club", False), ("Tea letter", True)])
async def test_a_subscription_begins_on_their_page_and_is_charged_otherwise_later(
    open_page: OpenPage, live: Running, mollie: Account, article: str, javascript: bool
) -> None:
    ask_trials_for_cards(live)
    page = await to_their_page_for_later(open_page, live, article, THEIRS, java_script_enabled=javascript)
    await page.get_by_role("button", name="Pay by card", exact=True).click()
    await to_the_portal(page, live)
    before = len(mollie.see()["payments"])
    await to_replace(page, THEIRS)
    await page.get_by_role("button", name="Pay by card", exact=True).click()
    await page.wait_for_url("**/portal/*/card/result")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Your card is saved")
    asked = sorted(mollie.see()["payments"].items())[before:]
    assert [(one["sequenceType"], one["amount"]["value"]) for _, one in asked] == [("first", "0.00")]


@long
async def test_a_page_that_has_expired_there_is_followed_by_another_one(
    open_page: OpenPage, live: Running, mollie: Account
) -> None:
    mollie.do("set", life=5)
    try:
        page = await to_the_page(open_page, live, version="v2")
        checkout = page.url
        await to_mollies_page(page)
        expired = page.url
    finally:
        mollie.do("set", life=900)

    async def has_expired() -> bool:
        return "not open any more" in await page.locator("body").inner_text()

    await load_until(page, has_expired)
    await page.goto(checkout)
    await to_mollies_page(page)
    assert page.url != expired
    await page.get_by_role("button", name="Pay with iDEAL").click()
    await expect_thanks(page, live)


@long
async def test_in_every_language_on_a_phone_their_page_is_reached_and_paid_on(
    open_page: OpenPage, live: Running
) -> None:
    """Some 35 seconds."""
    for language in LANGUAGES:
        phone = {"viewport": {"width": 375, "height": 740}, "has_touch": True, "is_mobile": True}
        page = await to_the_page(open_page, live, version="v2", locale=language, **phone)
        await expect(page.locator("html")).to_have_attribute("lang", language)
        await page.locator("#email, #page-email").first.fill("ada@example.com")
        await page.locator("form[action$='/continue'] button").click()
        await page.wait_for_url(THEIRS)
        await page.get_by_role("button", name="Pay with iDEAL").click()
        await expect_thanks(page, live)
        await page.context.close()
