"""`paydesk postgres`: PostgreSQL's own programs on the deployment's database,
for backups and for a look inside.
"""

from __future__ import annotations

import asyncio
import os
import signal
from enum import StrEnum
from typing import Annotated
from urllib.parse import unquote, urlsplit, urlunsplit

import typer

from paydesk.commands.connecting import command, database_address
from paydesk.core.errors import SetupError
from paydesk.database.cluster import MAJOR_VERSION
from paydesk.database.embedded import binary
from paydesk.database.pool import connected
from paydesk.settings import load_settings


class DatabaseProgram(StrEnum):
    """The programs that take the database's address as `--dbname`."""

    PSQL = "psql"
    PG_DUMP = "pg_dump"
    PG_RESTORE = "pg_restore"


@command
async def postgres(
    program: Annotated[DatabaseProgram, typer.Argument(help="The program to run.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Its own options.")] = None,
) -> None:
    """Run psql, pg_dump or pg_restore on the deployment's database.

    An embedded server that does not run is started for as long as the program takes.
    """
    async with database_address(load_settings()) as address:
        if program is not DatabaseProgram.PSQL:
            await _require_no_older_server(program, address)
        address, password = without_password(address)
        # Ctrl-C is the program's own business: psql takes it back to its prompt.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
        process = await asyncio.create_subprocess_exec(
            binary(program), f"--dbname={address}", *(arguments or []), env={**os.environ, **password}
        )
        status = await process.wait()
    raise typer.Exit(status)


async def _require_no_older_server(program: DatabaseProgram, address: str) -> None:
    """Refuse to dump what its own server could not read back. Raises: SetupError."""
    async with connected(address, most=1) as database, database.acquire() as connection:
        major = connection.get_server_version().major
    if major < int(MAJOR_VERSION):
        raise SetupError(
            f"the server is PostgreSQL {major} and this {program} is of {MAJOR_VERSION}, whose dumps it can't read: "
            f"use the {program} of PostgreSQL {major} (docs/operate.md, Backups of a real server)"
        )


def without_password(address: str) -> tuple[str, dict[str, str]]:
    """The address as a list of processes may show it, and the password as an environment
    for libpq.
    """
    parts = urlsplit(address)
    if parts.password is None:
        return address, {}
    user, _, host = parts.netloc.rpartition("@")
    bare = parts._replace(netloc=f"{user.partition(':')[0]}@{host}")
    return urlunsplit(bare), {"PGPASSWORD": unquote(parts.password)}
