"""Paying on the acquirer's own page, as a customer goes it: shop, our page, theirs, and back;
against `paydesk run` itself.
"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.async_api import Page, expect
from tests.e2e.looks import violations
from tests.e2e.running import OpenPage, Running, fill_in
from tests.e2e.test_journey import expect_thanks, press_pay, to_the_page
from tests.lengths import long, one_of

from paydesk.adapters.acquirers.hosted_pages import PageState
from paydesk.adapters.acquirers.simulator import Bank, Record
from paydesk.core.clock import utc_now
from paydesk.settings import load_settings
from paydesk.web.texts import LANGUAGES

pytestmark = pytest.mark.browser

VISA, DECLINED = "4242424242424242", "4000000000000002"


async def to_their_page(page: Page) -> None:
    """Go on from our page to theirs."""
    await page.get_by_label("Where to send the receipt").fill("ada@example.com")
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/simulator/pay/**")


async def press(page: Page, name: str) -> None:
    await page.get_by_role("button", name=name).click()


def time_is_over(running: Running, page: Page) -> None:
    """The bank notices that the time of its page is over, a day later."""
    record = Record(load_settings(data_dir=running.data).simulator_record)
    bank = Bank(record, now=lambda: utc_now() + timedelta(hours=25))
    assert bank.pages.find(page.url.rpartition("/")[2]).state is PageState.ENDED
    record.close()


async def expect_not_paid(page: Page) -> None:
    await page.wait_for_url("**/checkout/**")
    await expect(page.get_by_role("alert")).to_contain_text("You have not paid yet")


@long
@pytest.mark.parametrize("javascript", one_of(2, [True, False]), ids=["with JavaScript", "without"])
async def test_a_purchase_goes_by_their_page_to_a_verified_pingback(
    open_page: OpenPage, running: Running, javascript: bool
) -> None:
    page = await to_the_page(open_page, running, java_script_enabled=javascript)
    await to_their_page(page)
    await page.get_by_label("Card number").fill(VISA)
    await press(page, "Pay by card")
    await expect_thanks(page, running)


@long
async def test_a_bank_that_answers_at_once(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running)
    await to_their_page(page)
    assert await violations(page) == []
    await press(page, "Pay from your bank")
    await press(page, "Approve payment")
    await expect_thanks(page, running)
    await expect(page.locator("body")).to_contain_text('"payment_system": 2')


@long
async def test_a_card_that_is_declined_there_is_followed_by_a_wallet(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running)
    await to_their_page(page)
    await page.get_by_label("Card number").fill(DECLINED)
    await press(page, "Pay by card")
    await expect(page.get_by_role("alert")).to_contain_text("You have not been charged")
    await press(page, "Pay with Test Wallet")
    await expect_thanks(page, running)


@long
async def test_who_leaves_their_page_may_pay_by_card(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running)
    await to_their_page(page)
    await page.get_by_role("link", name="Back without paying").click()
    await expect_not_paid(page)
    await fill_in(page, VISA)
    await press_pay(page)
    await expect_thanks(page, running)


@long
async def test_the_back_button_leads_to_our_page_and_on_to_the_same_one(open_page: OpenPage, running: Running) -> None:
    page = await to_the_page(open_page, running)
    await to_their_page(page)
    address = page.url
    await page.go_back()
    await page.wait_for_url("**/checkout/**")
    await to_their_page(page)
    assert page.url == address
    await press(page, "Pay with Test Wallet")
    await expect_thanks(page, running)


@long
async def test_two_tabs_are_led_to_one_page_and_pay_once(open_page: OpenPage, running: Running) -> None:
    first = await to_the_page(open_page, running)
    second = await open_page(first.url)
    checkout = first.url
    for page in (first, second):
        await to_their_page(page)
    assert first.url == second.url
    await press(first, "Pay with Test Wallet")
    await expect_thanks(first, running)
    await press(second, "Pay with Test Wallet")
    await second.wait_for_url(re.compile(f"^{re.escape(checkout)}|^{re.escape(running.shop)}/thanks"))


@long
@pytest.mark.parametrize("javascript", one_of(2, [True, False]), ids=["with JavaScript", "without"])
async def test_a_page_that_has_expired_there_is_followed_by_another_one(
    open_page: OpenPage, running: Running, javascript: bool
) -> None:
    """Some 4 seconds each."""
    page = await to_the_page(open_page, running, java_script_enabled=javascript)
    await to_their_page(page)
    expired = page.url
    time_is_over(running, page)
    await press(page, "Pay with Test Wallet")
    await expect(page.get_by_role("status")).to_contain_text("This page is over. You have not been charged")
    await page.get_by_role("link", name="Back to the checkout").click()
    await expect_not_paid(page)
    await to_their_page(page)
    assert page.url != expired
    await press(page, "Pay with Test Wallet")
    await expect_thanks(page, running)


@long
async def test_in_every_language_on_a_phone_their_page_is_reached_and_paid_on(
    open_page: OpenPage, running: Running
) -> None:
    """Some 40 seconds."""
    for language in LANGUAGES:
        phone = {"viewport": {"width": 375, "height": 740}, "has_touch": True, "is_mobile": True}
        page = await to_the_page(open_page, running, version="v2", locale=language, **phone)
        await expect(page.locator("html")).to_have_attribute("lang", language)
        await page.locator("#page-email").fill("ada@example.com")
        await page.locator("form[action$='/continue'] button").click()
        await page.wait_for_url("**/simulator/pay/**")
        await press(page, "Pay with Test Wallet")
        await expect_thanks(page, running)
        await page.context.close()
