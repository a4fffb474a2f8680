"""Whether everybody can use a page: what axe finds, in light and in dark,
on a desk and on a phone.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Literal

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page
from tests.lengths import at_length

LOOKS: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 1280), ("dark", 320))
"""Schemes and widths in pixels; together they show everything,
since colours hang on the scheme alone."""

Look = Callable[..., Coroutine[Any, Any, Page]]
"""The fixture `look`: opens an address in a browser that tests share, as somebody with a language
and a screen."""

SIDEWAYS = "document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"

_FIND = """
async (colours) => {
  const rules = { "color-contrast": { enabled: colours } };
  const { violations } = await axe.run(document, { resultTypes: ["violations"], rules });
  return violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" ")}`);
}
"""
_AXE = Axe().axe_script


async def violations(page: Page, *, colours: bool = True) -> list[str]:
    """What axe finds on the page once it is read to its end, by rule and place; without looking at
    `colours` it needs a third of the time.
    """
    await page.wait_for_load_state()
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_AXE)
    return [f"{page.url} {one}" for one in await page.evaluate(_FIND, colours)]


async def flaws(page: Page) -> list[str]:
    """What axe finds in every look, and where the page scrolls sideways;
    it is as wide as before at the end.

    In the short form axe looks at the first alone; a test that asks for this is marked as `longer`.
    """
    before, found = page.viewport_size, []
    for scheme, width in LOOKS:
        # Without motion, or colours on their way from one scheme to the other would be measured.
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await page.set_viewport_size({"width": width, "height": 800})
        if (scheme, width) in at_length(LOOKS, LOOKS[:1]):
            found += [f"{scheme}, {width} px: {one}" for one in await violations(page)]
        found += [f"{page.url} scrolls sideways at {width} px"] if await page.evaluate(SIDEWAYS) else []
    await page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    if before:
        await page.set_viewport_size(before)
    return found
