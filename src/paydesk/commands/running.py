"""`paydesk run`: database, checkout, background work and the sample shop,
in processes that one parent keeps alive.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from paydesk.adapters.acquirers.simulator import TEST_CARDS
from paydesk.commands.connecting import command, database_address, stop_on_signals
from paydesk.commands.measuring import FOLDER, metrics_folder
from paydesk.commands.sample_shop import Sample, demo_address, open_sample
from paydesk.commands.starting import (
    listen,
    raise_file_limit,
    serve_metrics,
    settings_with_keys,
    warn_of_missing_proxies,
    warn_of_open_secrets,
)
from paydesk.commands.supervising import GRACE, Process
from paydesk.database.migrating import migrate, missing_steps
from paydesk.database.pool import connected
from paydesk.database.standbys import require_synchronous_standby
from paydesk.domain.cells.numbers import begin_cell
from paydesk.domain.operations.copying import refuse_live_acquirer
from paydesk.domain.sealing.needed_keys import require_vault_keys
from paydesk.equipment import mailbox_of, vault_of
from paydesk.logs import set_up_logs
from paydesk.loops.systemd import service_manager
from paydesk.loops.watching import watched
from paydesk.running_settings import announced
from paydesk.secret_files import SUFFIX
from paydesk.settings import PREFIX, Settings
from paydesk.web.console.shell import require_front_end
from paydesk.web.mails.mailbox import PATH as MAILBOX

LOOPBACK = "127.0.0.0/8,::1/128"


@command
async def run(
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Log each request, as `serve` does, instead of results and refusals."),
    ] = False,
) -> None:
    """Run everything on this machine: database, checkout, background work and a sample shop.

    The terminal has a line for each pingback's result, test event and refused form.
    """
    raise_file_limit()
    settings = settings_with_keys()
    if not verbose:
        settings = _telling(settings)
    set_up_logs(settings)
    warn_of_missing_proxies(settings)
    warn_of_open_secrets(settings)
    require_front_end()
    with metrics_folder() as (metrics, _, registry):
        service = listen(settings.host, settings.port, "PORT")
        shop = listen(settings.host, settings.demo_port, "DEMO_PORT")
        metrics_port = serve_metrics(settings, registry)
        settings = settings.model_copy(
            update={
                "port": service.getsockname()[1],
                "demo_port": shop.getsockname()[1],
                "outbound_allow": settings.outbound_allow or LOOPBACK,
                # Here is one version of the code alone, and the sample shop shows all there is.
                "slow_methods": settings.slow_methods or "slow_methods" not in settings.model_fields_set,
                "slow_renewals": settings.slow_renewals or "slow_renewals" not in settings.model_fields_set,
            }
        )
        stop = stop_on_signals()
        async with database_address(settings, supervised=True) as address:
            sample = await _prepare(settings, address)
            web = _part("web", settings, address, metrics, service.fileno(), shop.fileno())
            worker = _part("worker", settings, address, metrics)
            with announced(settings), _fresh_mailbox(settings):
                async with watched("run", notifier=service_manager()):
                    await _keep(web, worker, stop, _welcome(settings, sample, metrics_port))


def _telling(settings: Settings) -> Settings:
    """The settings of a terminal that is read by people, as far as nothing else was chosen."""
    chosen: dict[str, object] = {"log_requests": False, "log_format": "console"}
    return settings.model_copy(
        update={name: value for name, value in chosen.items() if name not in settings.model_fields_set}
    )


async def _prepare(settings: Settings, address: str) -> Sample:
    """Bring the schema up to date and open the sample shop's accounts.

    Raises: SetupError if a key is missing that something rests under.
    """
    vault = vault_of(settings)
    async with connected(address, most=2) as pool:
        await migrate(pool)
        if await missing_steps(pool, alone=True):
            typer.echo("Once you won't go back to the version before, run: paydesk migrate --finish")
        await begin_cell(pool, settings.cell)
        await refuse_live_acquirer(pool, settings.live_acquirer)
        if settings.live_acquirer:
            await require_synchronous_standby(pool, allow_async=settings.allow_async)
        await require_vault_keys(pool, vault, lost=settings.lost_keys())
        return await open_sample(settings, pool, vault, demo_address(settings))


def _part(name: str, settings: Settings, address: str, metrics: Path, *files: int) -> Process:
    """A process of its own, which reads the settings that this one runs
    with from its environment.
    """
    known = {
        "DATA_DIR": str(settings.data_dir.resolve()),
        "DATABASE_URL": address,
        f"DATABASE_URL{SUFFIX}": "",
        "PORT": str(settings.port),
        "DEMO_PORT": str(settings.demo_port),
        "OUTBOUND_ALLOW": settings.outbound_allow,
        "SLOW_METHODS": str(settings.slow_methods),
        "SLOW_RENEWALS": str(settings.slow_renewals),
        "LOG_REQUESTS": str(settings.log_requests),
        "LOG_FORMAT": settings.log_format,
    }
    environment = {**os.environ, **{f"{PREFIX}{name}": value for name, value in known.items()}, FOLDER: str(metrics)}
    command = [sys.executable, "-m", "paydesk.commands.parts", name, *map(str, files)]
    return Process(name, command, environment, files)


@contextmanager
def _fresh_mailbox(settings: Settings) -> Iterator[None]:
    """A mailbox that begins empty and leaves nothing behind:
    mails hold links that let their reader in.
    """
    mailbox = mailbox_of(settings)
    if mailbox is None:
        yield
        return
    mailbox.clear()
    try:
        yield
    finally:
        mailbox.clear()


async def _keep(web: Process, worker: Process, stop: asyncio.Event, welcome: str) -> None:
    """Keep both running until told to stop; the worker ends first,
    as the sample shop answers its pingbacks.

    Raises: SetupError if one of them can't be started.
    """

    async def greet() -> None:
        await web.ready.wait()
        await worker.ready.wait()
        typer.echo(welcome)

    keeping = [asyncio.create_task(each.keep(stop)) for each in (web, worker)]
    greeting = asyncio.create_task(greet())
    try:
        await asyncio.gather(*keeping)
    finally:
        for task in (greeting, *keeping):
            task.cancel()
        await asyncio.gather(greeting, *keeping, return_exceptions=True)
        await worker.end(GRACE)
        await web.end(GRACE)


def _mailbox_address(settings: Settings) -> str:
    """Where mails can be read: on this machine, under a name that the mailbox answers to."""
    if settings.smtp_url.get_secret_value():
        return "none: mails go to the mail server"
    return f"http://127.0.0.1:{settings.port}{MAILBOX}"


def _other_names(settings: Settings) -> str:
    """Which host names lead here besides those of the addresses, and which setting names more."""
    names = ", ".join(settings.other_host_names())
    return f"{names + '; ' if names else ''}localhost; more in {PREFIX}OTHER_HOSTS"


def _welcome(settings: Settings, sample: Sample, metrics_port: int) -> str:
    """The block that ends the start-up: where things are, the key pair, the test cards."""
    cards = "\n".join(f"    {card.number:<20}{card.outcome}" for card in TEST_CARDS)
    return f"""
  Paydesk is running. Ctrl-C stops all of it.

    Sample shop     {demo_address(settings)}
    Checkout        {settings.address}/payment/form
    Sandbox base    {settings.sandbox_address}
    Account         {settings.address}/account
    Guide           {settings.address}/docs
    Other names     {_other_names(settings)}
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
