"""How commands reach the deployment: its settings, its database
(embedded or real) and its vault.
"""

from __future__ import annotations

import asyncio
import select
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

import asyncpg
import structlog
import typer
import uvloop

from paydesk.adapters.vault import Vault
from paydesk.core.errors import NotFound, PaydeskError, Unsure
from paydesk.database.embedded import server_for
from paydesk.database.migrating import require_current_schema
from paydesk.database.pgbouncer import refused_settings, require_pooler
from paydesk.database.pool import AWAY, Database, connected, is_away
from paydesk.database.standbys import require_synchronous_standby
from paydesk.domain.cells.directory import this_cell
from paydesk.domain.cells.entering import Entering
from paydesk.domain.cells.fencing import Fenced
from paydesk.domain.cells.numbers import note_secret, refuse_other_cell
from paydesk.domain.operations.copying import refuse_live_acquirer
from paydesk.domain.operations.history import History
from paydesk.domain.sealing.needed_keys import require_vault_keys
from paydesk.equipment import entering_of, history_of, vault_of
from paydesk.logs import log_to_stderr
from paydesk.required_keys import require_keys
from paydesk.settings import Settings, load_settings
from paydesk.standard_streams import give_up_stdout, is_full, is_unwritten, to_mend

AGAIN = "run the same command again: nothing is done twice"
"""What to do once the database answers, of most commands: those change what there is by its name,
and the others only show it.
"""

STARTING_PATIENCE = 60.0
"""Seconds that a server may take from saying that it starts (or recovers from a crash)
to taking connections."""

log = structlog.get_logger()

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment that a command works on; `history` is what its processes remember of the
    database, `entering` enters what is new in the directory of cells.
    """

    settings: Settings
    database: Database
    vault: Vault
    history: History
    entering: Entering


@asynccontextmanager
async def database_address(settings: Settings, *, supervised: bool = False) -> AsyncIterator[str]:
    """The address of the deployment's database; an embedded one that does not run is started
    for the block.

    `supervised` starts an embedded server again if it dies, for what runs long.
    Raises: SetupError.
    """
    if settings.database_url:
        yield settings.database_url
        return
    async with server_for(settings.data_dir) as server:
        watching = asyncio.create_task(server.supervise()) if supervised else None
        try:
            yield server.url
        finally:
            if watching is not None:
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await watching


@asynccontextmanager
async def checked_database(settings: Settings) -> AsyncIterator[str]:
    """The address of a database, watched over, whose schema is current and whose sealed values can
    be opened.

    One that is just starting is waited for.

    Raises: SetupError.
    """
    async with database_address(settings, supervised=True) as address:
        patience = time.monotonic() + STARTING_PATIENCE
        while True:
            try:
                async with connected(address, most=2) as database:
                    await require_pooler(database)
                    await require_current_schema(database)
                    await refuse_other_cell(database, settings.cell)
                    if settings.cell:
                        await note_secret(database, vault_of(settings))
                    await require_vault_keys(database, vault_of(settings), lost=settings.lost_keys())
                    await refuse_live_acquirer(database, settings.live_acquirer)
                    if settings.live_acquirer:
                        await require_synchronous_standby(database, allow_async=settings.allow_async)
                break
            except asyncpg.CannotConnectNowError as error:
                if time.monotonic() > patience:
                    raise
                log.warning("waiting for the database", why=str(error))
                await asyncio.sleep(0.5)
        yield address


@asynccontextmanager
async def deployment(*, moves_money: bool = False, again: str = AGAIN) -> AsyncIterator[Deployment]:
    """The deployment of the settings, with a current schema;
    whether it forgot something is seen by what `moves_money`.

    What is not found there may be in another cell: whoever asked is told in which they did. If the
    database goes away amid the block they are told what to do `again` once it answers.
    Raises: SetupError, Unsure.
    """
    settings = load_settings(as_running=True)
    require_keys(settings)
    vault, history = vault_of(settings), history_of(settings)
    async with database_address(settings) as address, connected(address, most=4) as database:
        await require_current_schema(database)
        await refuse_other_cell(database, settings.cell)
        await refuse_live_acquirer(database, settings.live_acquirer)
        with told_if_it_goes_away(again):
            async with _telling_of_cells(database), entering_of(settings) as entering:
                if not moves_money:
                    yield Deployment(settings, database, vault, history, entering)
                    return
                async with connected(address, most=4, meet=history.meet) as compared:
                    yield Deployment(settings, compared, vault, history, entering)


@contextmanager
def told_if_it_goes_away(again: str = AGAIN) -> Iterator[None]:
    """Where the database goes away amid the block, say so, and what to do `again`.

    Raises: Unsure.
    """
    try:
        yield
    except Exception as error:
        if not _is_gone(error) or (isinstance(error, BrokenPipeError) and _nobody_reads()):
            raise
        raise Unsure(
            f"the database went away meanwhile ({type(_one(error)).__name__}): what you asked for may be done, in "
            f"part, or not at all. Once it answers, {again}"
        ) from error


def _one(error: BaseException) -> BaseException:
    """The error itself, where tasks that ran together have packed it up alone."""
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        return _one(error.exceptions[0])
    return error


def _is_gone(error: BaseException) -> bool:
    """Whether the database broke off; a file that can't be written is another thing."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_gone(one) for one in error.exceptions)
    return is_away(error) and not is_unwritten(error)


