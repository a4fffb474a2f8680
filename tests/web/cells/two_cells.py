"""Two cells of one deployment, with a merchant in each: browsers stand before both, and both are
reached over loopback, as cells reach each other.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from starlette.types import Receive, Scope, Send
from tests.conftest import migrated_database

from paydesk.adapters.vault import Vault
from paydesk.app import create_app
from paydesk.commands.serving import EmbeddedUvicorn
from paydesk.commands.starting import listen
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.cells.adding import add_cell, follow
from paydesk.domain.cells.directory import Cell, Entry, Kind, enter, name_of
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from paydesk.settings import Settings
from paydesk_client import Gateway

HOME, SECOND = 1, 2
CLIENT = "192.0.2.10"


def entries_of(vault: Vault, merchant: Merchant) -> list[Entry]:
    """What the directory knows of a merchant."""
    named = {
        Kind.merchant: str(merchant.id),
        Kind.public_key: merchant.public_key,
        Kind.private_key: merchant.private_key,
    }
    return [Entry(kind, name_of(vault, kind, value), merchant.id) for kind, value in named.items()]


def form_of(merchant: Merchant, **fields: Any) -> dict[str, Any]:
    """A form that a merchant has signed."""
    gateway = Gateway(merchant.public_key, merchant.private_key, base_url="http://pay.test")
    asked = {
        "merchant_order_id": f"order-{secrets.token_hex(6)}",
        "amount": "10.00",
        "currency": "USD",
        "description": "Golden Ticket",
        "success_url": "https://shop.example/thanks?order=1",
        "api_key": merchant.public_key,
        **fields,
    }
    return {**asked, "hash": gateway.signature().sign(asked)}


@dataclass
class Arrived:
    """What came to a cell's web server: by method, path and headers."""

    method: str
    path: str
    headers: list[tuple[str, str]]

    def header(self, name: str) -> str | None:
        found = [value for one, value in self.headers if one == name]
        return found[0] if found else None


@dataclass
class Serving:
    """A cell's web application on loopback, in a `state`: what came to it over the wire, and what
    is answered there instead of its own (`instead`), if anything. Its health page shows always:
    another cell asks for that while it waits.
    """

    app: Any
    state: dict[str, Any]
    arrived: list[Arrived] = field(default_factory=list)
    instead: Any = None

    async def of_browser(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser."""
        await self.app({**scope, "state": dict(self.state)}, receive, send)

    async def of_wire(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer another cell."""
        if scope["path"] == "/healthz":
            await self.of_browser(scope, receive, send)
            return
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        self.arrived.append(Arrived(scope["method"], scope["path"], headers))
        await (self.instead or self.of_browser)(scope, receive, send)

    @asynccontextmanager
    async def at(self, listener: Any) -> AsyncIterator[None]:
        """Answer other cells on a socket for the length of a block."""
        config = uvicorn.Config(
            self.of_wire,
            ws="none",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        server = EmbeddedUvicorn(config)
        serving = asyncio.create_task(server.serve([listener]))
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.01)
        try:
            yield
        finally:
            server.should_exit = True
            await serving


@dataclass
class Cells:
    """All of it by the cells' numbers: `served` are what other cells reach (at `inside`), `web`
    browsers.
    """

    databases: dict[int, Database]
    merchants: dict[int, Merchant]
    settings: dict[int, Settings]
    vault: Vault
    _stack: AsyncExitStack
    inside: dict[int, str] = field(default_factory=dict)
    served: dict[int, Serving] = field(default_factory=dict)
    web: dict[int, httpx.AsyncClient] = field(default_factory=dict)

    async def serve(self, cell: int, **changed: Any) -> Serving:
        """Start the web application of a cell, with settings changed."""
        app = create_app(self.settings[cell].model_copy(update=changed))
        lifespan: AbstractAsyncContextManager[Any] = app.router.lifespan_context(app)
        return Serving(app, dict(await self._stack.enter_async_context(lifespan)))

    async def open(self, cell: int, *, address: str = CLIENT, **changed: Any) -> httpx.AsyncClient:
        """A browser before a web application of a cell of its own."""
        return await self._before(await self.serve(cell, **changed), cell, address)

    async def begin(self, cell: int, listener: Any) -> None:
        """Serve other cells and a browser."""
        self.served[cell] = await self.serve(cell)
        await self._stack.enter_async_context(self.served[cell].at(listener))
        self.web[cell] = await self._before(self.served[cell], cell, CLIENT)

    async def _before(self, serving: Serving, cell: int, address: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=serving.of_browser, client=(address, 50000))
        browser = httpx.AsyncClient(transport=transport, base_url=self.settings[cell].address, timeout=60)
        return await self._stack.enter_async_context(browser)

    async def know(self, *of: int) -> None:
        """Have the copies of the directory in these cells know all merchants and their keys."""
        for where in of:
            for number, one in self.merchants.items():
                await enter(self.databases[where], entries_of(self.vault, one), number, now=utc_now())


@asynccontextmanager
async def two_cells(server_url: str, settings: Settings, vault: Vault) -> AsyncIterator[Cells]:
    """Both for the length of a block; their copies of the directory know no merchant yet."""
    async with AsyncExitStack() as stack:
        urls = {
            number: await stack.enter_async_context(migrated_database(server_url, cell=number))
            for number in (HOME, SECOND)
        }
        databases = {number: await stack.enter_async_context(connected(url, most=4)) for number, url in urls.items()}
        listeners = {number: listen("127.0.0.1", 0, "PORT") for number in urls}
        for each in databases.values():
            for number, listener in listeners.items():
                inside = f"http://127.0.0.1:{listener.getsockname()[1]}"
                cell = Cell(number, f"http://pay{number}.test", inside)
                await add_cell(each, cell, database_id=f"database of {number}", now=utc_now())
            await follow(each, HOME)
        merchants = {
            number: await create_merchant(each, vault, name=f"Shop {number}", email="owner@shop.example", now=utc_now())
            for number, each in databases.items()
        }
        kept = {}
        for number, url in urls.items():
            folder = settings.data_dir / str(number)
            folder.mkdir()
            kept[number] = settings.model_copy(
                update={
                    "base_url": f"http://pay{number}.test",
                    "data_dir": folder,
                    "database_url": url,
                    "home_database_url": "" if number == HOME else urls[HOME],
                }
            )
        cells = Cells(databases, merchants, kept, vault, stack)
        for number, listener in listeners.items():
            cells.inside[number] = f"http://127.0.0.1:{listener.getsockname()[1]}"
            await cells.begin(number, listener)
        yield cells


async def silent(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """A server that never answers."""
    await asyncio.Event().wait()
