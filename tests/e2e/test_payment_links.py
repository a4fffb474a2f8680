"""A payment link in real browsers: made in the account, bought on a phone, and sold out then."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.e2e.looks import flaws
from tests.e2e.running import OpenPage, fill_in
from tests.e2e.test_account_getting_in import SignUp, base, complaints, sign_up
from tests.lengths import long, one_of
from tests.shopfront import offer_link
from tests.web.account.test_payment_links import picture

from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.selling.plans import Plan, Plans
from paydesk.domain.subscriptions.packages import make_version
from paydesk.domain.subscriptions.subscription_terms import Terms

__all__ = ["base", "complaints", "sign_up"]

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}


async def make(page: Page, **typed: str) -> str:
    """Make a link in the account, as somebody does who follows the menu; its address."""
    await page.get_by_role("link", name="Payment links").first.click()
    await page.get_by_role("link", name="New payment link").click()
    for label, text in typed.items():
        await page.get_by_label(label.replace("_", " ")).fill(text)
    await page.get_by_role("button", name="Make the link").click()
    await expect(page.get_by_text("The link is made.")).to_be_visible()
    return str(await page.locator("a[href*='/buy/']").get_attribute("href"))


@long
@pytest.mark.parametrize("scripts", one_of(2, [True, False]))
async def test_the_last_one_is_bought_on_a_phone(
    sign_up: SignUp, open_page: OpenPage, complaints: list[str], tmp_path: Path, scripts: bool
) -> None:
    page, _ = await sign_up()
    drawn = tmp_path / "mug.jpg"
    drawn.write_bytes(picture())
    await page.goto(re.sub(r"(/account/\d+).*", r"\1/links/new", page.url))
    await page.get_by_label("Picture").set_input_files(drawn)
    for label, text in {
        "Title": "A mug",
        "Currency": "USD",
        "Price, paid once": "4.00",
        "Most at once": "2",
        "Most in all": "2",
    }.items():
        await page.get_by_label(label).fill(text)
    assert await flaws(page) == []
    await page.get_by_role("button", name="Make the link").click()
    await expect(page.get_by_text("The link is made.")).to_be_visible()
    assert await flaws(page) == []
    address = str(await page.locator("a[href*='/buy/']").get_attribute("href"))
    phone = await open_page(address, java_script_enabled=scripts, **PHONE)
    await expect(phone.get_by_role("heading", name="A mug")).to_be_visible()
    drawn_at = phone.locator("img.offered")
    assert (await phone.request.get(str(await drawn_at.evaluate("one => one.src")))).ok if scripts else True
    if scripts:
        assert await flaws(phone) == []
    await phone.get_by_label("Quantity").fill("2")
    await phone.get_by_role("button", name="Continue to payment").click()
    await phone.wait_for_url("**/checkout/**")
    await expect(phone.locator(".items")).to_contain_text("2 × 4.00")
    if scripts:
        assert await flaws(phone) == []
    await fill_in(phone, "4242424242424242")
    await phone.get_by_role("button", name=re.compile("Pay")).click()
    await expect(phone.get_by_role("heading", name=re.compile("Thank you"))).to_be_visible()
    late = await open_page(address, **PHONE)
    await expect(late.get_by_role("heading", name="Sold out")).to_be_visible()
    assert await flaws(late) == []
    await page.reload()
    await expect(page.locator(".facts").first).to_contain_text("8.00 USD")
    await page.get_by_role("button", name="Switch it off").click()
    await expect(page.get_by_text("The link sells nothing any more.")).to_be_visible()
    assert await flaws(page) == []
    assert complaints == []


@long
async def test_a_year_is_chosen_on_a_phone(sign_up: SignUp, open_page: OpenPage, complaints: list[str]) -> None:
    page, _ = await sign_up()
    prices = {"Title": "Coffee club", "Currency": "USD", "Price_per_month": "5", "Price_per_year": "50"}
    phone = await open_page(await make(page, **prices), **PHONE)
    assert await flaws(phone) == []
    await phone.get_by_label(re.compile("every year")).check()
    await phone.get_by_role("button", name="Continue to payment").click()
    await phone.wait_for_url("**/checkout/**")
    await expect(phone.get_by_role("heading", name="Subscribe to Coffee club")).to_be_visible()
    await expect(phone.locator(".terms").first).to_contain_text("50.00")
    assert complaints == []


async def make_package(page: Page, name: str, month: str, year: str) -> None:
    """Make a package in the account, paid by the month or the year."""
    await page.goto(re.sub(r"(/account/\d+).*", r"\1/subscriptions/packages/new", page.url))
    for label, text in {"Name": name, "SKU": name.lower(), "Currency": "USD", "Price of a period": month}.items():
        await page.get_by_label(label, exact=True).fill(text)
    await page.get_by_role("button", name="Make the package").click()
    await page.get_by_role("link", name="New version").click()
    await page.get_by_label("Price of a period", exact=True).fill(year)
    await page.get_by_label("Counted in").first.select_option("y")
    await page.get_by_role("button", name="Make the version").click()
    await expect(page.get_by_text("is made. What runs stays")).to_be_visible()


@long
@pytest.mark.parametrize("scripts", one_of(2, [True, False]))
async def test_two_seats_by_the_year_are_bought_from_a_pricing_page_on_a_phone(
    sign_up: SignUp, open_page: OpenPage, complaints: list[str], scripts: bool
) -> None:
    page, _ = await sign_up()
    await page.goto(re.sub(r"(/account/\d+).*", r"\1/settings/shop", page.url))
    await page.get_by_label("Subscriptions to several of a thing are sold").check()
    await page.get_by_role("button", name="Save").first.click()
    for package in (("Small", "5", "50"), ("Large", "9", "90")):
        await make_package(page, *package)
    await page.get_by_role("link", name="Payment links").first.click()
    await page.get_by_role("link", name="New pricing page").click()
    for label, text in {"Title": "Our seats", "Most at once": "3", "Most in all": "2"}.items():
        await page.get_by_label(label).fill(text)
    for box in await page.get_by_role("checkbox", name=re.compile("version")).all():
        await box.check()
    await page.get_by_label("What it has, a line each").first.fill("A seat by the window\nTea")
    assert await flaws(page) == []
    await page.get_by_role("button", name="Make the page").click()
    await expect(page.get_by_text("The link is made.")).to_be_visible()
    assert await flaws(page) == []
    address = str(await page.locator("a[href*='/buy/']").get_attribute("href"))
    phone = await open_page(address, java_script_enabled=scripts, **PHONE)
    await expect(phone.get_by_role("heading", name="Our seats")).to_be_visible()
    await expect(phone.get_by_role("listitem").filter(has_text="A seat by the window").first).to_be_visible()
    await phone.get_by_role("link", name="every year").click()
    if scripts:
        assert await flaws(phone) == []
    large = phone.locator("form").filter(has=phone.get_by_role("heading", name="Large"))
    await expect(large).to_contain_text("90.00")
    await large.get_by_label("Quantity").fill("2")
    await large.get_by_role("button", name="Subscribe to Large").click()
    await phone.wait_for_url("**/checkout/**")
    await expect(phone.locator(".terms").first).to_contain_text("2 × 90.00 USD = 180.00 USD every year")
    await fill_in(phone, "4242424242424242")
    await phone.locator("#agree").check()
    await phone.get_by_role("button", name=re.compile("Pay")).click()
    await expect(phone.get_by_role("heading", name="Your subscription is set up")).to_be_visible()
    late = await open_page(address, **PHONE)
    await expect(late.get_by_role("heading", name="Sold out")).to_be_visible()
    await page.reload()
    await expect(page.locator(".facts").first).to_contain_text("180.00 USD")
    assert complaints == []


@long
@pytest.mark.parametrize("scripts", one_of(2, [True, False]))
async def test_one_package_is_bought_with_a_coupon_on_a_phone(
    sign_up: SignUp, open_page: OpenPage, complaints: list[str], scripts: bool
) -> None:
    page, _ = await sign_up()
    await make_package(page, "Club", "5", "50")
    await page.goto(re.sub(r"(/account/\d+).*", r"\1/coupons", page.url))
    await page.get_by_role("checkbox", name=re.compile("type")).first.check()
    await page.get_by_role("button", name="Save").click()
    await page.goto(re.sub(r"(/account/\d+).*", r"\1/coupons/new", page.url))
    await page.locator("[name=code]").fill("spring")
    await page.locator("[name=percent]").fill("10")
    await page.locator("form:has([name=percent]) button.btn-primary").click()
    await page.goto(re.sub(r"(/account/\d+).*", r"\1/links/new/packages", page.url))
    await page.get_by_label("Title").fill("Join the club")
    for box in await page.get_by_role("checkbox", name=re.compile("version")).all():
        await box.check()
    await page.get_by_role("button", name="Make the page").click()
    address = str(await page.locator("a[href*='/buy/']").get_attribute("href"))
    phone = await open_page(address, java_script_enabled=scripts, **PHONE)
    await phone.get_by_label(re.compile("every year")).check()
    if scripts:
        assert await flaws(phone) == []
    await phone.get_by_role("button", name="Continue to payment").click()
    await phone.wait_for_url("**/checkout/**")
    await phone.locator("#coupon").fill("Spring")
    await phone.get_by_role("button", name="Apply").click()
    await expect(phone.locator(".terms").first).to_contain_text("45.00 USD every year")
    await fill_in(phone, "4242424242424242")
    await phone.locator("#agree").check()
    await phone.get_by_role("button", name=re.compile("Pay")).click()
    await expect(phone.get_by_role("heading", name="Your subscription is set up")).to_be_visible()
    await page.reload()
    await expect(page.locator(".facts").first).to_contain_text("45.00 USD")
    assert complaints == []


LARGE = Decimal("12345678.90")
LINES = """
() => Math.max(...[...document.querySelectorAll(".amount bdi")].map((one) => one.getClientRects().length))
"""
"""On how many lines an amount stands."""
GAPS = """
() => [...document.querySelectorAll(".has + .main")].map((button) => {
  const list = button.previousElementSibling;
  return button.getBoundingClientRect().top - list.lastElementChild.getBoundingClientRect().bottom;
})
"""
"""Pixels between what a package has and the button below."""


@pytest.mark.parametrize("width", [1280, 390, 320])
async def test_a_large_amount_is_not_broken_amid_its_currency(
    sign_up: SignUp, open_page: OpenPage, desk: Desk, base: str, width: int
) -> None:
    page, _ = await sign_up()
    shop = Shop(int(page.url.split("/account/")[1].split("/")[0]), live=False)
    club = Terms("Club", "club", "USD", LARGE, Period(1, "month"), None, 0)
    made = [
        (await make_version(desk.database, shop, terms, now=utc_now())).version_id
        for terms in (club, replace(club, name="Tea", sku_id="tea", price=Decimal("9.00")))
    ]
    plans = Plans((Plan((made[1],), "Tea\nA mug\nA friend"), Plan((made[0],), "All of it")))
    for link in (
        await offer_link(desk.database, shop, price=LARGE, most_quantity=2),
        await offer_link(desk.database, shop, price=None, plans=plans),
    ):
        address = f"{base}/sandbox/buy/{link.token(desk.vault)}"
        shown = await open_page(address, viewport={"width": width, "height": 800})
        assert await shown.evaluate(LINES) == 1
        assert all(gap >= 12 for gap in await shown.evaluate(GAPS))


async def test_what_is_not_offered_any_more_is_told_apart_from_the_words_above(
    sign_up: SignUp, open_page: OpenPage, desk: Desk, base: str
) -> None:
    page, _ = await sign_up()
    shop = Shop(int(page.url.split("/account/")[1].split("/")[0]), live=False)
    club = Terms("Club", "club", "USD", Decimal("9.00"), Period(1, "month"), None, 0)
    made = [
        (await make_version(desk.database, shop, terms, now=utc_now())).version_id
        for terms in (club, replace(club, name="Tea", sku_id="tea"))
    ]
    link = await offer_link(desk.database, shop, price=None, plans=Plans(tuple(Plan((one,), "") for one in made)))
    shown = await open_page(f"{base}/sandbox/buy/{link.token(desk.vault)}")
    await shown.locator("[name=version]").first.evaluate("(one) => { one.value = '999999' }")
    await shown.locator("form .main").first.click()
    notice = shown.get_by_role("alert")
    await expect(notice).to_have_text("This is not offered any more. Choose again.")
    above, told = await shown.locator(".about").bounding_box(), await notice.bounding_box()
    assert above is not None
    assert told is not None
    assert told["y"] - above["y"] - above["height"] >= 16
