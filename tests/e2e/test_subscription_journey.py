"""A subscription from the first month to its end: shop, hosted page, clock, portal;
against `paydesk run` itself.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect
from tests.e2e.looks import flaws, violations
from tests.e2e.running import PATIENCE_MS, OpenPage, Running, fill_in
from tests.lengths import long

pytestmark = pytest.mark.browser

MORE_THAN_A_MONTH = "32d"
"""A paused month goes on with the days that it has left, whichever month that is in."""


async def subscribe(
    open_page: OpenPage, running: Running, article: str, button: str, *, version: str, **options: Any
) -> Page:
    """Subscribe in the sample shop, as far as its thank-you page with the verified pingback."""
    page = await open_page(f"{running.shop}/?sign_version={version}", **options)
    page.set_default_timeout(PATIENCE_MS)
    await page.get_by_role("button", name=f"Subscribe to {article}").click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    await fill_in(page, "4242424242424242")
    await page.locator("#agree").check()
    await page.get_by_role("button", name=button).click()
    await page.wait_for_url(f"{running.shop}/thanks?order=*")
    await expect(page.get_by_role("status")).to_contain_text("Subscribed.", timeout=PATIENCE_MS)
    return page


async def to_their_page_for_later(
    open_page: OpenPage, running: Running, article: str, theirs: str, **options: Any
) -> Page:
    """Begin a subscription in the sample shop and on our page, as far as the acquirer's page."""
    page = await open_page(f"{running.shop}/?sign_version=v2", **options)
    page.set_default_timeout(PATIENCE_MS)
    await page.get_by_role("button", name=f"Subscribe to {article}").click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    # Where our own form for a card stands beside theirs, the second half of the page leads there.
    await page.locator("#page-email").or_(page.locator("#email")).last.fill("ada@example.com")
    await page.locator("#page-agree").or_(page.locator("#agree")).last.check()
    await page.get_by_role("button", name=re.compile("^Continue")).click()
    await page.wait_for_url(theirs)
    return page


async def to_the_portal(page: Page, running: Running) -> None:
    """The customer is back at the shop, which has verified the pingback; on to their own page."""
    await page.wait_for_url(f"{running.shop}/thanks?order=*")
    await expect(page.get_by_role("status")).to_contain_text("Subscribed.", timeout=PATIENCE_MS)
    await page.get_by_role("link", name="Change the card or cancel").click()
    await page.wait_for_url("**/portal/**")


async def to_replace(page: Page, theirs: str) -> None:
    """Go on from the portal to the acquirer's page, for another instrument."""
    await page.get_by_role("link", name=re.compile("Change how you pay|Replace the card")).click()
    await page.get_by_role("button", name=re.compile("^Continue")).click()
    await page.wait_for_url(theirs)


def ask_trials_for_cards(running: Running) -> None:
    """Have the sample merchant ask for a card in free trials, too."""
    merchant, _ = running.command("merchant", "list")
    running.command("merchant", "set", str(merchant["id"]), "--trials-with-card")


def advance(running: Running, length: str) -> Any:
    """Move the sample merchant's test clock."""
    merchant, _ = running.command("merchant", "list")
    return running.command("clock", "advance", str(merchant["id"]), length)


@long
async def test_three_months_pass_and_the_customer_cancels(open_page: OpenPage, running: Running) -> None:
    page = await subscribe(open_page, running, "Coffee club", "Pay 5.00 USD", version="v2")
    summary = advance(running, "3m")
    assert summary["counts"].get("payment") == 3, summary
    await expect(page.get_by_role("article"), str(summary)).to_have_count(4, timeout=PATIENCE_MS)
    await expect(page.get_by_text("Genuine, a renewal at the agreed price")).to_have_count(3)
    await expect(page.get_by_role("status")).to_contain_text("Renewed 3 times since.")
    for number in (2, 3, 4):
        await expect(page.locator("body")).to_contain_text(re.compile(rf'"merchant_order_id": "order-\w+:{number}"'))
    thanks = page.url
    await page.get_by_role("link", name="Change the card or cancel").click()
    await page.wait_for_url("**/portal/**")
    assert await violations(page) == []
    await page.get_by_role("link", name="Cancel").click()
    await page.get_by_role("button", name="Cancel the subscription").click()
    await page.wait_for_load_state()
    await page.goto(thanks)
    await expect(page.get_by_role("status")).to_contain_text("Ended.", timeout=PATIENCE_MS)
    await expect(page.get_by_role("article")).to_have_count(5)
    await expect(page.locator("body")).to_contain_text('"event": "subscription_cancelled"')
    advance(running, "2m")
    await page.reload()
    await expect(page.get_by_role("article")).to_have_count(5)


