"""A real browser for the tests in this folder, and a way to serve an ASGI application to it."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import uvicorn
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright, expect
from starlette.types import ASGIApp
from tests.e2e.looks import Look
from tests.e2e.running import PATIENCE_MS, Running, run_paydesk
from tests.together import ONE_PAYDESK

CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""What there may be on a machine; the first, without the browser's own windows,
needs a third of the second's time."""
DESK: ViewportSize = {"width": 1280, "height": 720}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")

# What is expected comes, in whatever time a busy machine takes.
expect.set_options(timeout=PATIENCE_MS)


def chromium_path() -> str:
    """The browser to drive: `PAYDESK_CHROMIUM`, or the system's Chromium or Chrome;
    empty if there is none.
    """
    named = os.environ.get("PAYDESK_CHROMIUM", "")
    return named or next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), "")


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    path = chromium_path()
    if not path:
        pytest.skip("NO CHROMIUM: THE BROWSER TESTS DID NOT RUN. Install chromium or set PAYDESK_CHROMIUM.")
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield running
        await running.close()


@pytest.fixture
async def open_page(browser: Browser) -> AsyncIterator[Callable[..., Coroutine[Any, Any, Page]]]:
    """Open an address in a context of its own; options are those of playwright's `new_context`."""
    contexts: list[BrowserContext] = []

    async def opener(url: str, **options: Any) -> Page:
        contexts.append(await browser.new_context(**{"locale": "en-US", **options}))
        page = await contexts[-1].new_page()
        await page.goto(url)
        return page

    yield opener
    for context in contexts:
        await context.close()


@pytest.fixture(scope="session")
async def _shared_page(browser: Browser) -> AsyncIterator[Page]:
    context = await browser.new_context()
    yield await context.new_page()
    await context.close()


@pytest.fixture
async def look(_shared_page: Page) -> Look:
    """Open an address in one page that all who only look share:
    a new one would take longer than what they do with it.

    It has nobody's cookies. Options are those of playwright's `emulate_media`, and a locale and
    a viewport.
    """
    page = _shared_page

    async def look(url: str, *, locale: str = "en-US", viewport: ViewportSize = DESK, **media: Any) -> Page:
        await page.context.clear_cookies()
        await page.set_extra_http_headers({"Accept-Language": locale})
        usual = {"color_scheme": "light", "reduced_motion": "no-preference", "forced_colors": "none"}
        await page.emulate_media(**{**usual, **media})
        await page.set_viewport_size(viewport)
        await page.goto(url)
        return page

    return look


@pytest.fixture
async def page(open_page: Callable[..., Coroutine[Any, Any, Page]]) -> Page:
    return await open_page("about:blank")


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an application on a free port of the loopback interface; gives its base address."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", server_header=False))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = asyncio.create_task(server.serve([listener]))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        server.force_exit = True
        await running


@pytest.fixture(scope="session")
def serve() -> Callable[[ASGIApp], AbstractAsyncContextManager[str]]:
    return serving


@pytest.fixture(scope="session")
def _running_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with run_paydesk(tmp_path_factory.mktemp("running")) as started:
        yield started


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A Paydesk with the sample shop, as `paydesk run` starts it: of the module's own, unless it is
    one of those that share one.
    """
    if request.path.relative_to(request.config.rootpath).as_posix() in ONE_PAYDESK:
        yield request.getfixturevalue("_running_for_all")
        return
    with run_paydesk(tmp_path_factory.mktemp("running")) as started:
        yield started
