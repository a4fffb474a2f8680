"""A newcomer's hour: from the sign-up to a private key, a test payment and the guide."""

from __future__ import annotations

import re
import secrets

from playwright.async_api import Page, expect
from tests.e2e.walking import PHONE, Walk, press, sees, step

PASSWORD = "correct horse battery staple"


async def sign_up(page: Page, walk: Walk) -> str:
    """Open an account; where it is."""
    await page.goto(f"{walk.running.address}/account/signup")
    await page.get_by_label("Name of your shop").fill("Corner Shop")
    await page.get_by_label("Your name").fill("Ada Lovelace")
    await page.get_by_label("E-mail address").fill(f"ada-{secrets.token_hex(4)}@corner.example")
    await page.get_by_label("Password").fill(PASSWORD)
    await press(page, "Open the account")
    await page.wait_for_url(re.compile(r"/account/\d+/"))
    found = re.match(r".*/account/\d+", page.url)
    assert found is not None
    return found[0]


@step("newcomer")
async def sign_up_page(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/account/signup")


@step("newcomer")
async def keys_are_shown_once(page: Page, walk: Walk) -> None:
    """Right after the sign-up, each with a button that copies it."""
    await sign_up(page, walk)
    await press(page, "Show my keys")
    await sees(page, "Private key", "Public key")
    await expect(page.locator("main [data-copy]").locator("visible=true")).to_have_count(2)
    await expect(page.get_by_text("old keys")).to_have_count(0)


@step("newcomer")
async def first_day_is_a_checklist(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await page.goto(f"{account}/overview")
    await sees(page, "Your first day", "Open a test checkout", "Say who you are")


@step("newcomer")
async def a_test_checkout_without_code(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await page.goto(f"{account}/overview")
    await press(page, "Open a test checkout")
    await page.wait_for_url("**/checkout/**")
    await sees(page, "Corner Shop")


@step("newcomer")
async def live_without_data_says_what_is_missing(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await page.goto(f"{account}/overview")
    await page.get_by_role("switch").or_(page.get_by_role("button", name=re.compile("View"))).first.click()
    await sees(page, "0 of 11")


@step("newcomer")
async def profile_in_four_steps(page: Page, walk: Walk) -> None:
    account = await sign_up(page, walk)
    await page.goto(f"{account}/settings/profile")
    await expect(page.locator("main h1")).to_be_visible()


@step("newcomer")
async def a_private_address_is_warned_of(page: Page, walk: Walk) -> None:
    """As a URL for pingbacks, with the setting that lets it."""
    account = await sign_up(page, walk)
    await page.goto(f"{account}/developers")
    await page.get_by_label(re.compile("pingback URL", re.IGNORECASE)).first.fill("http://192.168.1.7/pingback")
    await page.get_by_label(re.compile("pingback URL", re.IGNORECASE)).first.press("Enter")
    await sees(page, "PAYDESK_OUTBOUND_ALLOW")


@step()
async def the_guide(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/docs")


@step("owner")
async def the_guide_has_the_readers_keys(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/docs/a-first-checkout-with-curl")
    await sees(page, walk.running.public_key)


@step()
async def the_api_in_four_languages(page: Page, walk: Walk) -> None:
    """The API reference: request and answer in curl, PHP, Python and Node."""
    await page.goto(f"{walk.running.address}/api/docs")
    await sees(page, "curl", "PHP", "Python", "Node")


@step()
async def the_guide_is_searched(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/docs")
    await page.get_by_role("searchbox").first.fill("refund")
    await page.keyboard.press("Enter")
    await sees(page, "refund")


@step("owner")
async def a_whole_subscription_program(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/developers/code")
    await page.get_by_text("Python, subscriptions").click()
    await sees(page, "club.py")


@step()
async def the_mailbox(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/mailbox")


@step("owner", PHONE)
async def the_view_is_called_what_it_is(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/payments")
    await sees(page, "Test data")
