"""The customer's pages in every language, as a browser shows them:
right to left too, and on the smallest screen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from tests.e2e.looks import Look, violations
from tests.lengths import long, one_of
from tests.web.every_page import PAGES

from paydesk.web.assets import static_app
from paydesk.web.checkout.pages import CATALOGUES

pytestmark = pytest.mark.browser

DIFFERENT = [name for name in PAGES if "notice" not in name]
"""Pages that differ in more than one sentence."""

CROWDED = ("subscribing", "errors 1", "form error", "portal, failing", "portal, errors 1", "portal, stopped")
LTR_FIELDS = ("email", "number", "expiry", "cvc")

STICKS_OUT = """
() => [...document.querySelectorAll("main, main *:not(.hidden):not(option)")]
  .filter((one) => one.checkVisibility() && !one.closest(".hidden"))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 || one.getBoundingClientRect().left < -1)
  .map((one) => one.outerHTML.slice(0, 80))
"""

ROOM_FOR = """
(marks) => {
  const input = marks.parentElement.querySelector("input").getBoundingClientRect();
  const { paddingLeft, paddingRight } = getComputedStyle(marks.parentElement.querySelector("input"));
  const taken = marks.getBoundingClientRect();
  return document.dir === "rtl"
    ? input.left + parseFloat(paddingLeft) - taken.right
    : taken.left - (input.right - parseFloat(paddingRight));
}
"""

Show = Callable[..., Coroutine[Any, Any, Page]]


@pytest.fixture(scope="module")
async def base(serve: Callable[[Any], AbstractAsyncContextManager[str]]) -> AsyncIterator[str]:
    async def show(request: Request) -> Response:
        return PAGES[request.path_params["name"]](request.headers["accept-language"])

    async with serve(Starlette(routes=[Mount("/static", static_app()), Route("/{name}", show)])) as base:
        yield base


@pytest.fixture
def show(look: Look, base: str) -> Show:
    async def show(name: str, locale: str, **options: Any) -> Page:
        page = await look(f"{base}/{name}", locale=locale, **options)
        for folded in await page.locator("summary:visible").all():
            await folded.click()
        return page

    return show


@pytest.mark.parametrize("name", one_of(18, DIFFERENT))
async def test_every_page_of_an_arabic_visitor_runs_from_right_to_left(show: Show, name: str) -> None:
    page = await show(name, "ar-EG", color_scheme="dark" if DIFFERENT.index(name) % 2 else "light")
    html = page.locator("html")
    await expect(html).to_have_attribute("lang", "ar")
    await expect(html).to_have_attribute("dir", "rtl")
    assert await page.locator("main").evaluate("one => getComputedStyle(one).direction") == "rtl"


@long
@pytest.mark.parametrize("name", DIFFERENT)
async def test_axe_reports_nothing_on_every_page_of_an_arabic_visitor(show: Show, name: str) -> None:
    page = await show(name, "ar-EG", color_scheme="dark" if DIFFERENT.index(name) % 2 else "light")
    assert await violations(page) == []


@long
@pytest.mark.parametrize("name", DIFFERENT)
async def test_axe_reports_nothing_on_every_page_of_a_german_or_a_japanese_visitor(show: Show, name: str) -> None:
    for locale in ("de-DE", "ja-JP"):
        page = await show(name, locale)
        await expect(page.locator("html")).to_have_attribute("lang", locale[:2])
        # Its colours are those of the Arabic page.
        assert await violations(page, colours=False) == []


async def test_what_is_typed_stays_left_to_right_on_an_arabic_page(show: Show) -> None:
    page = await show("subscribing", "ar-EG")
    for field in LTR_FIELDS:
        direction = await page.locator(f"#{field}").evaluate("one => getComputedStyle(one).direction")
        assert (field, direction) == (field, "ltr")
    assert await page.locator("#holder").evaluate("one => getComputedStyle(one).direction") == "rtl"
    assert await page.locator(".amount bdi").evaluate("one => getComputedStyle(one).direction") == "ltr"
    page = await show("portal, errors 1", "ar-EG")
    for field in ("number", "expiry", "cvc"):
        assert await page.locator(f"#{field}").evaluate("one => getComputedStyle(one).direction") == "ltr"


@pytest.mark.parametrize("width", one_of(2, [320, 1200]))
@pytest.mark.parametrize("locale", ["en", "ar"])
async def test_the_card_number_never_runs_under_its_brand(show: Show, locale: str, width: int) -> None:
    page = await show("payment", locale, viewport={"width": width, "height": 640})
    await page.locator("#number").press_sequentially("4242424242424242")
    assert await page.locator("#mark").evaluate(ROOM_FOR) >= 0


async def test_the_arrow_back_points_to_where_an_arabic_reader_came_from(show: Show) -> None:
    for locale, scale in (("ar", "-1 1"), ("en", "none")):
        page = await show("payment", locale)
        assert await page.locator(".shop .icon").evaluate("one => getComputedStyle(one).scale") == scale


DIGITS = ("٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", "۴۲۴۲۴۲۴۲۴۲۴۲۴۲۴۲", "４２４２４２４２４２４２４２４２")
"""The same card number, as keyboards of other scripts type it."""


@pytest.mark.parametrize("digits", one_of(3, DIGITS))
async def test_digits_of_any_keyboard_become_those_of_the_card(show: Show, digits: str) -> None:
    page = await show("payment", "ar")
    await page.locator("#number").press_sequentially(digits)
    await expect(page.locator("#number")).to_have_value("4242 4242 4242 4242")
    await page.locator("#cvc").press_sequentially(digits[1:4])
    await expect(page.locator("#cvc")).to_have_value("242")
    await page.locator("#expiry").press_sequentially("١٢٣٠")
    await expect(page.locator("#expiry")).to_have_value("12 / 30")


@pytest.mark.parametrize("language", one_of(6, CATALOGUES.languages))
async def test_nothing_scrolls_sideways_at_320_pixels_in_any_language(show: Show, base: str, language: str) -> None:
    page = await show(CROWDED[0], language, viewport={"width": 320, "height": 640})
    for name in CROWDED:
        await page.goto(f"{base}/{name}")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 320, name
        assert await page.evaluate(STICKS_OUT) == [], name


@pytest.mark.parametrize(
    ("locale", "font"), [("ja-JP", "Noto Sans CJK JP"), ("zh-CN", "Noto Sans CJK SC"), ("ar-EG", "Noto Sans Arabic")]
)
async def test_the_fonts_know_the_languages_characters(show: Show, locale: str, font: str) -> None:
    page = await show("payment", locale)
    assert font in await page.locator("body").evaluate("one => getComputedStyle(one).fontFamily")
