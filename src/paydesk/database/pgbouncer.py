"""A pooler between us and PostgreSQL (pgbouncer):
what it has to let through, found out at the start.
"""

from __future__ import annotations

import asyncpg

from paydesk.core.errors import SetupError
from paydesk.database.pool import SESSION, Database
from paydesk.database.statements import Connection

_ROUNDS = 5
"""How often a statement is tried on a connection that another one may have been given;
others may be in between."""

_GONE = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)

_TOLD_BY_POOLERS = ("application_name", "timezone")
"""What poolers pass on by themselves."""


def refused_settings(error: BaseException) -> str | None:
    """What to change in a pooler that does not let our sessions be set;
    None for any other error.
    """
    if not isinstance(error, asyncpg.ProtocolViolationError) or "startup parameter" not in str(error):
        return None
    kept = ",".join(_kept_back())
    return (
        f"the pooler in front of the database refuses a connection ({error}): write ignore_startup_parameters = {kept} "
        f"in its configuration, and set both for the role instead: {_alter_role()}"
    )


async def require_pooler(database: Database) -> None:
    """Make sure that sessions are set as they have to be, and that what one has prepared is there
    when it is used.

    Raises: SetupError, saying what to change; without a pooler there is nothing to.
    """
    async with database.acquire() as connection:
        wrong = [name for name in _kept_back() if await _setting(connection, name) != SESSION[name]]
        if wrong:
            raise SetupError(
                f"the database's sessions lack {' and '.join(wrong)}: a pooler leaves them out, so set them for the "
                f"role: {_alter_role()} (then reconnect the pooler)"
            )
        if await connection.fetchval("select pg_backend_pid()") == connection.get_server_pid():
            return
    await _require_prepared(database)


async def _require_prepared(database: Database) -> None:
    async with database.acquire() as one, database.acquire() as other:
        try:
            for number in range(_ROUNDS):
                prepared = await one.prepare(f"select {number}::integer")
                # In transaction mode the other is now likely to get the server that has just
                # prepared it.
                async with other.transaction():
                    await other.execute("select 1")
                    await prepared.fetchval()
        except _GONE as error:
            raise SetupError(
                "the pooler in front of the database loses prepared statements: use pgbouncer 1.21 or newer with "
                "max_prepared_statements = 1000, or pool_mode = session"
            ) from error


async def _setting(connection: Connection, name: str) -> str:
    return str(await connection.fetchval("select current_setting($1)", name))


def _kept_back() -> list[str]:
    return [name for name in SESSION if name not in _TOLD_BY_POOLERS]


def _alter_role() -> str:
    return " ".join(f"alter role paydesk set {name} = '{SESSION[name]}';" for name in _kept_back())
