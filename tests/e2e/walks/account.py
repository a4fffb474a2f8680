"""The account that people look at, and the operators' console."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect
from tests.e2e.walking import PHONE, WIDE, Walk, sees, step

HEIGHT = "document.documentElement.scrollHeight"
SMALL = {"width": 320, "height": 700}


async def to_overview(page: Page, walk: Walk) -> None:
    """Without the list of the first day."""
    await page.goto(f"{walk.account}/overview")
    away = page.get_by_role("button", name="Put this list away")
    if await away.count():
        await away.click()
        await away.wait_for(state="detached")
        await page.goto(f"{walk.account}/overview")
    await page.locator(".plot canvas").first.wait_for()


@step("owner", WIDE)
async def overview(page: Page, walk: Walk) -> None:
    """One screen."""
    await to_overview(page, walk)
    await sees(page, "Needs you", "Success rate")
    assert await page.evaluate(HEIGHT) <= WIDE["height"]


@step("owner", PHONE)
async def overview_on_a_phone(page: Page, walk: Walk) -> None:
    """Two screens."""
    await to_overview(page, walk)
    assert await page.evaluate(HEIGHT) <= 2 * PHONE["height"]


@step("owner", WIDE, scheme="dark", whole=False)
async def overview_tooltip_by_keys(page: Page, walk: Walk) -> None:
    await to_overview(page, walk)
    await page.locator(".plot [tabindex], .plot[tabindex]").first.focus()
    await page.keyboard.press("End")
    await page.keyboard.press("ArrowLeft")


@step("owner")
async def payments(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/payments")
    await expect(page.locator("main .whole-row").first).to_be_visible()


@step("owner", PHONE)
async def payments_on_a_phone(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/payments")


@step("owner", SMALL, scheme="dark")  # type: ignore[arg-type]
async def payments_on_the_smallest_phone(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/payments")
    assert await page.evaluate("document.documentElement.scrollWidth") <= SMALL["width"]


@step("owner")
async def payment(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/payments/{walk.shop.newest_payment()}")


@step("owner")
async def balance(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/balance")


@step("owner")
async def subscription(page: Page, walk: Walk) -> None:
    """Its future in one line, its past below."""
    found = await walk.first("/api/v1/subscriptions?status=Active&limit=1")
    await page.goto(f"{walk.account}/subscriptions/{found['id']}")
    await sees(page, "What comes", "What was")


@step("owner")
async def delivery_errors_all_at_once(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/account/{walk.shipping}/deliveries")
    await page.get_by_role("link", name=re.compile("^Confirm order")).first.click()
    await page.get_by_label("Carrier", exact=True).fill(" ")
    await page.locator("main form").first.evaluate("form => { form.noValidate = true; }")
    await page.get_by_role("button", name="Confirm").first.click()
    await expect(page.locator("[aria-invalid=true]")).to_have_count(2)


@step("owner")
async def pingbacks(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/pingbacks")


@step("operator", WIDE)
async def console_overview(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/operator/overview")


@step("operator", WIDE)
async def console_merchants(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/operator/merchants")


@step("operator")
async def console_search(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/operator/overview")
    await page.get_by_role("searchbox").first.fill("ada@example.com")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/search?*")


@step("operator")
async def console_payouts(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/operator/payouts")


@step("owner")
async def languages_per_person(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/account/security")
    await page.locator("select[name=language]").wait_for()
