"""The merchant's server: verifies pingbacks, and is as unreliable as merchants' servers are."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from paydesk_client import Gateway, InvalidPingback


class Receiver:
    """Keeps what it answered `ok` to; while `moody` it refuses some pingbacks
    and lets others run into the timeout.

    Each shop of `gateways` has a path of its own below the address, its name; `tell` is called with
    what is kept.
    """

    def __init__(self, chance: random.Random, slow_for: float, *, moody: bool) -> None:
        self.gateways: dict[str, Gateway] = {}
        self.moody = moody
        self.tell: Callable[[dict[str, Any]], None] = lambda payload: None
        self.accepted: list[dict[str, Any]] = []
        self.forged = 0
        self._chance = chance
        self._slow_for = slow_for

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Listen on loopback for the length of a block; gives the address."""
        app = web.Application()
        app.router.add_post("/{shop}", self._receive)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            payload = self.gateways[request.match_info["shop"]].pingback().parse(body, request.headers)
        except InvalidPingback:
            self.forged += 1
            return web.Response(text="NOK")
        mood = self._chance.random() if self.moody else 1.0
        if mood < 0.06:
            return web.Response(status=500, text="ok")
        if mood < 0.12:
            return web.Response(text="NOK")
        if mood < 0.14:
            await asyncio.sleep(self._slow_for)
            return web.Response(text="NOK")
        self.accepted.append(payload)
        self.tell(payload)
        return web.Response(text="ok")
