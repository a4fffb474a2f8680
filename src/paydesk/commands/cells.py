"""`paydesk cell`: the cells that share out merchants: adding one, listing and checking all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from typing import Annotated
from urllib.parse import urlsplit

import asyncpg
import typer

from paydesk.commands.cell_maps import maps
from paydesk.commands.connecting import Deployment, command, database_address, deployment
from paydesk.commands.printing import AsJson, counted, note, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed, SetupError
from paydesk.database.pool import AWAY, Database, connected
from paydesk.domain.cells.checking import Finding, check_cells, mend_cells
from paydesk.domain.cells.directory import Cell, this_cell
from paydesk.domain.cells.joining import Joined, begin_home, join
from paydesk.domain.cells.listing import ListedCell, list_cells
from paydesk.domain.cells.numbers import CELLS
from paydesk.domain.cells.replicating import Slot, name_for, slots
from paydesk.settings import Settings

app = typer.Typer(help="Add, list and check the cells that share out merchants.", no_args_is_help=True)
app.command(epilog="Example: paydesk cell maps /etc/haproxy/cells")(maps)

_TWO = "--address https://two.pay.example --inside http://10.0.0.2:8000"
Home = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Where other cells' PostgreSQL reaches this one, as a role with REPLICATION; else PAYDESK_DATABASE_URL.",
    ),
]


@app.command(epilog=f"Example: paydesk cell add 2 {_TWO}")
@command
async def add(
    number: Annotated[int, typer.Argument(min=0, max=CELLS - 1, metavar="NUMBER", help="The cell's PAYDESK_CELL.")],
    address: Annotated[str, typer.Option(metavar="URL", help="Its public base address.")],
    inside: Annotated[str, typer.Option(metavar="URL", help="Where other cells reach its `serve`.")],
    database: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Its database, as a role that may make subscriptions; else of PAYDESK_CELL_DATABASES."
        ),
    ] = "",
    home: Home = "",
    as_json: AsJson = False,
) -> None:
    """Add a cell, in the home cell: first the home cell itself, by its own number, then each other.

    The other cell's database is checked, what it has is entered in the directory, and its
    PostgreSQL follows this one's from then on. Run again, it goes on where it was cut off, and
    takes new addresses.
    """
    cell = Cell(number, _base(address, "--address"), _base(inside, "--inside"))
    async with deployment() as here:
        if number == (await this_cell(here.database)).number:
            if here.settings.cell is None:
                raise SetupError(
                    f"set PAYDESK_CELL={number} for all processes of this cell and restart them first: without it they "
                    "enter nothing new in the directory"
                )
            joined = await begin_home(here.database, here.vault, cell, now=utc_now())
        else:
            url = database or _addresses(here.settings).get(number, "")
            if not url:
                raise SetupError(f"give the database of cell {number}, by --database or in PAYDESK_CELL_DATABASES")
            async with _asked(number, url) as other, database_address(here.settings) as ours:
                joined = await join(here.database, other, here.vault, cell, home_address=home or ours, now=utc_now())
    _show_joined(joined, as_json=as_json)


@app.command("list", epilog="Example: paydesk cell list --json")
@command
async def list_(as_json: AsJson = False) -> None:
    """List all cells: addresses, merchants, and in the home cell how far behind each one's copy of
    the directory is.
    """
    async with deployment() as here:
        standing = await this_cell(here.database)
        found = await list_cells(here.database)
        kept = await slots(here.database) if standing.is_home else {}
    facts = [_facts(one, kept.get(name_for(one.number)), home=standing.home) for one in found]
    if as_json:
        show_json(facts)
        return
    titles = ("number", "address", "inside", "merchants", "ids", "copy", "bytes behind", "seconds behind")
    show_table(titles, [[fact[title.replace(" ", "_")] for title in titles] for fact in facts])


@app.command(epilog="Example: paydesk cell check --mend")
@command
async def check(
    mend: Annotated[bool, typer.Option("--mend", help="Set right what can be, then look again.")] = False,
    home: Home = "",
    as_json: AsJson = False,
) -> None:
    """Compare, in the home cell, the directory with what each cell has, and with each cell's copy;
    the others' databases are those of PAYDESK_CELL_DATABASES.

    Exit status 1 if anything differs. --mend enters what is missing, takes out entries of what is
    not there, and makes copies anew whose slot or subscription was lost, in a failover for example.
    """
    async with deployment() as here, AsyncExitStack() as stack:
        standing = await this_cell(here.database)
        if not standing.has_cells:
            raise SetupError("this deployment stands alone: there are no cells; see: paydesk cell add --help")
        if not standing.is_home:
            raise SetupError(f"run this in cell {standing.home}, which is home")
        others, away = await _all_asked(here, stack, but=standing.number)
        found = await check_cells(here.database, others, here.vault, away=away, now=utc_now())
        before = found
        if mend and found:
            ours = home or await stack.enter_async_context(database_address(here.settings))
            await mend_cells(here.database, others, here.vault, home_address=ours, now=utc_now())
            found = await check_cells(here.database, others, here.vault, away=away, now=utc_now())
    _show_findings(found, [one for one in before if one not in found], as_json=as_json)


async def _all_asked(here: Deployment, stack: AsyncExitStack, *, but: int) -> tuple[dict[int, Database], set[int]]:
    """The databases of all other cells whose addresses are known, and the numbers of those that
    can't be reached: no dead cell keeps the others from being checked.
    """
    addresses = _addresses(here.settings)
    known = [one.number for one in await list_cells(here.database) if one.number in addresses and one.number != but]
    found, away = {}, set()
    for number in known:
        try:
            found[number] = await stack.enter_async_context(_asked(number, addresses[number]))
        except SetupError:
            away.add(number)
    return found, away


@asynccontextmanager
async def _asked(number: int, url: str) -> AsyncIterator[Database]:
    """Another cell's database, for the length of a block. Raises: SetupError, which shows no
    address: it may hold a password.
    """
    async with AsyncExitStack() as stack:
        try:
            pool = await stack.enter_async_context(connected(url, most=2, name="cell"))
        except (*AWAY, asyncpg.PostgresError, ValueError) as error:
            raise SetupError(
                f"the database of cell {number} can't be reached ({type(error).__name__}): "
                "check --database, or PAYDESK_CELL_DATABASES"
            ) from None
        yield pool


def _addresses(settings: Settings) -> Mapping[int, str]:
    """The databases of PAYDESK_CELL_DATABASES. Raises: SetupError."""
    found = {}
    for place, part in enumerate(settings.cell_databases.get_secret_value().split(), 1):
        number, _, url = part.partition("=")
        if not number.isdecimal() or not url.startswith(("postgresql://", "postgres://")):
            raise SetupError(f"PAYDESK_CELL_DATABASES: write entry {place} as number=postgresql://…")
        found[int(number)] = url
    return found


def _base(text: str, option: str) -> str:
    """A base address, without a path. Raises: Malformed."""
    parts = urlsplit(text.rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query or parts.fragment:
        raise Malformed(f"{option} needs http://host:port or https://host, without a path")
    if parts.username is not None:
        raise Malformed(f"{option} is shown to all cells: it can't hold a password")
    return f"{parts.scheme}://{parts.netloc}"


def _facts(one: ListedCell, slot: Slot | None, *, home: int | None) -> dict[str, object]:
    """A cell as the list shows it."""
    if one.number == home:
        copy = "home"
    elif slot is None:
        copy = None
    else:
        copy = "lost" if slot.lost else "follows" if slot.active else "does not follow"
    return asdict(one) | {
        "copy": copy,
        "bytes_behind": slot.bytes_behind if slot else None,
        "seconds_behind": slot.seconds_behind if slot else None,
    }


def _show_joined(joined: Joined, *, as_json: bool) -> None:
    facts = asdict(joined.cell) | {"entries": joined.own, "copied": joined.copied}
    if as_json:
        show_json(facts)
    else:
        show_facts(facts.items())
    if not joined.copied:
        note("its copy of the directory is not whole yet: see paydesk cell list, and its PostgreSQL's log")


def _show_findings(found: list[Finding], mended: list[Finding], *, as_json: bool) -> None:
    if as_json:
        show_json({"found": found, "mended": mended})
    else:
        for one in mended:
            typer.echo(f"cell {one.cell}: mended: {one.what}")
        for one in found:
            typer.echo(f"cell {one.cell}: {one.what}; {one.to_do}")
        if not found:
            typer.echo("the directory, its copies and all cells agree")
    if found:
        note(f"{counted(len(found), 'difference')} left")
        raise typer.Exit(1)
