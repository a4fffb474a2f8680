"""The process of `paydesk run` that customers and the sample shop's visitors come to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.types import ASGIApp

from paydesk.app import create_app
from paydesk.commands import loading
from paydesk.commands.connecting import stop_on_signals
from paydesk.commands.sample_shop import Sample, demo_address, open_sample
from paydesk.commands.serving import EmbeddedUvicorn, uvicorn_config
from paydesk.commands.supervising import READY, Channel
from paydesk.database.metrics import measure_pools
from paydesk.database.pool import connected
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.equipment import mailbox_of, vault_of
from paydesk.loops.watching import watched
from paydesk.settings import Settings
from paydesk.web.demo.routes import create_shop
from paydesk.web.mails.mailbox import mailbox_routes
from paydesk_client import Gateway


async def serve_web(settings: Settings, channel: Channel, *descriptors: int) -> None:
    """Serve checkout and sample shop on the sockets that were inherited, until told to stop."""
    service, shop = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    with loading.for_good():
        app = create_app(settings)
    mailbox = mailbox_of(settings)
    if mailbox is not None:
        app.router.routes.extend(mailbox_routes(mailbox))
    stop = stop_on_signals()
    async with watched("web", on_beat=channel.beat, on_look=measure_pools):
        async with connected(settings.database_url, most=1) as pool:
            sample = await open_sample(settings, pool, vault_of(settings), demo_address(settings))
        async with _serving(_shop_of(settings, sample), settings, shop), _serving(app, settings, service):
            channel.say(READY)
            await stop.wait()


def _shop_of(settings: Settings, sample: Sample) -> Starlette:
    """The sample shop as an application."""
    gateway, shipping = (
        Gateway(*pair, base_url=settings.address, header_prefix=settings.pingback_header_prefix)
        for pair in (sample.keys, sample.shipping_keys)
    )
    folder = settings.data_dir / "demo"
    return create_shop(gateway, shipping, base_url=demo_address(settings), folder=folder, time_to_ship=TIME_TO_SHIP)


@asynccontextmanager
async def _serving(app: ASGIApp, settings: Settings, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an application for the length of a block;
    requests under way are finished at its end.
    """
    server = EmbeddedUvicorn(uvicorn_config(app, settings))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 -- uvicorn tells it by a flag
            await asyncio.sleep(0.01)
        if serving.done():
            await serving
        yield
    finally:
        server.should_exit = True
        await serving
