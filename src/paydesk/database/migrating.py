"""Brings the schema up to date with the plain-SQL files in `migrations/`, while the service goes on.

Each step is a transaction of its own behind a table lock: a process that dies leaves whole steps behind, and of two
that start at once one waits for the other. No step makes others wait for long: one that does not get its locks within
two seconds gives way and is tried again. A step may begin with lines that say more of it:

    -- oldest code: 105            code that knows step 105, and none that is older, runs on the schema with this step
    -- outside a transaction       statement by statement, which `create index concurrently` needs
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import asyncpg
import structlog

from paydesk.core.errors import SetupError
from paydesk.database.pool import Database

PATIENCE = 24 * 3600.0
"""Seconds that a step may take, or wait for another process's: on a big table it may rewrite all rows."""

GIVES_WAY = "2s"
"""How long a step waits for a lock: whoever comes after it waits as long."""

TRIES, PAUSE = 300, 2.0
"""How often a step is tried that does not get its locks, and the seconds between two tries."""

_OLDEST = re.compile(r"^-- oldest code: ([0-9]+)$", re.MULTILINE)
_OUTSIDE = re.compile(r"^-- outside a transaction$", re.MULTILINE)
_INDEX = re.compile(r"create (?:unique )?index concurrently if not exists (\w+)")
_TABLE = (
    "create table if not exists schema_migration"
    " (number integer primary key, name text not null, at timestamptz not null default now())"
)
_NEW_COLUMN = "alter table schema_migration add column if not exists oldest_code integer"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: `number` orders it, `sql` may hold many statements.

    `oldest_code` is the newest step that the oldest code knows which runs on the schema with this one.
    """

    number: int
    name: str
    sql: str

    @property
    def oldest_code(self) -> int:
        """The step that code must know to run with this one: this one itself, unless the file says otherwise."""
        said = _OLDEST.search(self.sql)
        return int(said[1]) if said else self.number

    @property
    def is_outside(self) -> bool:
        """Whether its statements run one by one, each by itself."""
        return _OUTSIDE.search(self.sql) is not None


@cache
def known_migrations() -> tuple[Migration, ...]:
    """The steps that this code knows, in order."""
    steps = [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text())
        for file in files("paydesk.database").joinpath("migrations").iterdir()
        if file.name.endswith(".sql")
    ]
    return tuple(sorted(steps, key=lambda step: step.number))


def _nobody() -> None:
    """Whom progress is told by default."""


async def missing_steps(database: Database) -> list[Migration]:
    """The steps that the schema lacks, in order.

    Raises: SetupError if the database was made by newer code that this code can't run beside.
    """
    try:
        applied = await _applied(database)
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError):
        # Another process may make it at the same moment: then it is there.
        with suppress(asyncpg.UniqueViolationError, asyncpg.DuplicateTableError):
            await database.execute(_TABLE)
        await database.execute(_NEW_COLUMN)
        applied = await _applied(database)
    _refuse_newer(applied)
    return [step for step in known_migrations() if step.number not in applied]


async def migrate(database: Database, *, told: Callable[[], None] = _nobody) -> list[str]:
    """Apply what is missing and return the names of the steps applied; `told` is called after each.

    `database` needs two connections.

    Raises: SetupError if the database was made by newer code that this code can't run beside, or if a step never gets
        its locks; the steps before it stay, and the next call goes on from there.
    """
    done = []
    for step in await missing_steps(database):
        if await _apply(database, step):
            done.append(step.name)
        told()
    return done


async def _apply(database: Database, step: Migration) -> bool:
    """Apply one step, however often it has to give way; false if another process has done so meanwhile.

    Raises: SetupError.
    """
    for _ in range(TRIES):
        try:
            return await _try(database, step)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
            log.info("a step of the schema gives way to work that is under way", step=step.name, why=str(error))
            await asyncio.sleep(PAUSE)
    raise SetupError(
        f"step {step.name} of the schema does not get its locks: end what holds them (a backup, a long report; see "
        "pg_stat_activity), and run paydesk migrate again. The steps before it are done"
    )


async def _try(database: Database, step: Migration) -> bool:
    """Try one step once."""
    async with database.acquire() as connection, connection.transaction():
        # What waits here for another process's step may wait longer than what is idle in a transaction otherwise may.
        await connection.execute("set local idle_in_transaction_session_timeout = 0")
        await connection.execute("lock table schema_migration in exclusive mode", timeout=PATIENCE)
        if await connection.fetchval("select exists (select from schema_migration where number = $1)", step.number):
            return False
        # This also lets go of the question's snapshot, for whose end an index that is built beside would wait.
        await connection.execute(f"set local lock_timeout = '{GIVES_WAY}'")
        if step.is_outside:
            async with database.acquire() as beside:
                await _one_by_one(beside, step)
        else:
            await connection.execute(step.sql, timeout=PATIENCE)
        await connection.execute(
            "insert into schema_migration (number, name, oldest_code) values ($1, $2, $3)",
            step.number,
            step.name,
            step.oldest_code,
        )
    return True


async def _one_by_one(connection: Any, step: Migration) -> None:
    """Run a step's statements each by itself; each must do no harm when it runs again after one that failed.

    An index whose building was broken off stays behind, marked invalid and of no use: it is made anew.
    """
    for statement in filter(None, (part.strip() for part in _without_comments(step.sql).split(";"))):
        if built := _INDEX.match(statement):
            invalid = "select exists (select from pg_index where indexrelid = to_regclass($1) and not indisvalid)"
            if await connection.fetchval(invalid, built[1]):
                await connection.execute(f"drop index concurrently {built[1]}", timeout=PATIENCE)
        await connection.execute(statement, timeout=PATIENCE)


def _without_comments(sql: str) -> str:
    return re.sub(r"^--.*$", "", sql, flags=re.MULTILINE)


async def require_current_schema(database: Database) -> None:
    """Refuse to work on a schema that is behind this code, or so far ahead that this code can't work with it.

    Raises: SetupError, naming the command that helps.
    """
    try:
        applied = await _applied(database)
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError):
        applied = {}
    _refuse_newer(applied)
    if any(step.number not in applied for step in known_migrations()):
        raise SetupError("the database's schema is not up to date; run: paydesk migrate")


async def _applied(database: Database) -> dict[int, int]:
    """The steps that the schema has, and for each the oldest code that runs with it."""
    rows = await database.fetch("select number, coalesce(oldest_code, number) as oldest_code from schema_migration")
    return {row["number"]: row["oldest_code"] for row in rows}


def _refuse_newer(applied: dict[int, int]) -> None:
    """Raise SetupError if the schema has a step with which only newer code runs."""
    newest = max((step.number for step in known_migrations()), default=0)
    needed = max(applied.values(), default=0)
    if needed > newest:
        raise SetupError(
            f"the database's schema needs code that knows version {needed} of it, this code knows versions up to "
            f"{newest}; install the newer Paydesk that made it"
        )