@long
async def test_the_shops_own_page_changes_pauses_resumes_ends_and_keeps(open_page: OpenPage, running: Running) -> None:
    page = await subscribe(open_page, running, "Coffee club", "Pay 5.00 USD", version="v2")
    thanks = page.url
    await page.get_by_role("link", name="Change the plan or pause").click()
    state, agree = page.get_by_role("status"), page.get_by_role("button", name="Yes, do that")
    await expect(state).to_contain_text("Trial. The next payment is on")
    assert await flaws(page) == []
    await page.get_by_label("Plan").select_option("double")
    await page.get_by_label("From when").select_option("now")
    await page.get_by_role("button", name="See what it costs").click()
    await expect(page.get_by_text("You pay now")).to_be_visible()
    await expect(page.get_by_label("What comes of it")).to_contain_text("24.00 USD")
    assert await flaws(page) == []
    await page.get_by_role("link", name="No, leave it").click()
    await expect(state).to_contain_text("Trial.")
    await page.get_by_label("Plan").select_option("double")
    await page.get_by_role("button", name="See what it costs").click()
    await agree.click()
    await expect(state).to_contain_text("Its plan changes with the next payment")
    for button, said in (
        ("Keep it as it is", "Trial. The next payment is on"),
        ("Pause it", "Paused."),
        ("Resume it", "The next payment is on"),
        ("Let it end with what is paid", "It ends with what is paid"),
        ("Keep it as it is", "The next payment is on"),
    ):
        await page.get_by_role("button", name=button).click()
        await agree.click()
        await expect(state).to_contain_text(said)
    await page.get_by_label("Plan").select_option("double")
    await page.get_by_role("button", name="See what it costs").click()
    await agree.click()
    advance(running, MORE_THAN_A_MONTH)
    await page.goto(thanks)
    await expect(page.get_by_text("Genuine, a renewal at the agreed price")).to_have_count(1, timeout=PATIENCE_MS)
    await expect(page.locator("body")).to_contain_text('"paid_amount": 24')


@long
async def test_the_shops_coupon_is_typed_at_the_checkout_and_runs_out(open_page: OpenPage, running: Running) -> None:
    page = await open_page(running.shop)
    page.set_default_timeout(PATIENCE_MS)
    await expect(page.get_by_text("takes 20 % off the first 3 regular")).to_be_visible()
    await page.get_by_role("button", name="Subscribe to Coffee club").click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    await page.get_by_label("Coupon").fill("welcome")
    await page.get_by_role("button", name="Apply").click()
    await expect(page.locator(".terms").first).to_contain_text("9.60 USD")
    assert await violations(page) == []
    await fill_in(page, "4242424242424242")
    await page.locator("#agree").check()
    await page.get_by_role("button", name="Pay 5.00 USD").click()
    await page.wait_for_url(f"{running.shop}/thanks?order=*")
    await expect(page.get_by_role("status")).to_contain_text("Subscribed.", timeout=PATIENCE_MS)
    advance(running, "4m")
    renewed = page.get_by_text("Genuine, a renewal at the agreed price")
    await expect(renewed).to_have_count(4, timeout=PATIENCE_MS)
    body = await page.locator("body").text_content() or ""
    assert (body.count('"paid_amount": 9.6'), body.count('"paid_amount": 12')) == (3, 1)


