"""The API's page for every eye and every screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from fastapi import FastAPI
from playwright.async_api import Page
from starlette.types import Receive, Scope, Send

from paydesk.web.api.routes import router
from paydesk.web.assets import static_app

pytestmark = pytest.mark.browser

Open = Callable[..., Coroutine[Any, Any, Page]]


@pytest.fixture(scope="module")
async def address(serve: Callable[[Any], AbstractAsyncContextManager[str]]) -> AsyncIterator[str]:
    app = FastAPI(openapi_url=None)
    app.include_router(router)
    app.mount("/static", static_app())
    services = SimpleNamespace(address="https://pay.example.com", sandbox_address="https://pay.example.com/sandbox")

    async def with_state(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": {"api": services}}, receive, send)

    async with serve(with_state) as base:
        yield f"{base}/api/docs"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
async def test_axe_reports_nothing(open_page: Open, address: str, scheme: str, width: int) -> None:
    page = await open_page(address, color_scheme=scheme, viewport={"width": width, "height": 800})
    found = await Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()


async def test_nothing_scrolls_sideways_at_320_pixels(open_page: Open, address: str) -> None:
    page = await open_page(address, viewport={"width": 320, "height": 640})
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320


async def test_it_asks_nobody_else_for_anything(open_page: Open, address: str) -> None:
    page = await open_page("about:blank")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    await page.goto(address)
    base = address.removesuffix("/api/docs")
    assert asked
    assert all(url.startswith((base, "data:")) for url in asked)
    assert complaints == []


async def test_links_lead_to_the_shapes(open_page: Open, address: str) -> None:
    page = await open_page(address)
    await page.get_by_role("link", name="PaymentList").first.click()
    assert await page.get_by_role("heading", name="PaymentList").is_visible()
    assert page.url.endswith("#PaymentList")
