"""Brings the schema up to date, while the service goes on:
the baseline (baseline.py), then the steps in `migrations/`.

Each step is a transaction of its own behind a table lock: a process that dies leaves whole steps
behind, and of two that start at once one waits for the other. No step makes others wait for long:
one that does not get its locks gives way and is tried again, once who held them has gone. A step
may begin with lines that say more of it:

    -- oldest code: 105            no code that is older than step 105 runs on this schema
    -- once no older code runs      takes away what only code of before needs: waits until an
                                    operator says that none will run; a new database has none of it
    -- outside a transaction       statement by statement, which `create index concurrently` needs
    -- locks: customer, merchant    the tables that it locks, all at once
    -- in batches of 2000: payment (merchant_id, id)
                                   its statement runs over all rows of a table, which it finds under
                                   the name `batch`

A new database is marked until its last step is done (marking.py).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.abc import Traversable
from importlib.resources import files
from itertools import cycle
from typing import TypeAlias

import asyncpg
import structlog

from paydesk.core.errors import SetupError
from paydesk.database import baseline
from paydesk.database.locking import lock_together
from paydesk.database.marking import MARK, code_needed, keep_mark, take_mark_away
from paydesk.database.piecemeal import NAMED_SO, PATIENCE, Batches, batches_of, run_in_batches, run_one_by_one
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements

GIVES_WAY = ("500ms", "500ms", "1500ms")
"""How long a step waits for a lock, try by try: whoever comes after it waits as long.

Most end before PostgreSQL looks for deadlocks (after 1 s), so that it ends no payment; a vacuum of
the server's own, which is in the way too, is ended by that look only.
"""

MOMENT = "100ms"
"""How long a step that holds the tables its file names waits for what it locks besides."""

TURN = 0.2
"""Seconds between looks whether another process is still at a step."""

PAUSE, MOST_PAUSE = 2.0, 30.0
"""Seconds between two tries, and at most while a transaction goes on that was in the way."""

TRIED_FOR = 4 * 3600.0
"""Seconds for which a step is tried that does not get its locks: longer than a backup takes."""

_OLDEST = re.compile(r"^-- oldest code: ([0-9]+)$", re.MULTILINE)
_WAITS = re.compile(r"^-- once no older code runs$", re.MULTILINE)
_OUTSIDE = re.compile(r"^-- outside a transaction$", re.MULTILINE)
_LOCKS = re.compile(r"^-- locks: (\w+(?:, \w+)*)$", re.MULTILINE)
_TABLE = (
    "create table if not exists schema_migration"
    " (number integer primary key, name text not null, at timestamptz not null default now(), oldest_code integer)"
)
_queries = load_statements("paydesk.database", "migrating.sql")

_NAMED = 3
"""How many of those that are in the way are named."""

_NAME = "select name from schema_migration where number = $1"
_RECORD = "insert into schema_migration (number, name, oldest_code) values ($1, $2, $3)"
_RECORD_BASELINE = """
insert into schema_migration (number, name, oldest_code)
select number, $2, least(number, $3) from generate_series(1, $1) number
"""
"""Under each number up to its own: code of before looks for the steps that it knows,
and runs on."""
_RECOGNISE = "update schema_migration set name = $2 where number = $1"

log = structlog.get_logger()

_Transaction: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: `number` orders it, `sql` may hold many statements.

    `oldest_code` is the newest step that the oldest code knows which runs on the schema with
    this one.
    """

    number: int
    name: str
    sql: str
    is_baseline: bool = False

    @property
    def oldest_code(self) -> int:
        """The step that code must know to run with this one:
        this one itself, unless the file says otherwise.
        """
        said = _OLDEST.search(self.sql)
        return int(said[1]) if said else self.number

    @property
    def waits(self) -> bool:
        """Whether it is applied only once nothing older than it runs, nor will again."""
        return _WAITS.search(self.sql) is not None

    @property
    def is_outside(self) -> bool:
        """Whether its statements run one by one, each by itself."""
        return _OUTSIDE.search(self.sql) is not None

    @property
    def locks(self) -> tuple[str, ...]:
        """The tables that it needs locked all at once; empty if it locks one alone."""
        said = _LOCKS.search(self.sql)
        return tuple(said[1].split(", ")) if said else ()

    @property
    def batches(self) -> Batches | None:
        """Over which rows its statement runs, if not over all at once."""
        return batches_of(self.sql)


@dataclass(frozen=True, slots=True)
class _Applied:
    """A step that the schema has: under which name, and the oldest code that runs with it."""

    number: int
    name: str
    oldest_code: int


