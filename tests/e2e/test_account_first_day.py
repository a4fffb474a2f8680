"""A merchant's first day, from the sign-up to a colleague in the team,
in a real browser against `paydesk run`.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from starlette.types import ASGIApp
from tests.e2e.conftest import serving
from tests.e2e.looks import flaws
from tests.e2e.running import PATIENCE_MS, OpenPage, Running, fill_in, load_until
from tests.e2e.test_account_getting_in import PASSWORD, set_up_second_factor
from tests.lengths import WHOLE, long

from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.web.demo.routes import create_shop
from paydesk_client import Gateway

pytestmark = pytest.mark.browser


async def look_at(page: Page, heading: str = "") -> None:
    """What is shown can be used by everybody; with a heading, once the page with it is there.

    In the short form axe does not look: it sees the same pages elsewhere.
    """
    if heading:
        await expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
        await page.wait_for_load_state()
    assert not WHOLE or await flaws(page) == []


async def sign_up(open_page: OpenPage, running: Running, email: str) -> tuple[Page, str]:
    """Open an account; its page, and the merchant's address."""
    page = await open_page(f"{running.address}/account/signup")
    page.set_default_timeout(PATIENCE_MS)
    await look_at(page)
    await page.get_by_label("Name of your shop").fill("Corner Shop")
    await page.get_by_label("Your name").fill("Ada Lovelace")
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Open the account").click()
    await page.wait_for_url(re.compile(r"/account/\d+/"))
    path = re.match(r".*/account/\d+", page.url)
    assert path is not None
    return page, path[0]


async def buy(open_page: OpenPage, shop: str, article: str, pay: str) -> str:
    """Buy in the shop as a customer; the order's reference,
    once the shop's server has been told.
    """
    page = await open_page(shop)
    page.set_default_timeout(PATIENCE_MS)
    await page.get_by_role("button", name=re.compile(rf"(Buy|Subscribe to) {article}")).click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    await fill_in(page, "4242424242424242")
    agreed = page.get_by_role("checkbox")
    if await agreed.count():
        await agreed.first.check()
    await page.get_by_role("button", name=pay).click()
    await page.wait_for_url(f"{shop}/thanks?order=*")
    await expect(page.get_by_text("Genuine", exact=False).first).to_be_visible(timeout=PATIENCE_MS)
    found = re.search(r"order=([\w-]+)", page.url)
    assert found is not None
    return found[1]


async def copy_keys(page: Page, account: str) -> tuple[str, str]:
    """Read the shop's keys from the one page that shows them."""
    await page.goto(f"{account}/developers")
    await look_at(page)
    await page.get_by_role("link", name="See your keys").click()
    await look_at(page, "Your keys")
    await page.get_by_role("button", name="Show my keys").click()
    await look_at(page, "Your keys")
    public, private = [await page.get_by_label(name, exact=True).inner_text() for name in ("Public key", "Private key")]
    await page.get_by_role("link", name="I have copied both").click()
    await expect(page.locator("main")).to_contain_text(public)
    await expect(page.locator("main")).not_to_contain_text(private)
    return public, private


async def let_a_month_pass(page: Page, account: str) -> None:
    """Move the test clock, which renews the subscription."""
    await page.goto(f"{account}/developers/clock")
    await page.get_by_label("Another period").fill("1m")
    await page.get_by_role("button", name="Move the clock").click()
    await expect(page.get_by_role("status").filter(has_text="Renewed: 1")).to_be_visible()
    await look_at(page)


async def give_part_back(page: Page, account: str, order: str) -> None:
    """Find a payment by its order, and refund part of it."""
    await page.goto(f"{account}/payments")
    await look_at(page)
    await page.get_by_label("Search").fill(order)
    await page.get_by_role("button", name="Apply").click()
    await page.get_by_role("link", name=order).click()
    await page.get_by_label("Amount in USD").fill("4.00")
    await page.get_by_role("button", name="Refund this part").click()
    await look_at(page)
    await page.get_by_role("button", name="Refund 4.00 USD").click()
    await expect(page.get_by_text("4.00 USD is given back to the customer.")).to_be_visible()
    await look_at(page)


