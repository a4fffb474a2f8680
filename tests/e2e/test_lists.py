"""Every row of a list is a link, and two lines on a phone, where nothing scrolls sideways."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Route, expect
from tests.e2e.running import OpenPage, Running
from tests.e2e.test_console_pages import buy, make_link, operators_page, owners_page

pytestmark = pytest.mark.browser

PHONES = (390, 320)

LINES = """
() => [...document.querySelectorAll(".rows tbody tr")].map((row) => {
  const middles = [...row.cells].filter((cell) => cell.offsetHeight).map((cell) => {
    const box = cell.getBoundingClientRect();
    return box.top + box.height / 2;
  }).sort((one, other) => one - other);
  return middles.filter((middle, at) => !at || middle - middles[at - 1] > 8).length;
})
"""
"""On how many lines the cells of each row stand."""

SIDEWAYS = """
() => [document.scrollingElement, ...document.querySelectorAll("main *:not(.views ul)")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "hidden"
    && getComputedStyle(one).display !== "inline" && !one.closest(".visually-hidden"))
  .map((one) => one.outerHTML.slice(0, 80))
"""
"""What is wider than its place and does not end in dots."""


LINKED = ("payments", "subscriptions", "subscriptions/packages", "pingbacks", "links")
"""Lists of what has a page of its own."""
OTHERS = ("settings/team", "settings/audit")
CONSOLE = (
    *("overview", "alarms", "merchants", "profiles", "plans", "payouts", "payouts/past", "payouts/files"),
    *("chargebacks?side=test", "outcomes", "acquirers", "proceeds", "queues", "audit"),
)
NAMING = ("merchants", "audit")
"""Lists of the console that call merchants by their names."""
FILTERED = ("audit", "alarms")


async def shop_of(page: Page, running: Running) -> str:
    """The path of the account that is looked at."""
    await page.goto(f"{running.address}/account")
    return page.url.rpartition("/")[0].removeprefix(running.address)


async def lists(page: Page, running: Running, names: tuple[str, ...]) -> list[str]:
    """The addresses of some of the shop's lists."""
    shop = await shop_of(page, running)
    return [f"{running.address}{shop}/{name}" for name in names]


CUT = """
() => [...document.querySelectorAll(".rows tbody .above:not(.aside)")]
  .filter((one) => one.offsetHeight && one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText)
"""
"""Amounts and states that are not there to their end."""

BEGINNINGS = """
(name) => {
  const names = [...document.querySelectorAll(".rows tbody td:not(.plain, .end) bdi")]
    .filter((one) => one.offsetHeight && !one.closest(".reference, .visually-hidden"));
  for (const one of names) one.textContent = name;
  return names.filter((one) => {
    const letter = document.createRange();
    letter.setStart(one.firstChild, 0);
    letter.setEnd(one.firstChild, 1);
    const [first, cell] = [letter, one.closest("td")].map((each) => each.getBoundingClientRect());
    return first.left >= cell.left - 1 && first.right <= cell.right + 1;
  }).length / names.length;
}
"""
"""The share of names of which the first letter is in sight, once they are all called alike."""
LONG_NAMES = {"ar": "Wunderbar lange Namen aus Leipzig GmbH", "en": "مكتبة الأندلس الكبرى للكتب والمخطوطات"}
"""By the language of the page, whose direction is the other one."""
CUT_CHOICES = """
() => [...document.querySelectorAll(".filters select")].filter((one) => {
  const style = getComputedStyle(one), canvas = document.createElement("canvas").getContext("2d");
  canvas.font = style.font;
  const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return canvas.measureText(one.selectedOptions[0].text).width > room;
}).map((one) => one.selectedOptions[0].text)
"""
"""What is chosen in a filter and not there to its end."""


