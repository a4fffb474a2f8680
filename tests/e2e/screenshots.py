"""Renew the pictures of the README: `python -m tests.e2e.screenshots` (needs Chromium)."""

from __future__ import annotations

import asyncio
import re
import secrets
import tempfile
from pathlib import Path

import pyotp
from playwright.async_api import Browser, Page, async_playwright
from tests.e2e.conftest import FLAGS, chromium_path
from tests.e2e.running import Running, fill_in, run_paydesk

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESKTOP = {"width": 760, "height": 480}
WIDE = {"width": 1140, "height": 720}
PHONE = {"width": 390, "height": 700}


async def keep(page: Page, name: str) -> None:
    """Write what the page shows."""
    path = IMAGES / f"{name}.png"
    await page.screenshot(path=path)


async def buy(page: Page, running: Running, article: str, pay: str) -> None:
    """Buy an article of the sample shop."""
    await page.goto(running.shop)
    await page.get_by_role("button", name=re.compile(rf"(Buy|Subscribe to) {article}")).click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    if article == "House espresso":
        await keep(page, "checkout")
    await fill_in(page, "4242424242424242")
    if await page.get_by_role("checkbox").count():
        await page.get_by_role("checkbox").first.check()
    await page.get_by_role("button", name=pay).click()
    await page.wait_for_url("**/thanks?order=*")
    await page.get_by_text("Genuine").first.wait_for()


async def log_in(page: Page, running: Running) -> str:
    """Log in as the sample shop's owner; the address of the merchant."""
    folder = Path(running.environment["PAYDESK_DATA_DIR"]) / "demo" / "owner"
    _, email, password = folder.read_text().splitlines()
    await page.goto(f"{running.address}/account/login")
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(re.compile(r"/account/\d+/"))
    return f"{running.address}/account/{folder.read_text().split()[0]}"


async def take(browser: Browser, running: Running) -> None:
    """Take all pictures."""
    page = await (await browser.new_context(locale="en-US", viewport=DESKTOP)).new_page()  # type: ignore[arg-type]
    await page.goto(running.shop)
    await keep(page, "shop")
    await buy(page, running, "House espresso", "Pay 10.00 USD")
    await buy(page, running, "Coffee club", "Pay 5.00 USD")
    account = await log_in(page, running)
    await page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    await page.goto(f"{account}/overview")
    await keep(page, "overview")
    await page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    await page.goto(f"{account}/payments")
    await keep(page, "payments")
    await page.locator("main table a").last.click()
    await keep(page, "payment")
    await page.goto(f"{account}/subscriptions")
    await page.locator("main table a").first.click()
    await keep(page, "subscription")
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await page.goto(f"{account}/payments")
    await keep(page, "phone-dark")
    await operate(browser, running)


async def operate(browser: Browser, running: Running) -> None:
    """Take a picture of the operator's console."""
    page = await (await browser.new_context(locale="en-US", viewport=WIDE)).new_page()  # type: ignore[arg-type]
    link = running.command("operator", "create", "--email", "ops@example.com")["link"]
    await page.goto(link)
    password = secrets.token_urlsafe(16)
    await page.get_by_label("New password").fill(password)
    await page.get_by_role("button", name="Take this password").click()
    await page.get_by_label("E-mail address").fill("ops@example.com")
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Log in").click()
    secret = page.get_by_label("Secret", exact=True)
    await secret.wait_for()
    await page.get_by_role("textbox", name="Code").fill(pyotp.TOTP(await secret.inner_text()).now())
    await page.get_by_role("button", name="Set it up").click()
    await page.locator(".codes").wait_for()
    await page.goto(f"{running.address}/operator/overview")
    await keep(page, "operator")


async def main() -> None:
    """Run Paydesk for a while and take pictures of it."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, run_paydesk(Path(folder)) as running:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
            await take(browser, running)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