async def resend(page: Page, account: str) -> None:
    """Send a payment's pingback once more, and see both attempts in the log."""
    await page.goto(f"{account}/pingbacks")
    await look_at(page)
    await page.locator("main table a").last.click()
    await page.wait_for_url(re.compile(r"/pingbacks/\d+"))
    await page.get_by_role("button", name="Send again").click()
    await expect(page.locator("main")).to_contain_text(re.compile("attempt 2", re.IGNORECASE), timeout=PATIENCE_MS)
    await look_at(page)


async def cancel(page: Page, account: str) -> None:
    """Cancel the only subscription."""
    await page.goto(f"{account}/subscriptions")
    await look_at(page)
    await page.locator("main table a").first.click()
    await look_at(page, "Coffee club")
    await page.get_by_role("link", name="Cancel it").click()
    await look_at(page, "Cancel the subscription to Coffee club?")
    await page.get_by_role("button", name="Cancel the subscription").click()
    await expect(page.get_by_text("The subscription is cancelled; your server is told.")).to_be_visible()


async def link_in_mailbox(open_page: OpenPage, running: Running, email: str, kind: str) -> str:
    """The link of the first mail to an address."""
    mailbox = await open_page(f"{running.address}/mailbox")
    mails = mailbox.get_by_role("link").filter(has_text=email)

    async def is_there() -> bool:
        return await mails.count() > 0

    await load_until(mailbox, is_there)
    await mails.last.click()
    link = re.search(rf"\S+/account/{kind}/\S+", await mailbox.locator("article pre").inner_text())
    assert link is not None
    return link[0]


async def confirm_address(open_page: OpenPage, running: Running, page: Page, email: str) -> None:
    """Follow the link of the mail that came after signing up."""
    await page.goto(await link_in_mailbox(open_page, running, email, "email"))
    await page.locator("main form button").first.click()


async def invite(open_page: OpenPage, running: Running, page: Page, account: str) -> Page:
    """Invite a colleague, who joins by the link in the mail; the colleague's browser."""
    email = f"grace-{secrets.token_hex(6)}@shop.example"
    await page.goto(f"{account}/settings/team")
    await look_at(page)
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_label("Viewer").check()
    await page.get_by_role("button", name="Send the invitation").click()
    await expect(page.get_by_role("status")).to_contain_text(email)
    colleague = await open_page(await link_in_mailbox(open_page, running, email, "invitation"))
    await look_at(colleague)
    await colleague.get_by_label("Your name").fill("Grace Hopper")
    await colleague.get_by_label("Choose a password").fill(PASSWORD)
    await colleague.get_by_role("button", name="Join the team").click()
    await expect(colleague.get_by_role("status")).to_contain_text("Welcome to the team")
    return colleague


@long
async def test_a_merchants_first_day(open_page: OpenPage, running: Running, tmp_path: Path) -> None:
    email = f"ada-{secrets.token_hex(6)}@shop.example"
    page, account = await sign_up(open_page, running, email)
    await confirm_address(open_page, running, page, email)
    await set_up_second_factor(page, running.address)
    await look_at(page)
    gateway = Gateway(*await copy_keys(page, account), base_url=running.address)
    opened: list[ASGIApp] = []

    async def late(scope: Any, receive: Any, send: Any) -> None:
        """A shop opens once its address is known, since it names that to Paydesk."""
        await opened[0](scope, receive, send)

    async with serving(late) as shop:
        opened.append(create_shop(gateway, gateway, base_url=shop, folder=tmp_path, time_to_ship=TIME_TO_SHIP))
        order = await buy(open_page, shop, "House espresso", "Pay 10.00 USD")
        await give_part_back(page, account, order)
        await resend(page, account)
        await buy(open_page, shop, "Coffee club", "Pay 5.00 USD")
        await let_a_month_pass(page, account)
        await cancel(page, account)
    colleague = await invite(open_page, running, page, account)
    await colleague.goto(f"{account}/payments")
    await expect(colleague.locator("main")).to_contain_text(order)
    for forbidden in ("settings/team", "pingbacks", "settings/audit"):
        await colleague.goto(f"{account}/{forbidden}")
        await expect(colleague.get_by_role("heading", name="Your role doesn't allow this")).to_be_visible()
    await look_at(colleague)
    await page.goto(f"{account}/settings/audit")
    await look_at(page)