@long
async def test_a_free_trial_begins_on_their_page_and_is_changed_there(open_page: OpenPage, running: Running) -> None:
    ask_trials_for_cards(running)
    page = await to_their_page_for_later(open_page, running, "Tea letter", "**/simulator/pay/**")
    await expect(page.get_by_role("heading")).to_contain_text("charges later")
    assert await violations(page) == []
    await page.get_by_role("button", name="Keep Test Wallet").click()
    await page.wait_for_url(f"{running.shop}/thanks?order=*")
    await expect(page.get_by_role("status")).to_contain_text("Subscribed.", timeout=PATIENCE_MS)
    thanks = page.url
    await page.get_by_role("link", name="Change the card or cancel").click()
    await page.wait_for_url("**/portal/**")
    await expect(page.locator("body")).to_contain_text("•••• 4242")
    await page.get_by_role("link", name="Replace the card").click()
    assert await violations(page) == []
    await page.get_by_role("button", name="Continue", exact=True).click()
    await page.wait_for_url("**/simulator/pay/**")
    await page.get_by_label("Card number").fill("5555555555554444")
    await page.get_by_role("button", name="Keep this card").click()
    await page.wait_for_url("**/portal/*/card/result")
    await expect(page.locator("body")).to_contain_text("charges Mastercard •••• 4444")
    summary = advance(running, "15d")
    assert summary["counts"].get("payment") == 1, summary
    await page.goto(thanks)
    await expect(page.get_by_text("Genuine, a renewal at the agreed price")).to_have_count(1, timeout=PATIENCE_MS)


@long
async def test_the_customer_lets_it_end_keeps_it_pauses_and_resumes(open_page: OpenPage, running: Running) -> None:
    page = await subscribe(open_page, running, "Coffee club", "Pay 5.00 USD", version="v2")
    thanks = page.url
    await page.get_by_role("link", name="Change the card or cancel").click()
    await page.wait_for_url("**/portal/**")
    await page.get_by_role("link", name="Cancel the subscription").click()
    assert await flaws(page) == []
    await page.get_by_role("button", name="Let it end on").click()
    await expect(page.get_by_role("status")).to_contain_text("This subscription ends on")
    await expect(page.get_by_role("status")).to_contain_text("If you keep it, 12.00 USD is charged on")
    assert await flaws(page) == []
    await page.get_by_role("button", name="Keep the subscription").click()
    await expect(page.get_by_role("button", name="Keep the subscription")).to_have_count(0)
    await page.get_by_role("link", name="Pause the subscription").click()
    assert await flaws(page) == []
    await page.get_by_label("For how long").select_option("2")
    await page.get_by_role("button", name="Pause the subscription").click()
    await expect(page.get_by_role("status")).to_contain_text("This subscription is paused until")
    assert await flaws(page) == []
    advance(running, "40d")
    portal = page.url
    await page.goto(thanks)
    await expect(page.get_by_text("Genuine, a renewal at the agreed price")).to_have_count(0)
    await page.goto(portal)
    await page.get_by_role("button", name="Resume the subscription").click()
    await expect(page.get_by_role("link", name="Pause the subscription")).to_be_visible()
    summary = advance(running, MORE_THAN_A_MONTH)
    await page.goto(thanks)
    renewed = page.get_by_text("Genuine, a renewal at the agreed price")
    await expect(renewed, str(summary)).to_have_count(1, timeout=PATIENCE_MS)
    await page.goto(portal)
    await page.get_by_role("link", name="Cancel the subscription").click()
    await page.get_by_role("button", name="Let it end on").click()
    await expect(page.get_by_role("button", name="Keep the subscription")).to_be_visible()
    assert advance(running, MORE_THAN_A_MONTH)["counts"]["subscription_cancelled"] == 1
    await page.goto(thanks)
    await expect(page.get_by_role("status")).to_contain_text("Ended.", timeout=PATIENCE_MS)
    await expect(page.get_by_text("Genuine, a renewal at the agreed price")).to_have_count(1)
