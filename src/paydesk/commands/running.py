"""`paydesk run`: database, checkout, background work and the sample shop in one process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import typer

from paydesk.adapters.acquirers.simulator import TEST_CARDS
from paydesk.adapters.mail import Mailbox
from paydesk.adapters.vault import Vault
from paydesk.app import create_app, live_acquirer, payment_desk, test_acquirer, vault_of
from paydesk.commands.connecting import command, database_address, stop_on_signals
from paydesk.commands.serving import EmbeddedUvicorn, uvicorn_config
from paydesk.commands.starting import listen, raise_file_limit, serve_metrics, settings_with_keys
from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.accounts import create_merchant, find_merchant
from paydesk.domain.merchants.keys import pairs_of
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
            keys = await _sample_merchant(settings, pool, vault)
            with announced(running):
                await _serve_all(settings, pool, vault, keys, stop, (service, shop), metrics_port)


async def _serve_all(
    settings: Settings,
    pool: Database,
    vault: Vault,
    keys: tuple[str, str],
    stop: asyncio.Event,
    listeners: tuple[socket.socket, socket.socket],
    metrics_port: int,
) -> None:
    """Serve and work until told to stop."""
    gateway = Gateway(*keys, base_url=settings.address, header_prefix=settings.pingback_header_prefix)
    shop = create_shop(gateway, base_url=_demo_address(settings), folder=settings.data_dir / "demo")
    acquirer, live = test_acquirer(settings), live_acquirer(settings)
    desk = payment_desk(settings, pool, vault, acquirer, live)
    app = create_app(settings)
    mailbox = None if mailer_of(settings) else Mailbox()
    if mailbox is not None:
        app.router.routes.extend(mailbox_routes(mailbox))
    async with _serving(shop, listeners[1]), _serving(app, listeners[0]):
        typer.echo(_welcome(settings, keys, metrics_port))
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


async def _sample_merchant(settings: Settings, database: Database, vault: Vault) -> tuple[str, str]:
    """The sample shop's key pair: random for each data directory, made at the first start."""
    note = settings.data_dir / "demo" / "merchant"
    try:
        merchant = await find_merchant(database, int(note.read_text()))
        return (await pairs_of(database, vault, merchant.id))[0]
    except (FileNotFoundError, ValueError, NotFound):
        merchant = await create_merchant(
            database,
            vault,
            name="Sample Shop",
            email="owner@sample-shop.example",
            pingback_url=f"{_demo_address(settings)}/pingback",
            now=utc_now(),
        )
        _write(note, str(merchant.id))
        return merchant.public_key, merchant.private_key


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(text)


def _demo_address(settings: Settings) -> str:
    return f"http://{settings.host}:{settings.demo_port}"


def _mailbox_address(settings: Settings) -> str:
    """Where mails can be read: on this machine, under a name that the mailbox answers to."""
    if settings.smtp_url.get_secret_value():
        return "none: mails go to the mail server"
    return f"http://127.0.0.1:{settings.port}{MAILBOX}"


def _welcome(settings: Settings, keys: tuple[str, str], metrics_port: int) -> str:
    """The block that ends the start-up: where things are, the key pair, the test cards."""
    cards = "\n".join(f"    {card.number:<20}{card.outcome}" for card in TEST_CARDS)
    return f"""
  Paydesk is running. Ctrl-C stops all of it.

    Sample shop     {_demo_address(settings)}
    Checkout        {settings.address}/payment/form
    Sandbox base    {settings.sandbox_address}
    Mailbox         {_mailbox_address(settings)}
    Metrics         http://127.0.0.1:{metrics_port}/metrics
    Data            {settings.data_dir.resolve()}

  The sample shop's keys
    public          {keys[0]}
    private         {keys[1]}

  Test cards (any future date, any CVC)
{cards}
"""
