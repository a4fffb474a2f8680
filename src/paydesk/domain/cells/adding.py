"""Adding a cell: what the home cell knows of it, and what its own database knows of home."""

from __future__ import annotations

from datetime import datetime

from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.cells.directory import Cell

queries = load_statements(__package__ or "", "adding.sql")


async def add_cell(home: Database | Connection, cell: Cell, *, database_id: str, now: datetime) -> None:
    """Have the home cell know a cell (itself, too), by its number and its database; again with
    other addresses changes these: in a transaction of the caller's. `now` is UTC.

    Raises: Conflict if the number is another database's, or the database has another number, or
        ids of that number are another cell's.
    """
    await hold_numbers(home)
    added = await queries.add_cell(
        home, number=cell.number, address=cell.address, inside=cell.inside, database_id=database_id, now=now
    )
    if added is None:
        raise Conflict(
            f"cell {cell.number} is another database, or this one was added as another cell, or another cell was given "
            "the ids of that number; see: paydesk cell list"
        )


async def hold_numbers(home: Database | Connection) -> None:
    """Have nobody else number a cell, or be given a range of ids, until the transaction's end."""
    await queries.hold_numbers(home)


async def follow(database: Database | Connection, home: int) -> None:
    """Have a database know that it is one of several cells, and which of them writes the directory
    (itself, if that is its own number).

    Raises: Conflict if it follows another.
    """
    if await queries.follow(database, home=home) is None:
        raise Conflict("this database belongs to the cells of another home")


async def database_id(database: Database) -> str:
    """By what a cell's database is known again, wherever it is reached."""
    return str(await queries.database_id(database))
