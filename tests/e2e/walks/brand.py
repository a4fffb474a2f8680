"""Checkout, portal and mails as one brand."""

from __future__ import annotations

import io
import re
import secrets

from PIL import Image, ImageDraw
from playwright.async_api import Page, expect
from tests.e2e.month import DECLINED, Customer
from tests.e2e.running import fill_in
from tests.e2e.walking import PHONE, Walk, press, sees, step
from tests.e2e.walks.traps import signed
from tests.servers import answering


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
    headers = {"X-ApiKey": walk.running.private_key, "Idempotency-Key": secrets.token_hex(16)}
    with answering(200, picture(), at="", **{"Content-Type": "image/png"}) as (shelf, _):
        asked = {
            "merchant_order_id": "B-1",
            "amount": "59.80",
            "description": "Breakfast for two",
            "currency": "USD",
            "line_items": [
                {"name": "Stoneware mug", "unit_price": "24.90", "quantity": 2, "picture_url": f"{shelf}/mug.png"},
                {"name": "House espresso", "unit_price": "10.00", "quantity": 1},
            ],
            "success_url": "https://shop.example/thanks",
        }
        made = await page.request.post(f"{walk.running.address}/api/v1/checkouts", data=asked, headers=headers)
    await page.goto((await made.json())["data"]["url"])
    await sees(page, "Stoneware mug", "59.80")
    await expect(page.locator("img[src*='/picture/']").first).to_be_visible()


def picture() -> bytes:
    """A mug, as shops show theirs."""
    mug = Image.new("RGB", (192, 192), "#cfe0dc")
    drawn = ImageDraw.Draw(mug)
    drawn.ellipse((110, 70, 164, 130), outline="#2f6b5e", width=12)
    drawn.rounded_rectangle((48, 56, 128, 144), 14, fill="#2f6b5e")
    kept = io.BytesIO()
    mug.save(kept, "PNG")
    return kept.getvalue()


@step(screen=PHONE, whole=True)
async def checkout_says_whose_it_is(page: Page, walk: Walk) -> None:
    """Legal name, support, terms and privacy, as the operator has accepted them."""
    live = await walk.live_shop()
    await page.set_content(signed(live.gateway))
    await press(page, "Pay")
    await page.wait_for_url("**/checkout/*")
    await sees(page, "Corner Shop Ltd", "help@shop.example", "Terms", "Privacy")


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
    await expect(page.get_by_text("Genuine", exact=True).first).to_be_visible()