@cache
def known_migrations() -> tuple[Migration, ...]:
    """The steps that this code knows, in order; the first stands for all up to it."""
    first = Migration(baseline.NUMBER, baseline.NAME, baseline.baseline_sql(), is_baseline=True)
    return first, *steps_in(files("paydesk.database").joinpath("migrations"))


def steps_in(directory: Traversable) -> tuple[Migration, ...]:
    """The steps of a directory, `NNNN_name.sql` each, in order."""
    steps = [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text())
        for file in directory.iterdir()
        if file.name.endswith(".sql")
    ]
    return tuple(sorted(steps, key=lambda step: step.number))


def _nobody(part: float) -> None:
    """Whom progress is told by default."""


async def missing_steps(
    database: Database, steps: Sequence[Migration] | None = None, *, alone: bool = False
) -> list[Migration]:
    """The steps that the schema lacks, in order, of those given, else of all that this code knows;
    those that wait until no older code runs only if that is said (`alone`) or the database is new.

    It is new if it has no step, or whoever began with it did not come to the end. The baseline is
    one of them until a schema that was made step by step was recognised.

    Raises: SetupError if the database was made by newer code that this code can't run beside, or by
        code that is older than the baseline.
    """
    try:
        applied = await _applied(database)
    except asyncpg.UndefinedTableError:
        # Another process may make it at the same moment: then it is there.
        with suppress(asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError):
            await database.execute(_TABLE)
        applied = await _applied(database)
    return _missing(applied, known_migrations() if steps is None else steps, alone=alone)


def _missing(applied: dict[int, _Applied], known: Sequence[Migration], *, alone: bool) -> list[Migration]:
    """The known steps that are not applied, with or without those that wait.

    Raises: SetupError, as `missing_steps`.
    """
    _refuse_newer(applied, known)
    alone = alone or not applied or MARK in applied
    if applied and any(step.is_baseline and step.number not in applied for step in known):
        baseline.refuse_older(max(applied))
    return [
        step
        for step in known
        if (step.number not in applied and (alone or not step.waits))
        or (step.number in applied and not _is_done(step, applied[step.number].name))
    ]


def _is_done(step: Migration, applied_as: str) -> bool:
    """Whether a step that was applied under a name needs nothing:
    a baseline must be recognised first.
    """
    return not step.is_baseline or applied_as == step.name


async def migrate(
    database: Database,
    *,
    steps: Sequence[Migration] | None = None,
    alone: bool = False,
    told: Callable[[float], None] = _nobody,
) -> list[str]:
    """Apply what is missing of the steps given, else of all that this code knows,
    as `missing_steps` has it; returns the names of those applied.

    `told` is called with the part of a step that was done since, 1 for a whole one. `database`
    needs two connections.

    Raises: SetupError if the database was made by newer code that this code can't run beside, or by
        code that is older than the baseline, if what the older steps made is not the baseline's, or
        if a step never gets its locks; the steps before it stay, and the next call goes on
        from there.
    """
    known = known_migrations() if steps is None else steps
    missing = await missing_steps(database, known, alone=alone)
    names = [step.name for step in missing if await _apply(database, step, known, alone, told)]
    applied = await _applied(database)
    if MARK in applied and not _missing(applied, known, alone=True):
        # Code that knows of no marks has applied the last step.
        await take_mark_away(database, max(step.number for step in known))
    return names


async def _apply(
    database: Database, step: Migration, known: Sequence[Migration], alone: bool, told: Callable[[float], None]
) -> bool:
    """Apply one step, however often it has to give way;
    false if another process has done so meanwhile, or a step that waits is to wait after all.

    Raises: SetupError.
    """
    end, seconds = time.monotonic() + TRIED_FOR, cycle(GIVES_WAY)
    while True:
        before = set(await _running(database))
        try:
            return await _try(database, step, known, alone, next(seconds), told)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
            in_the_way = {each: words for each, words in (await _running(database)).items() if each in before}
            who = list(in_the_way.values())[:_NAMED]
            log.info("a step of the schema gives way", step=step.name, why=str(error), in_the_way=who)
        if time.monotonic() > end:
            raise SetupError(
                f"step {step.name} of the schema does not get its locks: end what holds them"
                f" ({', '.join(who) or 'see pg_stat_activity'}), and run paydesk migrate again. "
                "The steps before it are done"
            )
        await _rest(database, set(in_the_way))


@dataclass(frozen=True, slots=True)
class _Running:
    """A transaction under way; `words` say whose it is, and for how long."""

    pid: int
    virtualxid: str
    words: str


