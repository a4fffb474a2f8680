"""A cell joins the others: checked, entered in the home cell's directory, and given a copy of it.

Each step finds what an earlier try has done, so who was cut off calls the same again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from paydesk.adapters.vault import Vault
from paydesk.core.errors import Conflict, SetupError
from paydesk.database.migrating import require_current_schema
from paydesk.database.pool import Database
from paydesk.domain.cells.adding import add_cell, database_id, follow
from paydesk.domain.cells.comparing import Elsewhere, compare, enter_own
from paydesk.domain.cells.directory import Cell, Standing, this_cell
from paydesk.domain.cells.numbers import secret_noted, secret_print
from paydesk.domain.cells.replicating import (
    publish,
    replicating_role,
    require_may_subscribe,
    subscribe,
    wait_for_copy,
)

MOST_NAMED = 10
"""How many things are named one by one."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A cell that is one of several now: how many lines of the directory are its own, and whether
    its copy is whole.
    """

    cell: Cell
    own: int
    copied: bool


async def begin_home(home: Database, vault: Vault, cell: Cell, *, now: datetime) -> Joined:
    """Make this cell the home of others that will come: its directory is written, and published.
    Again with other addresses changes these. `now` is UTC.

    Raises: Conflict if it follows another; SetupError if its server doesn't write what that takes.
    """
    standing = await this_cell(home)
    if standing.has_cells and not standing.is_home:
        raise Conflict(f"this cell follows cell {standing.home}, which is home: run this there")
    await publish(home)
    async with home.acquire() as connection, connection.transaction():
        await add_cell(connection, cell, database_id=await database_id(connection), now=now)
        await follow(connection, cell.number)
    await enter_own(home, home, vault, cell.number, now=now)
    return Joined(cell, (await compare(home, home, vault, cell.number, now=now)).own, copied=True)


async def join(
    home: Database, other: Database, vault: Vault, cell: Cell, *, home_address: str, now: datetime
) -> Joined:
    """Have another cell join this one, which is home: `other` is its database, `home_address` is
    where its server reaches this one's. `now` is UTC.

    Raises: SetupError, Conflict: then nothing is entered, or what is can be taken up by the
        same call.
    """
    standing = await this_cell(home)
    await _require_fit(standing, other, vault, cell.number)
    known = await database_id(home)
    if await database_id(other) == known:
        raise SetupError(f"the database of cell {cell.number} is this cell's own, or a copy of it")
    compared = await compare(home, other, vault, cell.number, now=now)
    if others := (*compared.elsewhere, *compared.accounts):
        raise Conflict(f"cell {cell.number} has what is in other cells: {named(others)}")
    await publish(home)
    await require_may_subscribe(other)
    async with replicating_role(home_address, known) as role:
        other_id = await database_id(other)
        async with home.acquire() as connection, connection.transaction():
            await add_cell(connection, cell, database_id=other_id, now=now)
        if refused := await enter_own(home, other, vault, cell.number, now=now):
            raise Conflict(f"another cell has just taken {', '.join(one.called for one in refused[:MOST_NAMED])}")
        await subscribe(other, role, cell.number, home_number=standing.number, home_address=home_address)
    # What was made before it knew that it is one of several; a check finds what is another's.
    await enter_own(home, other, vault, cell.number, now=now)
    return Joined(cell, compared.own, await wait_for_copy(other, cell.number))


async def _require_fit(standing: Standing, other: Database, vault: Vault, number: int) -> None:
    """Make sure that a database is the cell that it is said to be, and may join this one."""
    if not standing.has_cells:
        raise Conflict(
            f"add this cell itself first, which makes it home: paydesk cell add {standing.number} --address … "
            "--inside …"
        )
    if not standing.is_home:
        raise Conflict(f"this cell follows cell {standing.home}, which is home: run this there")
    try:
        await require_current_schema(other)
    except SetupError as error:
        raise SetupError(f"cell {number}: {error.message}") from error
    theirs = await this_cell(other)
    if theirs.number != number:
        raise SetupError(f"that database is cell {theirs.number}, not {number}; see PAYDESK_CELL there")
    if theirs.has_cells and theirs.home != standing.number:
        raise Conflict(f"cell {number} follows cell {theirs.home} already")
    noted = await secret_noted(other)
    if noted is None:
        raise SetupError(
            f"cell {number} has not noted its PAYDESK_SECRET_KEY yet: run `paydesk migrate` there with its settings"
        )
    if noted != secret_print(vault):
        raise SetupError(
            f"cell {number} has another PAYDESK_SECRET_KEY than this one, and all cells need the same: without "
            "merchants yet, it takes this one's; with merchants it can't join"
        )


def named(elsewhere: Sequence[Elsewhere]) -> str:
    """What is in other cells, in words."""
    words = [f"{one.own.called} (cell {one.cell})" for one in elsewhere[:MOST_NAMED]]
    more = len(elsewhere) - len(words)
    return ", ".join(words) + (f" and {more} more" if more else "")
