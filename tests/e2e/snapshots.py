"""Snapshots of the key pages, small and coarse, to see what a change does to a page:
`python -m tests.e2e.snapshots` renews them (needs Chromium).
"""

from __future__ import annotations

import asyncio
import io
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from PIL import Image, ImageChops, ImageFilter
from playwright.async_api import Browser, BrowserContext, Page, async_playwright
from tests.e2e import bars
from tests.e2e.conftest import FLAGS, chromium_path
from tests.e2e.month import Shop, live_through
from tests.e2e.running import Running, run_paydesk
from tests.e2e.screenshots import log_in, log_in_as_operator

KEPT = Path(__file__).parent / "pictures"
DAYS = 8

CELL = 4
"""A pixel of a snapshot stands for so many of the page, each way."""
LOOSENESS = 28
"""How much a pixel may differ, of 255, from what is kept at its place or beside it."""
MOST = 0.0004
"""The part of a snapshot's pixels that may differ more: a button is several times as much."""
HIGHEST = 2600
"""What of a long page is kept."""


@dataclass(frozen=True)
class Look:
    """A screen, and the scheme that it asks for."""

    name: str
    scheme: Literal["light", "dark"]
    width: int
    height: int


LOOKS = (Look("desk", "light", 1280, 900), Look("phone", "dark", 390, 844))

Who = Literal["customer", "owner", "operator"]
PAGES: Mapping[str, tuple[Who, str]] = {
    "shop": ("customer", "{shop}/"),
    "checkout": ("customer", "{checkout}"),
    "checkout-subscription": ("customer", "{subscribing}"),
    "portal": ("customer", "{portal}"),
    "portal-card": ("customer", "{portal}/card"),
    "mail": ("customer", "{mail}"),
    "docs": ("customer", "/docs/a-first-checkout-with-curl"),
    "login": ("customer", "/account/login"),
    "signup": ("customer", "/account/signup"),
    "overview": ("owner", "{account}/overview"),
    "payments": ("owner", "{account}/payments"),
    "payment": ("owner", "{account}/payments/{payment}"),
    "subscriptions": ("owner", "{account}/subscriptions"),
    "subscription": ("owner", "{account}/subscriptions/{subscription}"),
    "dispute": ("owner", "{account}/disputes/{dispute}"),
    "balance": ("owner", "{account}/balance"),
    "pingbacks": ("owner", "{account}/pingbacks"),
    "developers": ("owner", "{account}/developers"),
    "branding": ("owner", "{account}/settings/branding"),
    "deliveries": ("owner", "/account/{shipping}/deliveries"),
    "operator-overview": ("operator", "/operator/overview"),
    "operator-merchants": ("operator", "/operator/merchants"),
}

HOLD_STILL = """
() => {
  const still = (text) => text
    .replace(/\\\\b(in )?(\\\\d+|an?) (second|minute|hour|day|week|month|year)s?\\\\b( ago)?|just now/g, "00 days")
    .replace(/\\\\b(January|February|March|April|June|July|August|September|October|November|December)\\\\b/g, "Month")
    .replace(/(?<![\\\\w-])(?=[\\\\w-]*\\\\d)(?=[\\\\w-]*[A-Za-z])[\\\\w-]+/g, "x0x0")
    .replace(/\\\\d+([.,:\\u202f\\u00a0]\\\\d+)*/g, "00");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const held = still(walker.currentNode.data);
    if (held !== walker.currentNode.data) walker.currentNode.data = held;
  }
  for (const field of document.querySelectorAll("input:not([type=color], [type=file], [type=date]), textarea")) {
    if (field.value) field.value = still(field.value);
  }
  for (const drawn of document.querySelectorAll("canvas")) drawn.style.visibility = "hidden";
  document.activeElement?.blur();
  return document.fonts.load("16px Bars").then(() => document.fonts.ready).then(() => true);
}
""".replace("\\\\", "\\")
"""Numbers, references and times become alike, since they are others each time;
what a chart draws is hidden."""


