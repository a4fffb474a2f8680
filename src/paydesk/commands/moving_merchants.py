"""`paydesk merchant move`: a merchant goes to another cell, with everything that is theirs; or the
copy goes that came back of who had moved.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated

import asyncpg
import typer
from pydantic_settings import DotEnvSettingsSource

from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.options import MerchantId
from paydesk.commands.printing import AsJson, counted, note, progress, show_json, show_table, waiting
from paydesk.core.errors import SetupError, Unavailable
from paydesk.database.migrating import require_current_schema
from paydesk.database.pool import AWAY, Database, connected
from paydesk.domain.cells.directory import this_cell
from paydesk.domain.cells.waits import Wait
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.comparisons import COMPARED
from paydesk.domain.moving.copying import PATIENCE, Side
from paydesk.domain.moving.moving import Moved, move_merchant
from paydesk.domain.moving.only_here import Alone, code_of
from paydesk.domain.moving.passes import Pass
from paydesk.domain.moving.removing import OnlyHere, Removed, Stage, look_at_copy, remove_copy
from paydesk.domain.moving.steps import Move, Step
from paydesk.domain.moving.tables import COPIED
from paydesk.domain.sealing.needed_keys import require_vault_keys
from paydesk.equipment import vault_of
from paydesk.required_keys import require_keys
from paydesk.secret_files import WithSecretFiles
from paydesk.settings import PREFIX, Settings, load_settings

SAID = {
    Step.copied: "copied and compared, while it goes on here",
    Step.followed: "what changed meanwhile is there, too",
    Step.fenced: "fenced: nothing new begins",
    Step.closed: "closed: nothing is in the air any more",
    Step.completed: "all is there, and was compared",
    Step.moved: "the other cell's from now on",
    Step.switched: "led there",
    Step.opened: "open there",
    Step.forgotten: "deleted here",
}

DOING = {
    Pass.whole: "Copying",
    Pass.changes: "Following",
    Pass.last: "Closed, bringing what is left",
}

COMPARING = "Comparing"

AWAITED = {
    Wait.opened: "Waiting until every process of the other cell has opened its accounts",
    Wait.readings: "Waiting for a reading of its accounts that is on its way",
    Wait.clocks: "Waiting until nobody advances or resets its test clock",
    Wait.writers: "Waiting for transactions that write",
    Wait.calls: "Fenced, waiting for calls in the air",
}

REMOVING = {
    Stage.closed: "closed: nothing begins here, and nothing is in the air any more",
    Stage.compared: "compared with the other cell",
    Stage.given_up: "the other cell's for good",
    Stage.led: "led there: the directory had come back, too",
    Stage.deleted: "deleted here",
}

_EXAMPLE = "paydesk merchant move 5 --to 2 --to-env /etc/paydesk/cell2.env"
EXAMPLES = f"Examples: {_EXAMPLE}; {_EXAMPLE} --cancel; {_EXAMPLE} --remove-copy --dry-run"


@command
async def move(
    merchant_id: MerchantId,
    to: Annotated[int, typer.Option(help="Number of the cell that the merchant goes to.")],
    to_env: Annotated[Path, typer.Option(help="Environment file of that cell: its database, its keys.")],
    cancel: Annotated[
        bool, typer.Option("--cancel", help="It has not moved yet: let it go on here; empty the copy.")
    ] = False,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove-copy",
            help="It is in both cells, for the database here came back from before it had moved: delete what is here.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --remove-copy: say what only the copy knows; change nothing.")
    ] = False,
    lose: Annotated[
        str,
        typer.Option(metavar="CODE", help="With --remove-copy: delete also what only it knows, which is called so."),
    ] = "",
    home_came_back: Annotated[
        bool,
        typer.Option(
            "--home-came-back",
            help="With --remove-copy: home's database came back, too, so that the directory leads to the copy.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring an account with everything that is theirs to another cell: for some seconds its shop
    says "try again". Killed at any moment, the same command goes on.
    """
    if cancel and remove:
        raise typer.BadParameter("--cancel is for a merchant on the way, --remove-copy for one that has moved")
    if (dry_run or lose or home_came_back) and not remove:
        raise typer.BadParameter("--dry-run, --lose and --home-came-back are for --remove-copy")
    there = settings_of(to_env)
    require_keys(there)
    async with deployment() as here, AsyncExitStack() as stack:
        stack.enter_context(_naming_the_next_step())
        target = await stack.enter_async_context(_connected(there.database_url, f"--to-env: the database of {to_env}"))
        await require_current_schema(target)
        if here.settings.idempotency_secret != there.idempotency_secret:
            raise SetupError(f"{PREFIX}IDEMPOTENCY_SECRET of both cells is not the same: banks would be asked twice")
        asked = Move(
            Side(here.database, here.vault),
            Side(target, vault_of(there)),
            await _home(here, target, to, stack),
            merchant_id,
            to,
            serves_live=bool(there.live_acquirer),
            same_simulator=bool(there.simulator_url) and here.settings.simulator_url == there.simulator_url,
        )
        if not cancel:
            await _require_their_keys(asked.target, there)
        if cancel:
            await cancel_move(asked)
            note(f"merchant {merchant_id} goes on here")
        elif dry_run:
            _say_looked(asked, await _looked(asked, home_came_back), as_json=as_json)
        elif remove:
            _say_removed(asked, await _removed(asked, lose, home_came_back, as_json=as_json), as_json=as_json)
        else:
            _say(asked, await _moved(asked), as_json=as_json)