async def test_amount_and_state_are_whole_on_the_smallest_phone(open_page: OpenPage, running: Running) -> None:
    await buy(open_page, running, "House espresso")
    page = await owners_page(open_page, running)
    (address,) = await lists(page, running, ("payments",))
    await page.set_viewport_size({"width": 320, "height": 700})
    await page.goto(address)
    badge = page.locator(".rows .badge").first
    await badge.evaluate("one => { one.textContent = 'Teilweise erstattet'; }")
    assert await page.evaluate(CUT) == []


@pytest.mark.parametrize("language", ["de", "tr"])
async def test_the_shops_name_is_readable_beside_the_toggle_on_the_smallest_phone(
    open_page: OpenPage, running: Running, language: str
) -> None:
    page = await owners_page(open_page, running)
    await page.set_viewport_size({"width": 320, "height": 700})
    asked = {"accept-language": language}
    await page.route("**/*", lambda route: route.continue_(headers={**route.request.headers, **asked}))
    await page.goto(f"{running.address}/account")
    await expect(page.locator("html")).to_have_attribute("lang", language)
    shown = await page.locator(".switcher .name").bounding_box()
    header, toggle = await page.locator(".top").bounding_box(), await page.locator(".toggle span").bounding_box()
    assert shown
    assert header
    assert toggle
    assert shown["width"] >= 64, "more than half of Fern & Kettle"
    assert header["height"] <= 60
    assert shown["x"] + shown["width"] <= toggle["x"]
    assert not await page.evaluate("document.scrollingElement.scrollWidth > innerWidth")


@pytest.mark.parametrize("language", ["ar", "en"])
async def test_a_name_is_cut_at_its_own_end_whichever_way_the_page_runs(
    open_page: OpenPage, running: Running, language: str
) -> None:
    await buy(open_page, running, "House espresso")
    await buy(open_page, running, "Coffee club")
    owner, operator = await owners_page(open_page, running), await operators_page(open_page, running)
    theirs, ours = (
        await lists(owner, running, (*LINKED[:2], *OTHERS)),
        [f"{running.address}/operator/{name}" for name in NAMING],
    )
    for page, addresses in ((owner, theirs), (operator, ours)):
        await page.set_viewport_size({"width": 320, "height": 700})
        await _speak(page, language)
        for address in addresses:
            await page.goto(address)
            await expect(page.locator("html")).to_have_attribute("lang", language)
            assert await page.evaluate(BEGINNINGS, LONG_NAMES[language]) == 1, address


@pytest.mark.parametrize("language", ["en", "fr"])
async def test_what_is_chosen_in_a_filter_is_whole_on_every_screen(
    open_page: OpenPage, running: Running, language: str
) -> None:
    owner, operator = await owners_page(open_page, running), await operators_page(open_page, running)
    theirs, ours = (
        await lists(owner, running, ("settings/audit", "pingbacks")),
        [f"{running.address}/operator/{name}" for name in FILTERED],
    )
    for page, addresses in ((owner, theirs), (operator, ours)):
        await _speak(page, language)
        for address in addresses:
            for width in (320, 390, 1280):
                await page.set_viewport_size({"width": width, "height": 700})
                await page.goto(address)
                await expect(page.locator("html")).to_have_attribute("lang", language)
                assert await page.locator(".filters select").count()
                assert await page.evaluate(CUT_CHOICES) == [], (address, width)


async def _speak(page: Page, language: str) -> None:
    """Have all pages in a language from now on."""

    async def ask(route: Route) -> None:
        await route.continue_(headers={**route.request.headers, "accept-language": language})

    await page.route("**/*", ask)


async def test_a_list_is_two_lines_a_row_on_a_phone(open_page: OpenPage, running: Running) -> None:
    await buy(open_page, running, "House espresso")
    await buy(open_page, running, "Coffee club")
    page = await owners_page(open_page, running)
    await make_link(page, running, await shop_of(page, running))
    for address in [*await lists(page, running, LINKED + OTHERS), f"{running.address}/account/security"]:
        await page.goto(address)
        for width in PHONES:
            await page.set_viewport_size({"width": width, "height": 800})
            lines = await page.evaluate(LINES)
            assert lines, address
            assert set(lines) <= {1, 2}, (address, width)
            assert await page.evaluate(SIDEWAYS) == [], (address, width)


