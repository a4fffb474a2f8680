"""The API's page for every eye and every screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.async_api import Page
from starlette.types import Receive, Scope, Send
from tests.e2e.looks import Look, flaws
from tests.lengths import long

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


@long
async def test_everybody_can_use_it(look: Look, address: str) -> None:
    assert await flaws(await look(address)) == []


@long
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


@long
async def test_links_lead_to_the_shapes(open_page: Open, address: str) -> None:
    page = await open_page(address)
    await page.get_by_role("link", name="PaymentList").first.click()
    assert await page.get_by_role("heading", name="PaymentList").is_visible()
    assert page.url.endswith("#PaymentList")
