"""The processes that `paydesk run` is made of: `python -m paydesk.commands.parts web|worker …`,
started by it alone.

Each ends with the process that started it, however that one ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
import typer

from paydesk.adapters.mail import FolderMailbox
from paydesk.app import create_app, history_of, live_acquirer, payment_desk, test_acquirer, vault_of
from paydesk.commands.connecting import command, stop_on_signals
from paydesk.commands.sample_shop import Sample, open_sample
from paydesk.commands.serving import EmbeddedUvicorn, uvicorn_config
from paydesk.commands.starting import raise_file_limit
from paydesk.commands.supervising import READY, Channel
from paydesk.database.metrics import measure_pools
from paydesk.database.pool import connected
from paydesk.domain.payments.hold_periods import TIME_TO_SHIP
from paydesk.logs import set_up_logs
from paydesk.loops.watching import watched
from paydesk.settings import Settings, load_settings
from paydesk.web.demo.shop import create_shop
from paydesk.web.mails.mailbox import mailbox_routes
from paydesk.worker import mailer_of, work
from paydesk_client import Gateway

ORPHAN_GRACE = 10.0
"""Seconds that a process without its parent gets to finish;
the embedded database went with the parent."""

log = structlog.get_logger()


def demo_address(settings: Settings) -> str:
    """Where the sample shop is."""
    return f"http://{settings.host}:{settings.demo_port}"


def mailbox_of(settings: Settings) -> FolderMailbox | None:
    """Where the worker leaves mails and the web process shows them;
    None where there is a mail server.
    """
    return None if mailer_of(settings) else FolderMailbox(settings.data_dir / "mailbox")


async def serve_web(settings: Settings, channel: Channel, *descriptors: int) -> None:
    """Serve checkout and sample shop on the sockets that were inherited, until told to stop."""
    service, shop = (socket.socket(fileno=descriptor) for descriptor in descriptors)
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


async def do_work(settings: Settings, channel: Channel) -> None:
    """Do the background work until told to stop."""
    stop, vault, history = stop_on_signals(), vault_of(settings), history_of(settings)
    most = settings.database_connections
    async with (
        watched("worker", on_beat=channel.beat, on_look=measure_pools),
        connected(settings.database_url, most=most, name="work", meet=history.meet) as pool,
    ):
        banks = test_acquirer(settings), live_acquirer(settings)
        desk = payment_desk(settings, pool, vault, *banks, gate=history.gate)
        channel.say(READY)
        try:
            await work(settings, pool, vault, desk, stop, history=history, mailbox=mailbox_of(settings))
        finally:
            for each in desk.acquirers.values():
                await each.close()


def _shop_of(settings: Settings, sample: Sample) -> Any:
    """The sample shop as an application."""
    gateway, shipping = (
        Gateway(*pair, base_url=settings.address, header_prefix=settings.pingback_header_prefix)
        for pair in (sample.keys, sample.shipping_keys)
    )
    folder = settings.data_dir / "demo"
    return create_shop(gateway, shipping, base_url=demo_address(settings), folder=folder, time_to_ship=TIME_TO_SHIP)


@asynccontextmanager
async def _serving(app: Any, settings: Settings, listener: socket.socket) -> AsyncIterator[None]:
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


def _end_with_parent(channel: Channel) -> None:
    """End this process once its parent is gone: gently, then for sure. For a thread of its own."""
    channel.wait_for_the_end()
    log.warning("the process that started this one is gone; stopping", pid=os.getpid())
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE)
    os._exit(1)


PARTS = {"web": serve_web, "worker": do_work}


def main(name: str, *descriptors: str) -> None:
    """Be one of the processes; the last descriptor is the channel to the parent."""
    channel = Channel(int(descriptors[-1]))
    threading.Thread(target=_end_with_parent, args=(channel,), name="parent", daemon=True).start()

    @command
    async def run() -> None:
        raise_file_limit()
        settings = load_settings()
        set_up_logs(settings)
        await PARTS[name](settings, channel, *map(int, descriptors[:-1]))

    try:
        run()
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


if __name__ == "__main__":
    main(*sys.argv[1:])