async def test_no_list_of_the_console_scrolls_sideways_on_a_phone(open_page: OpenPage, running: Running) -> None:
    await buy(open_page, running, "House espresso", "4000000000000259")
    page, rows = await operators_page(open_page, running), 0
    for name in CONSOLE:
        await page.goto(f"{running.address}/operator/{name}")
        for width in PHONES:
            await page.set_viewport_size({"width": width, "height": 800})
            lines = await page.evaluate(LINES)
            rows += len(lines)
            assert set(lines) <= {1, 2}, (name, width)
            assert await page.evaluate(SIDEWAYS) == [], (name, width)
    assert rows > 2 * len(PHONES)


SQUEEZED = """
() => {
  for (const row of document.querySelectorAll(".rows tbody tr"))
    for (const cell of [...row.cells].slice(1)) cell.textContent = "letters ".repeat(90);
  return [...document.querySelectorAll(".rows td.words strong")].map((one) => {
    one.textContent = "Suspended the account";
    const first = document.createRange();
    first.setStart(one.firstChild, 0);
    first.setEnd(one.firstChild, one.firstChild.data.search(/ |$/));
    return first.getClientRects().length;
  });
}
"""
"""On how many lines the first word of what was done stands, beside cells that take all room."""


async def test_what_was_done_is_not_broken_amid_a_word(open_page: OpenPage, running: Running) -> None:
    page = await operators_page(open_page, running)
    await page.goto(f"{running.address}/operator/audit")
    seen = await page.evaluate(SQUEEZED)
    assert seen
    assert set(seen) == {1}


TITLED = """
() => [...document.querySelectorAll(".rows tbody tr")].map((row) => {
  const title = row.querySelector("td > bdi:only-child");
  title.textContent = "Wunderbarlangerproduktname".repeat(10).slice(0, 255);
  row.cells[0].firstElementChild.firstChild.textContent = "99,999,999.99 USD a month, 99,999,999.99 USD a year";
  return title.getBoundingClientRect().width;
})
"""
"""How wide titles of links stand, that are as long as they may be, beside the longest prices."""


async def test_a_long_title_is_no_narrow_column(open_page: OpenPage, running: Running) -> None:
    page = await owners_page(open_page, running)
    shop = await shop_of(page, running)
    await make_link(page, running, shop)
    await page.goto(f"{running.address}{shop}/links")
    seen = await page.evaluate(TITLED)
    assert seen
    assert min(seen) >= 200


async def test_a_row_is_a_link_wherever_it_is_pressed(open_page: OpenPage, running: Running) -> None:
    await buy(open_page, running, "Coffee club")
    page = await owners_page(open_page, running)
    await make_link(page, running, await shop_of(page, running))
    for address in await lists(page, running, LINKED):
        await page.goto(address)
        row = page.locator(".rows tbody tr").last
        leads_to = await row.locator("a.whole-row").get_attribute("href")
        # In the middle of the row, on a cell that has no link of its own.
        await row.scroll_into_view_if_needed()
        box = await row.bounding_box()
        assert box is not None
        await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        await expect(page).to_have_url(f"{running.address}{leads_to}")
        await page.go_back()
        await row.locator("a.whole-row").focus()
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(f"{running.address}{leads_to}")


async def test_a_reference_is_copied_whole(open_page: OpenPage, running: Running) -> None:
    await buy(open_page, running, "House espresso")
    page = await owners_page(open_page, running)
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    # References stand where there is room for them.
    await page.set_viewport_size({"width": 1440, "height": 800})
    await page.goto((await lists(page, running, LINKED))[0])
    copy = page.get_by_role("button", name="Copy: Order").first
    await copy.click()
    assert await page.evaluate("navigator.clipboard.readText()") == await copy.get_attribute("data-copy")
    assert page.url.endswith("/payments")