async def _running(database: Database) -> dict[_Transaction, str]:
    """The transactions under way, the oldest first, and whose they are."""
    found = await records_of(_Running, _queries.running(database))
    return {(one.pid, one.virtualxid): one.words for one in found}


async def _rest(database: Database, in_the_way: set[_Transaction]) -> None:
    """Wait until the next try: longer while transactions go on that were in the way
    of the last one.
    """
    patience = time.monotonic() + MOST_PAUSE
    await asyncio.sleep(PAUSE)
    while time.monotonic() < patience and in_the_way & set(await _running(database)):  # noqa: ASYNC110
        await asyncio.sleep(PAUSE)


async def _try(
    database: Database,
    step: Migration,
    known: Sequence[Migration],
    alone: bool,
    gives_way: str,
    told: Callable[[float], None],
) -> bool:
    """Try one step once."""
    async with database.acquire() as connection, connection.transaction():
        # What waits here for another process's step may wait longer than what is idle in a
        # transaction otherwise may.
        await connection.execute(f"set local idle_in_transaction_session_timeout = 0; {NAMED_SO}")
        async with asyncio.timeout(PATIENCE):
            while not await _takes_its_turn(connection):  # noqa: ASYNC110 (other processes send no event)
                await asyncio.sleep(TURN)
        applied_as = await connection.fetchval(_NAME, step.number)
        is_new = applied_as is None and await keep_mark(connection, max(one.number for one in known))
        # This also lets go of the question's snapshot, for whose end an index that is built beside
        # would wait.
        await connection.execute(f"set local lock_timeout = '{gives_way}'")
        if applied_as is None:
            if step.waits and not alone and not is_new:
                return False
            await _run(database, connection, step, gives_way, told)
            record = _RECORD_BASELINE if step.is_baseline else _RECORD
            await connection.execute(record, step.number, step.name, step.oldest_code)
            if is_new and not _missing(await _applied(connection), known, alone=True):
                await take_mark_away(connection, max(one.number for one in known))
        elif not _is_done(step, applied_as):
            await baseline.require_same(connection)
            await connection.execute(_RECOGNISE, step.number, step.name)
    if applied_as is not None or not step.batches:
        told(1.0)
    return applied_as is None


async def _takes_its_turn(connection: Connection) -> bool:
    """Whether no other process is at a step, so that none will be until this transaction ends.

    Who stands in the queue of a lock keeps the snapshot by which it found the table, and an index
    that another process builds beside its step waits for the end of every older one: for ever.
    """
    await connection.execute("savepoint turn")
    try:
        await connection.execute("lock table schema_migration in exclusive mode nowait")
    except asyncpg.LockNotAvailableError:
        await connection.execute("rollback to savepoint turn")
        return False
    return True


async def _run(
    database: Database, connection: Connection, step: Migration, gives_way: str, told: Callable[[float], None]
) -> None:
    """Run a step in the connection's transaction, or bit by bit in others beside it."""
    if step.batches:
        async with database.acquire() as beside:
            await run_in_batches(beside, step.sql, step.batches, gives_way, told)
    elif step.is_outside:
        async with database.acquire() as beside:
            await run_one_by_one(beside, step.sql, gives_way)
    else:
        if step.locks:
            await lock_together(connection, step.locks, gives_way)
            await connection.execute(f"set local lock_timeout = '{MOMENT}'")
        await connection.execute(step.sql, timeout=PATIENCE)


async def require_current_schema(database: Database) -> None:
    """Refuse to work on a schema that is behind this code,
    or so far ahead that this code can't work with it.

    Raises: SetupError, naming the command that helps.
    """
    try:
        applied = await _applied(database)
    except asyncpg.UndefinedTableError:
        applied = {}
    if _missing(applied, known_migrations(), alone=False):
        raise SetupError("the database's schema is not up to date; run: paydesk migrate")


async def _applied(database: Database | Connection) -> dict[int, _Applied]:
    """The steps that the schema has, by number."""
    return {step.number: step for step in await records_of(_Applied, _queries.applied(database))}


def _refuse_newer(applied: dict[int, _Applied], known: Sequence[Migration]) -> None:
    """Raise SetupError if the schema has a step with which only newer code runs."""
    newest = max((step.number for step in known), default=0)
    needed = max((code_needed(step.number, step.oldest_code) for step in applied.values()), default=0)
    if needed > newest:
        raise SetupError(
            f"the database's schema needs code that knows version {needed} of it, this code knows versions up to "
            f"{newest}; install the newer Paydesk that made it"
        )