async def _require_their_keys(target: Side, there: Settings) -> None:
    """Make sure that the file has the keys under which the other cell's data rests: what goes there
    is sealed with its first one, and by another's nobody there could ever open it.

    Raises: SetupError.
    """
    try:
        await require_vault_keys(target.database, target.vault, lost=there.lost_keys())
    except SetupError as error:
        raise SetupError(f"--to-env: {error.message}") from error


async def _moved(asked: Move) -> Moved:
    return await move_merchant(
        asked,
        passed=lambda one: note(SAID[one]),
        watch=lambda one: progress(DOING[one], len(COPIED)),
        compares=_comparing,
        waits=lambda one, seconds: waiting(AWAITED[one], seconds),
    )


def _say(asked: Move, moved: Moved, *, as_json: bool) -> None:
    copied = moved.copied
    if as_json:
        facts = {
            "merchant_id": asked.merchant_id,
            "cell": asked.to,
            "seconds": round(moved.seconds, 1),
            "ids": moved.ids,
            "was_there": moved.was_there,
        }
        came = {"rows": copied.rows, "rows_while_closed": copied.changed, "lsn": copied.lsn} if copied else {}
        show_json(facts | {"rows": None, "rows_while_closed": None, "lsn": None} | came)
        return
    if moved.was_there:
        note(f"merchant {asked.merchant_id} is in cell {asked.to} already, and nothing of it is here")
    if moved.ids is not None:
        note(f"cell {asked.to} gives out its ids from {moved.ids} × 10¹³ on now, above those that came")
    if moved.left:
        note(f"outcomes that will be looked for there: {moved.left}")
    if copied is not None:
        note(f"{counted(copied.rows, 'row')}, as of {copied.lsn}; sealed anew: {counted(moved.sealed, 'value')}")
        note(f"closed for {moved.seconds:.1f} s, in which {counted(copied.changed, 'row')} came")
    if asked.home is None:
        note(f"there is no directory of cells: lead the host names of its forms and links to cell {asked.to} now")


def _comparing() -> AbstractContextManager[Callable[[], None]]:
    return progress(COMPARING, len(COMPARED))


async def _looked(asked: Move, home_came_back: bool) -> list[Alone]:
    with _comparing() as report:
        return await look_at_copy(asked, home_came_back=home_came_back, report=report)


async def _removed(asked: Move, lose: str, home_came_back: bool, *, as_json: bool) -> Removed:
    """Remove the copy; what only it knows is shown before the error that says what to do."""
    try:
        with _comparing() as report:
            return await remove_copy(
                asked,
                lose=lose,
                home_came_back=home_came_back,
                reached=lambda one: note(REMOVING[one]),
                report=report,
                waits=lambda one, seconds: waiting(AWAITED[one], seconds),
            )
    except OnlyHere as refused:
        if as_json:
            _say_looked(asked, refused.found, as_json=True)
        else:
            _show(refused.found)
        raise


