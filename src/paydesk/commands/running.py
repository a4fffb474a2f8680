"""`paydesk run`: database, checkout, background work and the sample shop in one process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import typer

from paydesk.adapters.acquirers.simulator import TEST_CARDS
from paydesk.adapters.mail import Mailbox
from paydesk.adapters.vault import Vault
from paydesk.app import create_app, live_acquirer, payment_desk, test_acquirer, vault_of
from paydesk.commands.connecting import command, database_address, stop_on_signals
from paydesk.commands.sample_shop import Sample, open_sample
from paydesk.commands.serving import EmbeddedUvicorn, uvicorn_config
from paydesk.commands.starting import listen, raise_file_limit, serve_metrics, settings_with_keys
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.logs import set_up_logs
from paydesk.settings import Settings, announced
from paydesk.web.demo.shop import create_shop
from paydesk.web.mails.mailbox import PATH as MAILBOX
from paydesk.web.mails.mailbox import mailbox_routes
from paydesk.worker import mailer_of, work
from paydesk_client import Gateway

LOOPBACK = "127.0.0.0/8,::1/128"


@command
async def run() -> None:
    """Run everything on this machine: database, checkout, background work and a sample shop."""
    raise_file_limit()
    settings = settings_with_keys()
    set_up_logs(settings)
    service = listen(settings.host, settings.port, "PORT")
    shop = listen(settings.host, settings.demo_port, "DEMO_PORT")
    metrics_port = serve_metrics(settings.metrics_port)
    port, demo_port = service.getsockname()[1], shop.getsockname()[1]
    settings = settings.model_copy(
        update={"port": port, "demo_port": demo_port, "outbound_allow": settings.outbound_allow or LOOPBACK}
    )
    running = settings
    stop = stop_on_signals()
    vault = vault_of(settings)
    async with database_address(settings, supervised=True) as address:
        settings = settings.model_copy(update={"database_url": address})
        async with connected(address, most=settings.database_connections) as pool:
            await migrate(pool)
            sample = await open_sample(settings, pool, vault, _demo_address(settings))
            with announced(running):
                await _serve_all(settings, pool, vault, sample, stop, (service, shop), metrics_port)


async def _serve_all(
    settings: Settings,
    pool: Database,
    vault: Vault,
    sample: Sample,
    stop: asyncio.Event,
    listeners: tuple[socket.socket, socket.socket],
    metrics_port: int,
) -> None:
    """Serve and work until told to stop."""
    gateway, shipping = (
        Gateway(*pair, base_url=settings.address, header_prefix=settings.pingback_header_prefix)
        for pair in (sample.keys, sample.shipping_keys)
    )
    shop = create_shop(gateway, shipping, base_url=_demo_address(settings), folder=settings.data_dir / "demo")
    acquirer, live = test_acquirer(settings), live_acquirer(settings)
    desk = payment_desk(settings, pool, vault, acquirer, live)
    app = create_app(settings)
    mailbox = None if mailer_of(settings) else Mailbox()
    if mailbox is not None:
        app.router.routes.extend(mailbox_routes(mailbox))
    async with _serving(shop, listeners[1]), _serving(app, listeners[0]):
        typer.echo(_welcome(settings, sample, metrics_port))
        try:
            await work(settings, pool, vault, desk, stop, mailbox=mailbox)
        finally:
            for each in desk.acquirers.values():
                await each.close()


@asynccontextmanager
async def _serving(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an application for the length of a block; requests under way are finished at its end."""
    server = EmbeddedUvicorn(uvicorn_config(app))
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


def _demo_address(settings: Settings) -> str:
    return f"http://{settings.host}:{settings.demo_port}"


def _mailbox_address(settings: Settings) -> str:
    """Where mails can be read: on this machine, under a name that the mailbox answers to."""
    if settings.smtp_url.get_secret_value():
        return "none: mails go to the mail server"
    return f"http://127.0.0.1:{settings.port}{MAILBOX}"


def _welcome(settings: Settings, sample: Sample, metrics_port: int) -> str:
    """The block that ends the start-up: where things are, the key pair, the test cards."""
    cards = "\n".join(f"    {card.number:<20}{card.outcome}" for card in TEST_CARDS)
    return f"""
  Paydesk is running. Ctrl-C stops all of it.

    Sample shop     {_demo_address(settings)}
    Checkout        {settings.address}/payment/form
    Sandbox base    {settings.sandbox_address}
    Account         {settings.address}/account
    Mailbox         {_mailbox_address(settings)}
    Metrics         http://127.0.0.1:{metrics_port}/metrics
    Data            {settings.data_dir.resolve()}

  The sample shop's keys
    public          {sample.keys[0]}
    private         {sample.keys[1]}

  Its owner's log-in to the account
    e-mail          {sample.owner.email}
    password        {sample.owner.password}

  Test cards (any future date, any CVC)
{cards}
"""
