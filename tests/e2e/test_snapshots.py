"""The key pages look as they are kept in `pictures/`, on a desk and on a phone in the dark."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw
from playwright.async_api import Browser
from tests.e2e import bars
from tests.e2e.running import run_paydesk
from tests.e2e.snapshots import CELL, LOOKS, PAGES, Gallery, Look, coarse, difference, gallery, keep, kept_at, read
from tests.lengths import long

RENEW = "if it is meant to be so, renew the snapshots: .venv/bin/python -m tests.e2e.snapshots"


@pytest.fixture(scope="module")
async def pages(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gallery]:
    with run_paydesk(tmp_path_factory.mktemp("snapshots")) as running:
        async with gallery(browser, running) as opened:
            yield opened


@long
@pytest.mark.browser
@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
@pytest.mark.parametrize("name", PAGES)
async def test_a_key_page_looks_as_it_is_kept(pages: Gallery, name: str, look: Look, tmp_path: Path) -> None:
    now = await pages.shoot(name, look)
    changed = difference(now, read(kept_at(name, look)))
    keep(now, tmp_path / f"{name}-{look.name}.png")
    assert not changed, f"{name} on a {look.name}: {changed}. It looks like {tmp_path} now; {RENEW}"


@long
@pytest.mark.browser
@pytest.mark.parametrize(
    "change",
    [
        "document.querySelector('.main').style.background = '#a21717'",
        "document.querySelector('.main').style.marginInlineStart = '24px'",
        "document.querySelector('.brands').remove()",
        "document.querySelector('h2').style.fontSize = '2rem'",
        "document.querySelector('.shop').style.visibility = 'hidden'",
    ],
)
async def test_what_a_change_does_to_a_page_is_seen(pages: Gallery, change: str) -> None:
    look = LOOKS[0]
    page = await pages.page("checkout", look)
    await page.evaluate(change)
    now = coarse(await page.screenshot(full_page=True))
    await page.close()
    assert difference(now, read(kept_at("checkout", look)))


def test_every_page_of_the_list_is_kept_and_nothing_else() -> None:
    folder = kept_at("shop", LOOKS[0]).parent
    assert len(PAGES) >= 20
    assert {path.name for path in folder.iterdir()} == {kept_at(name, look).name for name in PAGES for look in LOOKS}
    assert max(path.stat().st_size for path in folder.iterdir()) < 24_000, "small, since every change keeps them all"


def drawn(*boxes: tuple[int, int, int, int], height: int = 200) -> Image.Image:
    """A page of 300 cells with dark boxes."""
    picture = Image.new("RGB", (300, height), "white")
    for box in boxes:
        ImageDraw.Draw(picture).rectangle(box, fill="#1746a2")
    return picture


BUTTON = (100, 100, 140, 110)


@pytest.mark.parametrize(
    "now",
    [drawn(BUTTON), drawn((101, 100, 141, 110)), drawn((100, 101, 140, 111)), drawn(BUTTON, height=202)],
    ids=["the same", "a cell to the side", "a cell lower", "a little longer"],
)
def test_what_nobody_sees_is_no_difference(now: Image.Image) -> None:
    assert difference(now, drawn(BUTTON)) == ""


@pytest.mark.parametrize(
    "now",
    [drawn(), drawn((104, 100, 144, 110)), drawn((100, 100, 146, 110)), drawn(BUTTON, (20, 20, 30, 22))],
    ids=["gone", "moved", "wider", "one more"],
)
def test_what_somebody_sees_is_a_difference(now: Image.Image) -> None:
    assert "looks different" in difference(now, drawn(BUTTON))


def test_a_page_that_grew_is_a_difference() -> None:
    assert difference(drawn(BUTTON, height=210), drawn(BUTTON)) == f"{300 * CELL} × 800 pixels became 1200 × 840"


@pytest.mark.browser
async def test_letters_are_bars_of_one_width_whatever_fonts_there_are(browser: Browser) -> None:
    context = await browser.new_context()
    page = await context.new_page()
    await page.set_content("<p>" + "".join(f"<span>{text}</span> " for text in ("1i", "WM", "日本", "•€")))
    await page.add_style_tag(content=bars.style())
    assert await page.evaluate("document.fonts.load('16px Bars').then((found) => found[0].status)") == "loaded"
    widths = await page.evaluate(
        "[...document.querySelectorAll('span')].map((one) => one.getBoundingClientRect().width)"
    )
    assert len({round(width, 2) for width in widths}) == 1
    await context.close()