@asynccontextmanager
async def _telling_of_cells(database: Database) -> AsyncIterator[None]:
    """Where there are cells, have who finds nothing know that others may have it."""
    try:
        yield
    except NotFound as error:
        standing = await this_cell(database)
        if not standing.has_cells:
            raise
        raise NotFound(
            f"{error.message}; this is cell {standing.number}: search in its console says which other cell has it"
        ) from error


def command(
    function: Callable[_Parameters, Coroutine[object, None, _Result]],
) -> Callable[_Parameters, _Result]:
    """Make a command of an async function; an error that a user can act on is one line
    and exit status 1.

    Stdout belongs to its result: what is logged meanwhile goes to stderr.
    """

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        log_to_stderr()
        with one_line_errors(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(function(*args, **kwargs))

    return run


@contextmanager
def one_line_errors() -> Iterator[None]:
    """End with one clear line and exit status 1 on an error that a user can act on."""
    try:
        yield
    except BaseException as error:
        message = _message(error)
        if message is None or (isinstance(error, BrokenPipeError) and _nobody_reads()):
            raise
        if is_unwritten(error):
            give_up_stdout()
        sys.stderr.write(f"paydesk: {message}\n")
        raise typer.Exit(1) from None


@contextmanager
def again_under(key: str, call: str, *, has_key: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Where the block can't tell whether it moved money, loses the database over it, or can't write
    what it did: say how to ask again safely.

    Raises: Unsure, with the command that takes up this very wish by its key; where it has not
    (`has_key`), as it was, for a wish that is known by that for a day.
    """
    try:
        yield
    except (Unsure, *AWAY) as error:
        if isinstance(error, BrokenPipeError) and _nobody_reads():
            raise
        why = f"the database went away ({type(error).__name__})"
        if isinstance(error, Unsure):
            why = error.message
        elif is_full(error):
            why = "what was done can't be written, the disk is full: make room"
        elif is_unwritten(error):
            why = f"what was done can't be written ({error}): {to_mend(error)}"
        if isinstance(error, Unsure) or has_key():
            raise Unsure(f"{why}; it is safe to run: {call} --key {shlex.quote(key)}") from error
        raise Unsure(f"{why}; it is safe, within a day, to run: {call}") from error


def _nobody_reads() -> bool:
    """Whether the reader of stdout is gone, as `| head` is once it has its lines: no outage."""
    try:
        watched = select.poll()
        watched.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        return False
    return any(seen & select.POLLERR for _, seen in watched.poll(0))


def _message(error: BaseException) -> str | None:
    """What to tell the user of an error, or None if it is a mistake of ours."""
    error = _one(error)
    if isinstance(error, PaydeskError):
        return error.message
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError | asyncpg.InvalidCatalogNameError):
        return f"the database refuses the connection: {error}; check PAYDESK_DATABASE_URL"
    if (what_to_change := refused_settings(error)) is not None:
        return what_to_change
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return f"the role may not do that in its database: {error}; docs/operate.md says what to grant"
    if isinstance(error, asyncpg.ObjectNotInPrerequisiteStateError | Fenced):
        return str(error)
    if is_unwritten(error):
        what = "write" if is_full(error) else "read or write"
        return f"can't {what}: {error}; {to_mend(error)}, and look what was done before you ask for it again"
    if isinstance(error, AWAY):
        return f"the database can't be reached: {str(error) or type(error).__name__}; check PAYDESK_DATABASE_URL"
    return None


def stop_on_signals() -> asyncio.Event:
    """An event that Ctrl-C or a SIGTERM sets."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
