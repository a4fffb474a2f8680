"""Walks to what people are promised to see, and keeps a picture of each thing.

A step goes to one thing as somebody would, fails where it is not there, and its picture has the
step's name, such as `traps-refund-is-confirmed.png`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import httpx
from playwright.async_api import Browser, Page, ViewportSize, expect
from tests.breaking import say
from tests.conftest import accept_waiting, submit_profile
from tests.e2e.live_month import Sales, earn
from tests.e2e.month import Customer, Shop, live_through
from tests.e2e.running import Running
from tests.e2e.screenshots import log_in, log_in_as_operator
from tests.standins.account import Account

from paydesk.core.clock import utc_now
from paydesk.database.embedded import server_for
from paydesk.database.pool import connected
from paydesk.domain.merchants.merchant import go_live
from paydesk_client import Gateway

DESK: ViewportSize = {"width": 1280, "height": 900}
WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
SECTIONS = ("traps", "first_hour", "brand", "account", "subscriptions")
"""The modules of `tests.e2e.walks`, in the order of a walk."""
FAILING = Customer("Maria Agnesi", "IT", "4000000000000341")
"""Her card is declined whenever the shop charges it later."""
PATIENCE = 10_000

Who = Literal["customer", "owner", "operator", "newcomer"]
Go = Callable[[Page, "Walk"], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """One thing to see: by whom, on which screen."""

    name: str
    go: Go
    who: Who
    screen: ViewportSize
    scheme: Literal["light", "dark"]
    locale: str
    whole: bool
    """Whether the picture shows the page to its end, else what is on the screen."""


STEPS: dict[str, Step] = {}


def step(
    who: Who = "customer",
    screen: ViewportSize = DESK,
    *,
    scheme: Literal["light", "dark"] = "light",
    locale: str = "en-US",
    whole: bool = True,
) -> Callable[[Go], Go]:
    """Add a function to the walk; its picture is named after its module and itself."""

    def add(go: Go) -> Go:
        name = f"{go.__module__.rpartition('.')[2]}-{go.__name__}".replace("_", "-")
        STEPS[name] = Step(name, go, who, screen, scheme, locale, whole)
        return go

    return add


@dataclass(frozen=True)
class LiveShop:
    """A merchant who may take real money, and their keys."""

    merchant_id: int
    gateway: Gateway


@dataclass(frozen=True)
class Walk:
    """A shop with a month behind it, and where its pages are; and what others sold live."""

    browser: Browser
    running: Running
    shop: Shop
    merchant: int
    shipping: int
    states: dict[Who, Any]
    sold: Sales

    @property
    def account(self) -> str:
        """Where the sample shop's account begins."""
        return f"{self.running.address}/account/{self.merchant}"

    async def ask(self, call: Callable[..., Any], *words: Any) -> Any:
        """What the sample shop or a command answers, which takes a while."""
        return await asyncio.to_thread(call, *words)

    async def first(self, path: str) -> Any:
        """The first row of a list of the API."""
        return (await self.ask(self.shop.call, path))["data"][0]

    async def failing(self) -> str:
        """The customer's page of the subscription that can't be charged."""
        found = (await self.ask(self.shop.call, "/api/v1/subscriptions?limit=100"))["data"]
        return next(str(one["portal_url"]) for one in found if one["u_email"] == FAILING.email)

    async def live_shop(self) -> LiveShop:
        """Another merchant, whom an operator has let go live."""
        words = ("merchant", "create", "--name", "Corner Shop", "--email", "owner@corner.example")
        made = await self.ask(self.running.command, *words)
        async with server_for(self.running.data) as server, connected(server.url, most=1) as database:
            await submit_profile(database, made["id"])
            linked = {"terms_url": "https://shop.example/terms", "privacy_url": "https://shop.example/privacy"}
            await say(database, "business_profile", {"merchant_id": made["id"]}, **linked)
            await accept_waiting(database, made["id"])
            await go_live(database, made["id"], now=utc_now())
        keys = Gateway(made["public_key"], made["private_key"], base_url=self.running.address, is_test=False)
        return LiveShop(int(made["id"]), keys)

    async def take(self, one: Step, folder: Path) -> Path:
        """Go to what a step shows, and write its picture. Raises: AssertionError, not there."""
        context = await self.browser.new_context(
            locale=one.locale,
            viewport=one.screen,
            color_scheme=one.scheme,
            reduced_motion="reduce",
            storage_state=self.states[one.who],
        )
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        await one.go(page, self)
        await page.wait_for_load_state()  # Without its style sheet a page has another height.
        path = folder / f"{one.name}.png"
        if one.whole:
            await page.evaluate("scrollTo(0, 0)")  # What sticks to the window stands at its top.
        await page.screenshot(path=path, full_page=one.whole)
        await context.close()
        return path


async def sees(page: Page, *texts: str) -> None:
    """Each of some texts is in sight."""
    for text in texts:
        await expect(page.get_by_text(text).locator("visible=true").first).to_be_visible()


async def press(page: Page, name: str) -> None:
    """Press the first button or link that is called so."""
    wanted = page.get_by_role("button", name=name).or_(page.get_by_role("link", name=name))
    await wanted.locator("visible=true").first.click()


@asynccontextmanager
async def walk(browser: Browser, running: Running, mollie: Account) -> AsyncIterator[Walk]:
    """Live through a month at the shop, while others earn live money, and have its owner and
    an operator log in.
    """
    lived, sold = await asyncio.gather(asyncio.to_thread(_lived, running), earn(running, mollie))
    with lived as shop:
        merchants = sorted(int(one["id"]) for one in running.command("merchant", "list"))
        states: dict[Who, Any] = {"customer": None, "newcomer": None}
        for who, enter in (("owner", log_in), ("operator", log_in_as_operator)):
            context = await browser.new_context(locale="en-US")
            await enter(await context.new_page(), running)
            states[who] = await context.storage_state()  # type: ignore[index]
            await context.close()
        yield Walk(browser, running, shop, merchants[0], merchants[1], states, sold)


def _lived(running: Running) -> Any:
    with live_through(running) as shop:
        shop.buy("letter", FAILING)
        shop.call("/api/v1/test_clock", {"advance": "14d"})
    return _opened(running)


@contextmanager
def _opened(running: Running) -> Iterator[Shop]:
    with httpx.Client(timeout=60) as web:
        yield Shop(running, web, random.Random(7))


def load() -> dict[str, Step]:
    """Every step, in the order of a walk."""
    for section in SECTIONS:
        import_module(f"tests.e2e.walks.{section}")
    return STEPS
