"""Renew the pictures of the README: `python -m tests.e2e.screenshots` (needs Chromium).

They show the sample shop after a month, the console of who has merchants with live money, and
whole pages.
"""

from __future__ import annotations

import asyncio
import io
import re
import secrets
import tempfile
from pathlib import Path

import pyotp
from PIL import Image
from playwright.async_api import Browser, Page, ViewportSize, async_playwright
from tests.e2e.conftest import FLAGS, chromium_path
from tests.e2e.live_month import earn, run_live
from tests.e2e.month import live_through
from tests.e2e.running import Running, fill_in

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DESKTOP: ViewportSize = {"width": 1140, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 700}
HIGHEST = 1600
"""What of a long page is shown."""


async def keep(page: Page, name: str) -> None:
    """Write what the page shows, from top to bottom, in few colours."""
    shot = await page.screenshot(full_page=True)
    with Image.open(io.BytesIO(shot)) as opened:
        whole = opened.convert("RGB")
    whole = whole.crop((0, 0, whole.width, min(whole.height, HIGHEST)))
    whole.quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
        IMAGES / f"{name}.png", optimize=True
    )


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


async def log_in_as_operator(page: Page, running: Running) -> None:
    """Make an operator with a second factor, who is logged in then."""
    made = await asyncio.to_thread(running.command, "operator", "create", "--email", "ops@example.com")
    await page.goto(made["link"])
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


async def see_checkout(page: Page, running: Running) -> None:
    """Take pictures of the shop and of what a customer has typed."""
    await page.goto(running.shop)
    await keep(page, "shop")
    await page.get_by_role("button", name=re.compile("Buy Stoneware mug")).click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    await fill_in(page, "4242 4242 4242 4242")
    await keep(page, "checkout")


async def see_account(page: Page, running: Running) -> None:
    """Take pictures of the merchant's account."""
    account = await log_in(page, running)
    away = page.get_by_role("button", name="Put this list away")
    await page.goto(f"{account}/overview")
    await away.click()
    await away.wait_for(state="detached")
    await page.goto(f"{account}/overview")
    await page.locator(".plot canvas").first.wait_for()
    await keep(page, "overview")
    await page.goto(f"{account}/payments?status=captured")
    await keep(page, "payments")
    await page.locator("main .whole-row").first.click()
    await page.wait_for_url("**/payments/*")
    await keep(page, "payment")
    await page.goto(f"{account}/subscriptions")
    await page.locator("main .whole-row").last.click()
    await page.wait_for_url("**/subscriptions/*")
    await keep(page, "subscription")
    await page.set_viewport_size(PHONE)
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    await page.goto(f"{account}/payments")
    await keep(page, "phone-dark")


async def take(browser: Browser, running: Running) -> None:
    """Take all pictures."""
    customer = await (await browser.new_context(locale="en-US", viewport=DESKTOP)).new_page()
    await see_checkout(customer, running)
    owner = await (await browser.new_context(locale="en-US", viewport=DESKTOP)).new_page()
    await see_account(owner, running)
    operator = await (await browser.new_context(locale="en-US", viewport=DESKTOP)).new_page()
    await log_in_as_operator(operator, running)
    await operator.goto(f"{running.address}/operator/overview")
    await operator.locator(".plot canvas").first.wait_for()
    await keep(operator, "operator")


async def main() -> None:
    """Run Paydesk for a while and take pictures of it."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, run_live(Path(folder)) as (running, mollie):
        with live_through(running):
            pass
        await earn(running, mollie, disputed=False)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
            await take(browser, running)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