def coarse(shot: bytes) -> Image.Image:
    """A screenshot as it is kept: blurred to its cells."""
    with Image.open(io.BytesIO(shot)) as opened:
        picture = opened.convert("RGB")
    picture = picture.crop((0, 0, picture.width, min(picture.height, HIGHEST)))
    return picture.resize((picture.width // CELL, picture.height // CELL), Image.Resampling.BOX)


def difference(now: Image.Image, kept: Image.Image) -> str:
    """What has changed, in words; empty if nothing that anybody would see."""
    if abs(now.width - kept.width) > 1 or abs(now.height - kept.height) > 2:
        return f"{kept.width * CELL} × {kept.height * CELL} pixels became {now.width * CELL} × {now.height * CELL}"
    size = min(now.width, kept.width), min(now.height, kept.height)
    one, other = now.crop((0, 0, *size)), kept.crop((0, 0, *size))
    strange = ImageChops.lighter(_beyond(one, other), _beyond(other, one))
    count = sum(strange.point(lambda value: 255 if value > LOOSENESS else 0).histogram()[255:])
    share = count / (size[0] * size[1])
    if share <= MOST:
        return ""
    left, top, right, bottom = (CELL * side for side in _box(strange))
    return f"{share:.2%} of it looks different, between ({left}, {top}) and ({right}, {bottom})"


def _box(strange: Image.Image) -> tuple[int, int, int, int]:
    found = strange.point(lambda value: 255 if value > LOOSENESS else 0).getbbox()
    return found or (0, 0, 0, 0)


def _beyond(picture: Image.Image, kept: Image.Image) -> Image.Image:
    """How far each pixel is out of the range of what is kept at its place and beside it."""
    lightest, darkest = kept.filter(ImageFilter.MaxFilter(3)), kept.filter(ImageFilter.MinFilter(3))
    beyond = ImageChops.lighter(ImageChops.subtract(picture, lightest), ImageChops.subtract(darkest, picture))
    red, green, blue = beyond.split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue)


@dataclass(frozen=True)
class Gallery:
    """A shop with a few days behind it, and browsers of those who look at its pages."""

    address: str
    known: Mapping[str, str]
    contexts: Mapping[tuple[Look, Who], BrowserContext]

    async def page(self, name: str, look: Look) -> Page:
        """One page of the list, open and still."""
        who, path = PAGES[name]
        place = path.format_map(self.known)
        page = await self.contexts[look, who].new_page()
        await page.goto(place if place.startswith("http") else self.address + place)
        await page.add_style_tag(content=bars.style())
        await page.evaluate(HOLD_STILL)
        return page

    async def shoot(self, name: str, look: Look) -> Image.Image:
        """How a page looks now."""
        page = await self.page(name, look)
        taken = coarse(await page.screenshot(full_page=True))
        await page.close()
        return taken


def kept_at(name: str, look: Look) -> Path:
    """Where a snapshot is."""
    return KEPT / f"{name}-{look.name}.png"


def keep(picture: Image.Image, path: Path) -> None:
    """Write a snapshot, in steps of brightness that nobody sees, which makes it smaller."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.point(lambda value: value & 0xF8 | value >> 5).save(path, optimize=True)


def read(path: Path) -> Image.Image:
    """A snapshot as it was kept."""
    with Image.open(path) as opened:
        return opened.convert("RGB")


@asynccontextmanager
async def gallery(browser: Browser, running: Running) -> AsyncIterator[Gallery]:
    """Live through some days at the shop; a customer, its owner and an operator look at it."""
    contexts: dict[tuple[Look, Who], BrowserContext] = {}
    known = await asyncio.to_thread(_live, running)
    states: dict[Who, Any] = {"customer": None}
    for who, enter in (("owner", log_in), ("operator", log_in_as_operator)):
        context = await browser.new_context(locale="en-US")
        await enter(await context.new_page(), running)
        states[who] = await context.storage_state()  # type: ignore[index]
        await context.close()
    for look in LOOKS:
        for who, state in states.items():
            contexts[look, who] = await browser.new_context(
                locale="en-US",
                viewport={"width": look.width, "height": look.height},
                color_scheme=look.scheme,
                reduced_motion="reduce",
                storage_state=state,
                bypass_csp=True,
            )
    yield Gallery(running.address, known, contexts)
    for context in contexts.values():
        await context.close()


def _live(running: Running) -> dict[str, str]:
    with live_through(running, days=DAYS) as shop:
        return _known(shop)


def _known(shop: Shop) -> dict[str, str]:
    """Where the pages of the list stand in this shop."""
    merchant, shipping = sorted(int(one["id"]) for one in shop.running.command("merchant", "list"))[:2]
    address = shop.running.address
    mails = (f"{path}/html" for path in re.findall(r'href="(/mailbox/\d+)"', shop.get(f"{address}/mailbox")))
    return {
        "shop": shop.running.shop,
        "account": f"/account/{merchant}",
        "shipping": str(shipping),
        "checkout": shop.order("coffee")[1],
        "subscribing": shop.order("club")[1],
        "portal": shop.call("/api/v1/subscriptions?limit=1")["data"][0]["portal_url"],
        "mail": next(path for path in mails if _of_the_mug(shop.get(address + path))),
        "payment": shop.newest_payment(),
        "subscription": str(shop.call("/api/v1/subscriptions?limit=1")["data"][0]["id"]),
        "dispute": str(shop.call("/api/v1/chargebacks?limit=1")["data"][0]["id"]),
    }


def _of_the_mug(mail: str) -> bool:
    return "Ada Lovelace" in mail and "Stoneware mug" in mail and "Visa" in mail


async def renew() -> None:
    """Take every snapshot anew, and say which have changed."""
    with tempfile.TemporaryDirectory() as folder, run_paydesk(Path(folder)) as running:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
            async with gallery(browser, running) as pages:
                for look in LOOKS:
                    for name in PAGES:
                        await _renew(pages, name, look)
            await browser.close()


async def _renew(pages: Gallery, name: str, look: Look) -> None:
    path, taken = kept_at(name, look), await pages.shoot(name, look)
    changed = difference(taken, read(path)) if path.exists() else "new"
    if changed:
        keep(taken, path)
        print(f"{path.name}: {changed}")


if __name__ == "__main__":
    asyncio.run(renew())
