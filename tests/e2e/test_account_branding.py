"""The branding page in a real browser: checkout page and mail in small follow what is chosen."""

from __future__ import annotations

import base64
import io
import re

import pytest
from PIL import Image
from playwright.async_api import Locator, Page, expect
from tests.e2e.looks import flaws
from tests.e2e.test_account_getting_in import RED_DOT, SignUp, base, complaints, sign_up
from tests.lengths import longer

__all__ = ["base", "complaints", "sign_up"]

pytestmark = pytest.mark.browser


def picture(width: int, height: int) -> bytes:
    """A PNG picture, white all over."""
    written = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(written, "PNG")
    return written.getvalue()


GREEN, RED = "rgb(10, 102, 64)", "rgb(194, 24, 91)"
OURS = "rgb(23, 70, 162)"
WIDE = {"name": "wide.png", "mimeType": "image/png", "buffer": picture(8, 2)}
DOT = {"name": "dot.png", "mimeType": "image/png", "buffer": base64.b64decode(RED_DOT)}


async def branding_of(sign_up: SignUp, **options: object) -> Page:
    page, _ = await sign_up(**options)
    await page.goto(re.sub(r"(/account/\d+).*", r"\1/settings/branding", page.url))
    return page


def button(page: Page, kind: str) -> Locator:
    """The button of a page in small."""
    return page.locator(f".mini.{kind} .button")


@longer
async def test_colour_and_logo_are_seen_before_they_are_saved(sign_up: SignUp, complaints: list[str]) -> None:
    page = await branding_of(sign_up)
    assert await flaws(page) == []
    light, mail = button(page, "desk.light"), button(page, "mail.light")
    await expect(light).to_have_css("background-color", OURS)

    await page.get_by_label("Pick the accent colour").fill("#0a6640")
    for kind in ("desk.light", "phone.light", "mail.light"):
        await expect(button(page, kind)).to_have_css("background-color", GREEN)
    dark = await button(page, "phone.dark").evaluate("one => getComputedStyle(one).backgroundColor")
    assert dark not in (GREEN, OURS)
    await expect(page.get_by_label("Accent colour", exact=False).first).to_have_value("#0a6640")

    await page.locator("#f-logo").set_input_files(DOT)  # type: ignore[arg-type]
    drawn = page.locator(".mini [data-logo]:visible")
    await expect(drawn).to_have_count(6)
    await expect(drawn.first).to_have_js_property("naturalWidth", 1)
    await expect(page.locator(".mini .letter:visible")).to_have_count(0)
    assert await flaws(page) == []

    await page.get_by_role("button", name="Take ours").click()
    await expect(light).to_have_css("background-color", OURS)
    await expect(mail).not_to_have_css("background-color", GREEN)
    assert complaints == []


async def test_a_colour_that_nobody_can_read_is_told_at_once(sign_up: SignUp) -> None:
    page = await branding_of(sign_up)
    field = page.get_by_label("Accent colour", exact=False).first
    await field.fill("#ffcc00")
    await expect(page.get_by_role("status")).to_contain_text("a darker shade of it, would do")
    await expect(button(page, "desk.light")).to_have_css("background-color", OURS)
    await field.fill("#c2185b")
    await expect(page.get_by_role("status")).to_have_count(0)
    await expect(button(page, "desk.light")).to_have_css("background-color", RED)


async def test_without_scripts_the_pages_in_small_follow_what_is_saved(sign_up: SignUp) -> None:
    page = await branding_of(sign_up, java_script_enabled=False)
    await expect(page.get_by_label("Pick the accent colour")).to_be_hidden()
    await page.locator("#f-accent").fill("#0a6640")
    await page.locator("#f-logo").set_input_files(DOT)  # type: ignore[arg-type]
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_be_visible()
    await expect(page.locator(".mini [data-logo]:visible")).to_have_count(6)
    await expect(button(page, "mail.light")).to_have_css("background-color", GREEN)


async def test_a_logo_for_dark_pages_is_seen_on_these_alone(sign_up: SignUp) -> None:
    page = await branding_of(sign_up)
    await page.locator("#f-logo").set_input_files(DOT)  # type: ignore[arg-type]
    await page.locator("#f-dark_logo").set_input_files(WIDE)  # type: ignore[arg-type]
    for ground, width in (("light", 1), ("dark", 8)):
        drawn = page.locator(f".mini.{ground} [data-logo]:visible")
        await expect(drawn).to_have_count(3)
        await expect(drawn.first).to_have_js_property("naturalWidth", width)
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_be_visible()
    await expect(page.locator(".mini.dark [data-logo]").first).to_have_js_property("naturalWidth", 8)
    await expect(page.locator(".mini.light [data-logo]").first).to_have_js_property("naturalWidth", 1)
