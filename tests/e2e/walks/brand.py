"""Checkout, portal and mails as one brand."""

from __future__ import annotations

import re
import secrets

from playwright.async_api import Page, expect
from tests.e2e.month import DECLINED, Customer
from tests.e2e.running import fill_in
from tests.e2e.walking import PHONE, Walk, sees, step


async def to_checkout(page: Page, walk: Walk, article: str = "mug") -> None:
    _, checkout = walk.shop.order(article)
    await page.goto(walk.running.address + checkout)
    await page.get_by_label("Card number").wait_for()


async def to_portal(page: Page, walk: Walk, below: str = "") -> None:
    found = await walk.first("/api/v1/subscriptions?status=Active&limit=1")
    await page.goto(found["portal_url"] + below)


async def to_mail(page: Page, walk: Walk, words: str) -> None:
    """The newest mail that says so, as it is drawn."""
    await page.goto(f"{walk.running.address}/mailbox")
    await page.get_by_role("link").filter(has_text=re.compile(words)).first.click()
    await page.goto(f"{page.url}/html")


@step()
async def shop(page: Page, walk: Walk) -> None:
    await page.goto(walk.running.shop)


@step()
async def checkout(page: Page, walk: Walk) -> None:
    await to_checkout(page, walk)
    await sees(page, "Fern & Kettle")


@step(scheme="dark")
async def checkout_in_the_dark(page: Page, walk: Walk) -> None:
    await to_checkout(page, walk)


@step(screen=PHONE, whole=False)
async def checkout_on_a_phone(page: Page, walk: Walk) -> None:
    """The summary is one line, the button sticks to the bottom, the test band is a pill."""
    await to_checkout(page, walk)


@step(screen=PHONE, scheme="dark")
async def checkout_on_a_phone_in_the_dark(page: Page, walk: Walk) -> None:
    await to_checkout(page, walk)


@step(screen=PHONE, locale="ar")
async def checkout_in_arabic(page: Page, walk: Walk) -> None:
    _, path = walk.shop.order("mug")
    await page.goto(walk.running.address + path)


@step()
async def checkout_with_lines(page: Page, walk: Walk) -> None:
    """Pictures, quantities, subtotal and total."""
    asked = {
        "merchant_order_id": "B-1",
        "amount": "59.80",
        "description": "Breakfast for two",
        "currency": "USD",
        "line_items": [
            {"name": "Stoneware mug", "unit_price": "24.90", "quantity": 2},
            {"name": "House espresso", "unit_price": "10.00", "quantity": 1},
        ],
        "success_url": "https://shop.example/thanks",
    }
    headers = {"X-ApiKey": walk.running.private_key, "Idempotency-Key": secrets.token_hex(16)}
    made = await page.request.post(f"{walk.running.address}/api/v1/checkouts", data=asked, headers=headers)
    await page.goto((await made.json())["data"]["url"])
    await sees(page, "Stoneware mug", "59.80")


@step(screen=PHONE)
async def wrong_field_stays_red_while_focused(page: Page, walk: Walk) -> None:
    await to_checkout(page, walk)
    await page.get_by_label("Card number").fill("4242 4242 4242 4241")
    await page.get_by_label("Expiry date").fill("12 / 39")
    await page.get_by_label("Card number").focus()
    await expect(page.get_by_label("Card number")).to_have_attribute("aria-invalid", "true")


@step()
async def where_the_security_code_is(page: Page, walk: Walk) -> None:
    await to_checkout(page, walk)
    await page.get_by_label("Security code").focus()


@step(whole=False)
async def processing(page: Page, walk: Walk) -> None:
    """Fields can't be changed while the bank is asked."""
    await to_checkout(page, walk)
    await fill_in(page, "4242424242424242")
    await page.route("**/pay", lambda route: None)
    await page.get_by_role("button", name=re.compile("^Pay")).click()
    await sees(page, "Processing")


@step()
async def declined(page: Page, walk: Walk) -> None:
    await to_checkout(page, walk)
    await fill_in(page, DECLINED)
    await page.get_by_role("button", name=re.compile("^Pay")).click()
    await expect(page.get_by_role("alert").first).to_contain_text("declined")


@step()
async def checkout_of_a_subscription(page: Page, walk: Walk) -> None:
    await to_checkout(page, walk, "club")


@step()
async def portal(page: Page, walk: Walk) -> None:
    await to_portal(page, walk)
    await sees(page, "Fern & Kettle")


@step(screen=PHONE, scheme="dark")
async def portal_on_a_phone(page: Page, walk: Walk) -> None:
    await to_portal(page, walk)


@step()
async def portal_has_the_checkouts_card_form(page: Page, walk: Walk) -> None:
    await to_portal(page, walk, "/card")
    await page.get_by_label("Card number").type("42424242")
    await expect(page.get_by_label("Card number")).to_have_value("4242 4242")


@step()
async def portal_says_that_a_payment_failed(page: Page, walk: Walk) -> None:
    await page.goto(await walk.failing())
    await sees(page, "Payment failed")


@step()
async def portal_after_the_end(page: Page, walk: Walk) -> None:
    await walk.ask(walk.shop.buy, "club", Customer("Lise Meitner", "AT", "4242424242424242"))
    found = await walk.first("/api/v1/subscriptions?limit=1")
    await walk.ask(walk.shop.call, f"/api/subscription/{found['id']}/cancel", {})
    await page.goto(found["portal_url"])
    await sees(page, "Subscribe again")


@step(screen={"width": 700, "height": 900})
async def mail_of_a_receipt(page: Page, walk: Walk) -> None:
    await to_mail(page, walk, "receipt|Receipt|paid")


@step(screen={"width": 700, "height": 900})
async def mail_of_a_failed_payment(page: Page, walk: Walk) -> None:
    await to_mail(page, walk, "Payment failed|couldn|could not|failed")


@step("owner")
async def branding_with_a_live_miniature(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/settings/branding")


@step("owner")
async def branding_in_another_colour(page: Page, walk: Walk) -> None:
    """The miniatures of page and mail change while the colour is picked."""
    await page.goto(f"{walk.account}/settings/branding")
    await page.locator("input[type=color]").first.evaluate(
        "one => { one.value = '#a61e4d'; one.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    await page.wait_for_timeout(500)


@step()
async def paid(page: Page, walk: Walk) -> None:
    """Back in the shop."""
    await to_checkout(page, walk, "coffee")
    await fill_in(page, "4242424242424242")
    await page.get_by_role("button", name=re.compile("^Pay")).click()
    await page.wait_for_url("**/thanks?*")
    await sees(page, "Genuine")
