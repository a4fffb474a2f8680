"""A shop's server by a framework, aiohttp's: what one on the same two cores takes of them."""

from __future__ import annotations

from aiohttp import web


async def start() -> int:
    """Answer each request with `ok` from now on; gives the port."""
    application = web.Application()
    application.router.add_post("/ok", _ok)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    return int(runner.addresses[0][1])


async def _ok(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=b"ok")