def _show(found: Sequence[Alone]) -> None:
    show_table(("Table", "Rows", "First"), [(one.table, one.rows, ", ".join(one.first)) for one in found])
    for one in found:
        if one.may_be:
            note(f"{one.table}: {one.may_be}")


def _say_looked(asked: Move, found: Sequence[Alone], *, as_json: bool) -> None:
    if as_json:
        show_json(_facts(asked, found) | {"code": code_of(found) if found else None})
    elif found:
        _show(found)
        note(f"cell {asked.to} does not know these rows; --lose {code_of(found)} deletes them, too")
    else:
        note(f"cell {asked.to} knows all that is here of merchant {asked.merchant_id}")


def _say_removed(asked: Move, removed: Removed, *, as_json: bool) -> None:
    if as_json:
        show_json(_facts(asked, removed.lost))
        return
    if removed.lost:
        note(f"what cell {asked.to} does not know was deleted, too: {'; '.join(str(one) for one in removed.lost)}")
    if removed.left:
        note(f"was still in the air when it was closed: {removed.left}")
    note(f"merchant {asked.merchant_id} is in cell {asked.to} alone")


def _facts(asked: Move, found: Sequence[Alone]) -> dict[str, object]:
    rows = [{"table": one.table, "rows": one.rows, "first": one.first, "may_be": one.may_be} for one in found]
    return {"merchant_id": asked.merchant_id, "cell": asked.to, "only_here": rows}


async def _home(here: Deployment, target: Database, to: int, stack: AsyncExitStack) -> Database | None:
    """The database of the home cell, whose directory leads to merchants; None if there are no
    cells.

    Raises: SetupError.
    """
    standing, url = await this_cell(here.database), here.settings.home_database_url
    if not standing.has_cells:
        return None
    if standing.is_home:
        return here.database
    if standing.home == to:
        return target
    if not url:
        raise SetupError(f"neither of both cells is the home cell: name its database with {PREFIX}HOME_DATABASE_URL")
    home = await stack.enter_async_context(_connected(url, f"the database of {PREFIX}HOME_DATABASE_URL"))
    try:
        is_home = (await this_cell(home)).is_home
    except asyncpg.InsufficientPrivilegeError as error:
        raise SetupError(
            f"the role of {PREFIX}HOME_DATABASE_URL may not see which database that is: in the home cell's database, "
            "grant select (tag, cell, home_cell) on deployment to NAME"
        ) from error
    if not is_home:
        raise SetupError(f"{PREFIX}HOME_DATABASE_URL is not the database of cell {standing.home}, which is home")
    return home


def settings_of(path: Path) -> Settings:
    """The settings of another deployment's environment file; nothing of this one's is among them.

    Raises: SetupError.
    """
    if not path.is_file():
        raise SetupError(f"--to-env: there is no file {path}")
    source = DotEnvSettingsSource(Settings, env_file=path)
    defaults = {name: field.get_default(call_default_factory=True) for name, field in Settings.model_fields.items()}
    settings = load_settings(**(defaults | WithSecretFiles(source, Settings.secrets())()))
    if not settings.database_url:
        raise SetupError(f"--to-env: {path} names no {PREFIX}DATABASE_URL")
    return settings


@asynccontextmanager
async def _connected(url: str, called: str) -> AsyncIterator[Database]:
    """Another cell's database, for the length of a block. Raises: SetupError, which shows no
    address: it may hold a password.
    """
    async with AsyncExitStack() as stack:
        try:
            pool = await stack.enter_async_context(connected(url, most=4, name="move", patience=PATIENCE))
        except (*AWAY, asyncpg.PostgresError, ValueError) as error:
            raise SetupError(f"{called} can't be reached ({type(error).__name__}); nothing was begun") from None
        yield pool


@contextmanager
def _naming_the_next_step() -> Iterator[None]:
    """Where one of the databases goes away amid the block, say what to do. Raises: Unavailable."""
    try:
        yield
    except AWAY as error:
        raise Unavailable(
            f"a database went away ({type(error).__name__}): this cell's, the other's or home's; once all answer, run "
            "the same command again, which goes on, or with --cancel"
        ) from error
