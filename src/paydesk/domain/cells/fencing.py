"""The fence around a merchant that goes to another cell: nobody writes anything of it, and others
notice nothing.

Claims leave out who is fenced, by the table `merchant_fence`. A trigger on each table of merchants,
which is off where nobody is fenced, sees to the rest, whoever forgets to ask: doors are answered
`Fenced`, and what workers would do to such rows is not done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import datetime, timedelta

import asyncpg

from paydesk.core.errors import Conflict, Unavailable
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, record_of, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.cells.waits import Wait, Waits, unheard, wait_out

queries = load_statements(__package__ or "", "fencing.sql")

IN_PASSING = timedelta(minutes=3)
"""How long a merchant may be on the way before it is told: most moves close it for seconds."""

_TRIGGER = "merchant_is_fenced"
_GIVES_WAY = "200ms"
"""How long writers of a table may be kept waiting behind whoever waits for its lock."""
_PAUSE, _SOON = 0.2, 0.02
_PATIENCE = 120.0
"""Seconds until a table that is never free is given up: a transaction lasts a minute at most."""
_MOMENT, _CLOSED_FOR = 1.0, 5.0
"""Seconds that whoever writes may have written already when a merchant is fenced, and for which it
stays fenced until they are through."""
_CLOCK_ENDS = 5.0
"""Seconds within which whoever moves a test clock comes to see a fence."""


class Fenced(asyncpg.PostgresError):  # type: ignore[misc]
    """The merchant is on its way to another cell: the database has refused to write, and nothing
    was done.
    """

    sqlstate = "PD001"


class FenceGone(Conflict):
    """The fence that was just put up is gone again, or who is to arrive is here already, or who is
    to go is not.
    """

    def __init__(self, merchant_id: int, *, arrives: bool) -> None:
        place = "is in this cell already" if arrives else "is not in this cell any more"
        super().__init__(f"merchant {merchant_id} {place}, or somebody has just taken its fence away")


@dataclass(frozen=True, slots=True)
class Fence:
    """How a merchant is fenced: whether it `arrives` from the other cell or goes there, and since
    when nothing is written (`closed_at`), and it is the other's for good (`moved_at`), UTC.
    """

    merchant_id: int
    arrives: bool
    other_cell: int
    since: datetime
    closed_at: datetime | None
    moved_at: datetime | None


@dataclass(frozen=True, slots=True)
class InFlight:
    """How many calls of a merchant's are being made at this moment, by what they are about."""

    attempts: int
    movements: int
    card_changes: int
    pingbacks: int
    mails: int
    releases: int
    calls: int
    evidence: int
    clocks: int
    readings: int

    def __bool__(self) -> bool:
        return any(astuple(self))

    def __str__(self) -> str:
        counts = {field.name.replace("_", " "): getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{name}: {count}" for name, count in counts.items() if count)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What of a merchant that arrives is here.

    The database that the copy is `copied_of`, and the number of the oldest transaction there of
    which not everything may be in it. None: there is no copy yet. `people` were made for its team.
    """

    copied_of: str | None
    copied_below: str | None
    people: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Guard:
    table: str
    is_on: bool


async def find_fence(database: Database, merchant_id: int) -> Fence | None:
    """The fence around a merchant, None if there is none."""
    return record_if_any(Fence, await queries.find(database, merchant_id=merchant_id))


async def require_unfenced(database: Database, merchant_id: int) -> None:
    """Make sure that the merchant is on no way, for what would have it closed for longer.

    Raises: Fenced, in the words in which the database refuses what is written.
    """
    words = await queries.in_words(database, merchant_id=merchant_id)
    if words is not None:
        raise Fenced(words)


async def fences(database: Database) -> list[Fence]:
    """All who are on their way, or have gone."""
    return await records_of(Fence, queries.every(database))


async def left_half_way(database: Database, *, now: datetime) -> list[Fence]:
    """The fences of those whose move stands still, for longer than in passing. `now` is UTC."""
    return await records_of(Fence, queries.half_way(database, before=now - IN_PASSING))


async def prepare(database: Database, tables: Sequence[str], waits: Waits = unheard) -> None:
    """Have all ready for a fence, so that nothing is waited for under it: the triggers are on, and
    nobody has been writing for more than a moment. Everybody goes on meanwhile.

    Who fences nobody after all is to let the triggers rest.
    Raises: Unavailable if a table is locked, or somebody writes, all the time.
    """
    await _put_on_guard(database, tables, _PATIENCE, waits)

    async def somebody_writes() -> bool:
        return not await _outlived_writers(database, tables, _MOMENT)

    if await wait_out(somebody_writes, Wait.writers, seconds=_PATIENCE, pause=0, waits=waits):
        raise Unavailable("somebody writes in one transaction for long; nobody was fenced: run the same again")


async def fence(
    database: Database,
    merchant_id: int,
    *,
    arrives: bool = False,
    other_cell: int,
    tables: Sequence[str],
    waits: Waits = unheard,
) -> Fence:
    """Put the fence up, or go on with one that stands. From then on nothing is begun, and what was
    begun may end; of who `arrives` nothing is written at all.

    `tables` are those of merchants; their triggers are on before, so that all begins at one moment.
    Moves no money.
    Raises: Unavailable if a table is locked, or somebody writes, all the time (a fence that this
        has put up is gone then, the triggers are on); FenceGone; Conflict if the fence that stands
        is of another way.
    """
    if arrives or await find_fence(database, merchant_id) is not None:
        await _put_on_guard(database, tables, _PATIENCE, waits)
    else:
        await prepare(database, tables, waits)
    put_up = await queries.begin(database, merchant_id=merchant_id, arrives=arrives, other_cell=other_cell)
    try:
        await _have_everybody_see(database, tables, arrives=arrives)
    except Unavailable:
        if put_up is not None and not arrives:
            await open_up(database, merchant_id, other_cell=other_cell)
        raise
    found = await find_fence(database, merchant_id)
    if found is None:
        await let_rest(database, tables)
        raise FenceGone(merchant_id, arrives=arrives)
    if (found.arrives, found.other_cell) != (arrives, other_cell):
        raise _is_on_another_way(found)
    return found


def _is_on_another_way(found: Fence) -> Conflict:
    way = "from" if found.arrives else "to"
    return Conflict(
        f"merchant {found.merchant_id}: another call has just put it on the way {way} cell {found.other_cell}; end "
        "that move first, or cancel it"
    )


async def _have_everybody_see(database: Database, tables: Sequence[str], *, arrives: bool) -> None:
    """Wait for whoever was writing when a fence came, and may not have seen it; of who arrives
    nobody was. Raises: Unavailable.
    """
    await _put_on_guard(database, tables, _CLOSED_FOR)
    if not arrives and not await _outlived_writers(database, tables, _CLOSED_FOR):
        raise Unavailable("somebody has written in one transaction for long; run the same again")


async def _outlived_writers(database: Database, tables: Sequence[str], seconds: float) -> bool:
    """Whether all who are writing come to their end within so many seconds, whoever begins
    meanwhile.
    """
    end, named = time.monotonic() + seconds, list(tables)
    before = set(await queries.writing(database, tables=named))
    while before and time.monotonic() < end:
        await asyncio.sleep(_SOON)
        before &= set(await queries.writing(database, tables=named))
    return not before


async def write_of_closed_alone(connection: Connection) -> None:
    """Nobody who fences a merchant waits for the caller's transaction, which writes rows of those
    alone whom nobody else may write: who arrive, or have moved. Call it before the first of them.
    """
    await queries.write_of_closed_alone(connection)


async def _put_on_guard(database: Database, tables: Sequence[str], patience: float, waits: Waits = unheard) -> None:
    """Switch on the triggers that are not on; each table is waited for so many seconds."""
    guards = await records_of(_Guard, queries.guards(database, tables=list(tables)))
    on = {guard.table for guard in guards if guard.is_on}
    for table in tables:
        if table not in on:
            await _lock_and(
                database,
                table,
                f"create or replace trigger {_TRIGGER} before insert or update or delete "
                f"on {table} for each row execute function refuse_while_fenced()",
                patience,
                waits=waits,
            )


async def in_flight(database: Database, merchant_id: int) -> InFlight:
    """What of a merchant's is under way."""
    return record_of(InFlight, await queries.in_flight(database, merchant_id=merchant_id))


async def close(database: Database, merchant_id: int, *, patience: float, waits: Waits = unheard) -> InFlight:
    """Wait until no call is in flight, or for so many seconds, then let nobody write any more.

    Returns what was in flight still: its outcome is unknown, and is looked for where the merchant
    goes. Who is writing at that moment is waited for. Whoever moves a test clock gives way at once,
    or is dead.
    """
    end = time.monotonic() + _CLOCK_ENDS

    async def look() -> InFlight:
        found = await in_flight(database, merchant_id)
        return found if time.monotonic() < end else replace(found, clocks=0)

    left = await wait_out(look, Wait.calls, seconds=patience, pause=_PAUSE, waits=waits)
    await queries.close(database, merchant_id=merchant_id)
    return left


async def wait_for_clock(database: Database, merchant_id: int, *, seconds: float, waits: Waits = unheard) -> None:
    """Wait until nobody moves the merchant's test clock, or for so many seconds: its shop goes on
    meanwhile, and the fence ends what is not over then.
    """

    async def is_moved() -> int:
        return (await in_flight(database, merchant_id)).clocks

    await wait_out(is_moved, Wait.clocks, seconds=seconds, pause=_PAUSE, waits=waits)


async def say_moved(database: Database, merchant_id: int, *, closed_at: datetime) -> bool:
    """Note that the merchant is the other cell's from now on, for good: no fence here is lifted
    after that. Whether the fence still stood, and is the one that was closed then.
    """
    return await queries.say_moved(database, merchant_id=merchant_id, closed_at=closed_at) is not None


async def open_up(database: Database | Connection, merchant_id: int, *, other_cell: int | None = None) -> bool:
    """Take the fence away, of who has not moved, if it is on the way to or from that cell (None:
    any); whether there was one. The triggers stay on.
    """
    return await queries.lift(database, merchant_id=merchant_id, other_cell=other_cell) is not None


async def lift(database: Database, merchant_id: int, *, tables: Sequence[str], other_cell: int | None = None) -> bool:
    """Take the fence away as `open_up` does, and the triggers off if nobody else is fenced;
    whether there was one.
    """
    was_there = await open_up(database, merchant_id, other_cell=other_cell)
    await let_rest(database, tables)
    return was_there


async def forget(database: Database, merchant_id: int, *, tables: Sequence[str]) -> None:
    """Take the fence away of who has moved, and of whom nothing is left here."""
    await queries.forget(database, merchant_id=merchant_id)
    await let_rest(database, tables)


async def hold_moved(connection: Connection, merchant_id: int) -> bool:
    """Whether the merchant has moved from here, which stays so until the caller's transaction ends:
    what is here may be deleted in it.
    """
    return await queries.hold_moved(connection, merchant_id=merchant_id) is not None


async def arrival(connection: Connection, merchant_id: int, from_cell: int) -> Arrival | None:
    """What is here of a merchant that arrives from a cell, None if it does not: nobody else copies
    it, or lifts its fence, before the caller's transaction ends.
    """
    return record_if_any(Arrival, await queries.arrival(connection, merchant_id=merchant_id, from_cell=from_cell))


async def note_copied(
    connection: Connection, merchant_id: int, copied_of: str, copied_below: str, people: Sequence[int]
) -> None:
    """Note what the copy is of that the caller's transaction has brought up to date, and the people
    whom it has made.
    """
    asked = {"copied_of": copied_of, "copied_below": copied_below, "people": list(people)}
    await queries.note_copied(connection, merchant_id=merchant_id, **asked)


async def let_rest(database: Database, tables: Sequence[str]) -> None:
    """Switch the triggers off if nobody is fenced."""
    for guard in await records_of(_Guard, queries.guards(database, tables=list(tables))):
        if guard.is_on and await queries.nobody_is_fenced(database):
            await _lock_and(database, guard.table, f"alter table {guard.table} disable trigger {_TRIGGER}", unless=True)


async def _lock_and(
    database: Database,
    table: str,
    change: str,
    patience: float = _PATIENCE,
    *,
    unless: bool = False,
    waits: Waits = unheard,
) -> None:
    """Change a table's trigger in a transaction of its own, so that this holds one table at a time;
    `unless` somebody is fenced meanwhile.
    """

    async def somebody_holds_it() -> bool:
        return not await _locked_and(database, table, change, unless=unless)

    if await wait_out(somebody_holds_it, Wait.writers, seconds=patience, pause=_PAUSE, waits=waits):
        raise Unavailable(f"somebody holds the table {table} for long; run the same again")


async def _locked_and(database: Database, table: str, change: str, *, unless: bool) -> bool:
    """Whether the table was free, so that its trigger is as it was to be."""
    try:
        async with database.acquire() as connection, connection.transaction():
            await connection.execute(f"set local lock_timeout = '{_GIVES_WAY}'")
            await connection.execute(f"lock table {table} in share row exclusive mode")
            if unless:
                await queries.hold_beginnings(connection)
            if not unless or await queries.nobody_is_fenced(connection):
                await connection.execute(change)
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        return False
    return True
