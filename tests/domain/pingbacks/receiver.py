"""A shop's server, to which pingbacks are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from tests.servers import Received


@dataclass
class Receiver:
    """Answers `ok`, or what `answers` says for a path;
    a path in `held` gets no answer until it is let go.

    A path in `slow` is answered later than a quick endpoint would answer.
    """

    base: str = ""
    received: list[Received] = field(default_factory=list)
    answers: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    slow: set[str] = field(default_factory=set)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: dict[str, int] = field(default_factory=dict)
    most_under_way: dict[str, int] = field(default_factory=dict)

    async def handle(self, request: web.Request) -> web.Response:
        path = request.path
        self.received.append(Received(path, dict(request.headers), await request.read()))
        self.under_way[path] = self.under_way.get(path, 0) + 1
        self.most_under_way[path] = max(self.most_under_way.get(path, 0), self.under_way[path])
        try:
            if path in self.held:
                await self.let_go.wait()
            if path in self.slow:
                await asyncio.sleep(0.3)
            left = self.answers.get(path, [(200, b"ok")])
            status, body = left.pop(0) if len(left) > 1 else left[0]
            return web.Response(status=status, body=body)
        finally:
            self.under_way[path] -= 1

    @property
    def url(self) -> str:
        """Where pingbacks may go."""
        return f"{self.base}/pingback"

    def at(self, path: str) -> list[Received]:
        return [one for one in self.received if one.path == path]


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A shop's server on a port of its own, for the length of a block."""
    made = Receiver()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    made.let_go.set()
    await runner.cleanup()
