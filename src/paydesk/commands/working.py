"""`paydesk work`: the background work; and `paydesk migrate`: the schema."""

from __future__ import annotations

import os
from typing import Annotated

import structlog
import typer

from paydesk.commands.connecting import (
    checked_database,
    command,
    database_address,
    stop_on_signals,
    told_if_it_goes_away,
)
from paydesk.commands.printing import progress
from paydesk.commands.starting import raise_file_limit, serve_metrics, warn_of_open_secrets
from paydesk.database.metrics import measure_pools
from paydesk.database.migrating import Migration, missing_steps
from paydesk.database.migrating import migrate as apply_migrations
from paydesk.database.pool import Database, connected
from paydesk.domain.cells.numbers import begin_cell, note_secret
from paydesk.equipment import history_of, live_acquirer, payment_desk, test_acquirer, vault_of
from paydesk.logs import set_up_logs
from paydesk.loops.systemd import service_manager
from paydesk.loops.watching import watched
from paydesk.required_keys import require_keys, require_live_key
from paydesk.settings import Settings, load_settings
from paydesk.worker import work as do_work

log = structlog.get_logger()


@command
async def work() -> None:
    """Do the background work: send pingbacks, settle unknown outcomes, keep house.
    Run as many as you like.
    """
    raise_file_limit()
    settings = load_settings()
    require_keys(settings)
    require_live_key(settings)
    set_up_logs(settings)
    warn_of_open_secrets(settings)
    vault = vault_of(settings)
    most = settings.database_connections
    history = history_of(settings)
    async with (
        checked_database(settings) as address,
        connected(address, most=most, name="work", meet=history.meet) as pool,
        connected(address, most=1, least=0, name="words") as words,
    ):
        banks = test_acquirer(settings), live_acquirer(settings)
        desk = payment_desk(settings, pool, vault, *banks, gate=history.gate)
        # Whoever reads that it works may ask it to stop at once.
        stop = stop_on_signals()
        log.info("working", pid=os.getpid(), metrics_port=serve_metrics(settings, else_any=True))
        try:
            async with watched("work", notifier=service_manager(), on_look=measure_pools):
                await do_work(settings, pool, vault, desk, stop, history=history, words=words)
        finally:
            for each in desk.acquirers.values():
                await each.close()


@command
async def migrate(
    finish: Annotated[
        bool,
        typer.Option(
            "--finish",
            help="Take away, too, what only older code needs: once none runs any more, and you won't go back to it.",
        ),
    ] = False,
) -> None:
    """Bring the database's schema up to date; safe to run again, and from several machines
    at once.
    """
    settings = load_settings()
    async with database_address(settings) as address, connected(address, most=2, name="migrate") as database:
        with told_if_it_goes_away():
            applied, waiting = await _migrated(settings, database, finish=finish)
    typer.echo(f"applied {', '.join(applied)}" if applied else "the schema is up to date")
    if waiting:
        typer.echo(
            f"{len(waiting)} more once no older code runs, nor will again: paydesk migrate --finish. "
            "Until then the database does work that only older code needs"
        )


async def _migrated(settings: Settings, database: Database, *, finish: bool) -> tuple[list[str], list[Migration]]:
    """The steps that were done, and those that wait until no older code runs."""
    with progress("Steps of the schema", len(await missing_steps(database, alone=finish))) as step:
        applied = await apply_migrations(database, alone=finish, told=step)
    waiting = await missing_steps(database, alone=True)
    await begin_cell(database, settings.cell)
    if settings.cell and settings.secret_key.get_secret_value():
        await note_secret(database, vault_of(settings))
    return applied, waiting
