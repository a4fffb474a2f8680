"""Brings the schema up to date with the plain-SQL files in `migrations/`.

All that is missing runs in one transaction behind a table lock: a process that dies in the middle leaves nothing
behind, and of two that start at once one waits for the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import asyncpg

from paydesk.core.errors import SetupError
from paydesk.database.pool import Database

PATIENCE = 24 * 3600.0
"""Seconds that a step may take, or wait for another process's: on a big table it may rewrite all rows."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: `number` orders it, `sql` may hold many statements."""

    number: int
    name: str
    sql: str


def known_migrations() -> list[Migration]:
    """The steps that this code knows, in order."""
    steps = [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text())
        for file in files("paydesk.database").joinpath("migrations").iterdir()
        if file.name.endswith(".sql")
    ]
    return sorted(steps, key=lambda step: step.number)


async def migrate(database: Database) -> list[str]:
    """Apply what is missing and return the names of the steps applied.

    Raises: SetupError if the database was made by newer code.
    """
    async with database.acquire() as connection, connection.transaction():
        await connection.execute(
            "create table if not exists schema_migration"
            " (number integer primary key, name text not null, at timestamptz not null default now())"
        )
        await connection.execute("lock table schema_migration in exclusive mode", timeout=PATIENCE)
        applied = {row["number"] for row in await connection.fetch("select number from schema_migration")}
        refuse_newer(applied)
        missing = [step for step in known_migrations() if step.number not in applied]
        for step in missing:
            await connection.execute(step.sql, timeout=PATIENCE)
            await connection.execute(
                "insert into schema_migration (number, name) values ($1, $2)", step.number, step.name
            )
    return [step.name for step in missing]


async def require_current_schema(database: Database) -> None:
    """Refuse to work on a schema that is behind or ahead of this code.

    Raises: SetupError, naming the command that helps.
    """
    try:
        applied = {row["number"] for row in await database.fetch("select number from schema_migration")}
    except asyncpg.UndefinedTableError:
        applied = set()
    refuse_newer(applied)
    if len(applied) < len(known_migrations()):
        raise SetupError("the database's schema is not up to date; run: paydesk migrate")


def refuse_newer(applied: set[int]) -> None:
    """Raise SetupError if the schema has a step that this code does not know."""
    newest = max((step.number for step in known_migrations()), default=0)
    if applied and max(applied) > newest:
        raise SetupError(
            f"the database's schema is version {max(applied)}, this code knows versions up to {newest}; "
            "install the newer Paydesk that made it"
        )
