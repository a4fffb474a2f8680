"""The account that people look at, and the operators' console."""

from __future__ import annotations

import json
import re

from playwright.async_api import Page, expect
from tests.e2e.live_month import DISPUTED, TRADERS
from tests.e2e.walking import PHONE, WIDE, Walk, sees, step

from paydesk.web.page_headers import REPORTS

HEIGHT = "document.documentElement.scrollHeight"
EUROS = re.compile(r"€[\d,]+\.\d\d")
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


@step("owner", WIDE, locale="ar")
async def payments_in_arabic(page: Page, walk: Walk) -> None:
    """Where there is room for the reference, which can be copied."""
    await page.goto(f"{walk.account}/payments")
    await expect(page.locator("main .reference").first).to_be_visible()


@step("owner", PHONE, locale="ar")
async def payments_in_arabic_on_a_phone(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/payments")


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
    """The live money of all merchants with its change, and what waits for a hand."""
    await page.goto(f"{walk.running.address}/operator/overview")
    await page.locator(".plot canvas").first.wait_for()
    await sees(page, "Chargebacks without evidence", "The period before", "Went live within 30 days")
    figures = page.locator(".figure")
    for label, value in (
        ("Volume", walk.sold.volume),
        ("Successful payments", str(walk.sold.paid)),
        ("Failed payments", str(walk.sold.declined)),
    ):
        shown = figures.filter(has_text=label).locator(".value")
        await expect(shown).to_contain_text(re.compile(rf"^\s*{re.escape(value)}\s+[+−-][\d,]+%"))
    held = page.get_by_role("region", name="Held for merchants").locator(".sums div")
    for name in ("Available", "Pending", "Reserve"):
        await expect(held.filter(has_text=name)).to_contain_text(EUROS)


@step("operator", WIDE)
async def console_merchants(page: Page, walk: Walk) -> None:
    """What each that is live sold, what it may be paid, and which shares are worth a look."""
    await page.goto(f"{walk.running.address}/operator/merchants?standing=live")
    for one in TRADERS:
        cells = page.get_by_role("row").filter(has_text=one.name).get_by_role("cell")
        await expect(cells.nth(2)).to_have_text(walk.sold.of(one.name).volume)
        await expect(cells.nth(3)).to_have_text(EUROS)
    risks = page.locator("main td .badge", has_text="%")
    await expect(risks).to_have_count(2)


@step("operator", WIDE, whole=False)
async def console_merchant(page: Page, walk: Walk) -> None:
    """One of them, with its balance and its days."""
    await page.goto(f"{walk.running.address}/operator/merchants?q=Harbour")
    await page.get_by_role("link", name=re.compile("^Harbour Bicycles")).first.click()
    await page.locator(".plot canvas").first.wait_for()
    await sees(page, walk.sold.of("Harbour Bicycles").volume)
    balance = page.get_by_role("region", name="Live balance")
    await expect(balance.locator("td .money").first).to_have_text(EUROS)


@step("operator", WIDE)
async def console_chargebacks(page: Page, walk: Walk) -> None:
    """Of live money, which waits for somebody's word."""
    await page.goto(f"{walk.running.address}/operator/chargebacks?state=open")
    await expect(page.get_by_role("row").filter(has_text=DISPUTED)).to_contain_text("€19.00")


@step("operator")
async def console_search(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/operator/overview")
    await page.get_by_role("searchbox").first.fill("ada@example.com")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/search?*")


@step("operator")
async def console_payouts(page: Page, walk: Walk) -> None:
    """Of live money: each merchant has some that may be sent."""
    await page.goto(f"{walk.running.address}/operator/payouts")
    for one in TRADERS:
        row = page.get_by_role("row").filter(has_text=one.name)
        await expect(row).to_contain_text(EUROS)
        await expect(row).to_contain_text("Ready")


@step("operator")
async def console_payouts_of_test_money(page: Page, walk: Walk) -> None:
    """Of test money, with the file for the bank a click away."""
    await page.goto(f"{walk.running.address}/operator/payouts?side=test")
    await sees(page, "Files for the bank", "Ready")


@step("owner")
async def languages_per_person(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.running.address}/account/security")
    await page.locator("select[name=language]").wait_for()


@step("owner", locale="de-DE")
async def audit_log_in_german(page: Page, walk: Walk) -> None:
    """Of who has chosen no language, as the browser asks for it."""
    await page.goto(f"{walk.account}/settings/audit")
    await sees(page, "Protokoll", "Zahlung")


@step("operator", WIDE, locale="de-DE")
async def console_alarms_in_german(page: Page, walk: Walk) -> None:
    report = {
        "document-uri": f"{walk.running.address}/checkout/x",
        "effective-directive": "script-src-elem",
        "blocked-uri": "https://evil.example/x.js",
    }
    await page.request.post(
        f"{walk.running.address}{REPORTS}",
        data=json.dumps({"csp-report": report}),
        headers={"Content-Type": "application/csp-report"},
    )
    await page.goto(f"{walk.running.address}/operator/alarms")
    await sees(page, "ein Browser meldet", "evil.example")
