"""Ids grow with time wherever their merchant lives: a cell that a merchant comes to from one with
higher ids goes on in a higher range, for all that it gives out from then on.

So lists, places in them and "the newest" may go by ids, in every statement there is or will be. A
range is a number that no cell has; home's directory knows which were given, and to whom.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from paydesk.core.errors import Conflict, Unavailable
from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.cells.adding import hold_numbers
from paydesk.domain.cells.directory import Entry, Kind, enter
from paydesk.domain.cells.numbers import CELLS, has_ids_like_cards

queries = load_statements(__package__ or "", "ranges.sql")

FIRST_GIVEN = 100
"""The lowest number that is given: those below are for who numbers cells."""

_GIVES_WAY = "200ms"
"""How long who draws an id may be kept waiting behind whoever waits for its sequence."""
_PAUSE = 0.2
_PATIENCE = 120.0
"""Seconds until a sequence that is never free is given up: a transaction lasts a minute at most."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The numbers of the lowest and the highest range that a cell gives out ids of: one, but for
    the moments in which it goes on in another.
    """

    lowest: int
    highest: int


@dataclass(frozen=True, slots=True)
class _Taken:
    number: int
    is_given: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """A sequence, and its first and last id in its cell's range."""

    name: str
    first: int
    last: int


async def range_given(database: Database) -> int | None:
    """The number of the range that a cell has been given last; None: it has but its own."""
    given: int | None = await queries.own_range(database)
    return given


async def range_forgotten(home: Database, database: Database, cell: int, *, before: datetime) -> int | None:
    """The number of the range that a cell was given last, before that moment (UTC), if the cell
    knows nothing of it: its database came back from before, and gives out lower ids again.
    """
    newest: int | None = await queries.newest_given(home, cell=cell, before=before)
    return newest if newest is not None and newest > (await range_given(database) or 0) else None


async def ranges_of(database: Database) -> Ranges:
    """The ranges that a cell gives out ids of at this moment."""
    return record_of(Ranges, await queries.standing(database))


async def go_on_above(home: Database, database: Database, cell: int, above: int, *, now: datetime) -> int:
    """Have a cell give out ids of a range above that of a number, while it works; the new range's
    number. `home` is the home cell's database, `now` UTC.

    Cut off, the range is given up: another call takes another one, since ids may have been drawn.
    Raises: Conflict if there is none left; Unavailable if a sequence is in use all the time.
    """
    number = await _given(home, cell, above, now)
    await queries.begin_range(database, number=number)
    for place in await records_of(_Place, queries.to_place(database)):
        await _put(database, place)
    return number


async def _given(home: Database, cell: int, above: int, now: datetime) -> int:
    """A number that the directory says is this cell's from now on."""
    async with home.acquire() as connection, connection.transaction():
        await hold_numbers(connection)
        number = _free(await records_of(_Taken, queries.taken(connection)), above)
        await enter(connection, [Entry(Kind.ids, str(number))], cell, now=now)
        return number


def _free(taken: list[_Taken], above: int) -> int:
    """The next number above all that were given, so that others who come need no further one; else
    one that is high enough. Raises: Conflict.
    """
    numbers = {one.number for one in taken}
    highest = max((one.number for one in taken if one.is_given), default=0)
    for least in (max(highest, above), above):
        for number in range(max(FIRST_GIVEN, least + 1), CELLS):
            if number not in numbers and not has_ids_like_cards(number):
                return number
    raise Conflict(
        f"the ids of the cell that it comes from are {above} × 10¹³ and more, and there is no range above that which "
        "nobody has: what is newer would come before what is older in every list"
    )


async def _put(database: Database, place: _Place) -> None:
    """Put a sequence into its range, once nobody has drawn from it without having committed."""
    end = time.monotonic() + _PATIENCE
    while not await _is_put(database, place):
        if time.monotonic() > end:
            raise Unavailable(f"somebody draws from {place.name} all the time; run the same again")
        await asyncio.sleep(_PAUSE)


async def _is_put(database: Database, place: _Place) -> bool:
    """Whether the sequence was free, or is there already; in a transaction of its own, which holds
    no other one.
    """
    try:
        async with database.acquire() as connection, connection.transaction():
            await connection.execute(f"set local lock_timeout = '{_GIVES_WAY}'")
            await queries.hold_places(connection)
            if await queries.is_below(connection, name=place.name, first=place.first):
                await connection.execute(
                    f"alter sequence {place.name} minvalue {place.first} maxvalue {place.last} "
                    f"start {place.first} restart"
                )
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        return False
    return True
