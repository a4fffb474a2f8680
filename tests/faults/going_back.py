"""A database that is put back to an earlier state, as a failover to a standby that lags
or a restore does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from paydesk.database.embedded import EmbeddedServer

_KEPT = "kept"
_TRIES = 200


@asynccontextmanager
async def _admin(server: EmbeddedServer) -> AsyncIterator[asyncpg.Connection]:
    """The server's own superuser, while nobody is let into the deployment's database."""
    admin = await asyncpg.connect(server.admin_url)
    try:
        yield admin
    finally:
        await admin.close()


async def keep_copy(server: EmbeddedServer) -> None:
    """Keep the database as it is now; who is connected finds their connection gone."""
    async with _admin(server) as admin:
        await admin.execute("alter database paydesk allow_connections false")
        await _alone(admin, f"create database {_KEPT} template paydesk owner paydesk")
        await admin.execute("alter database paydesk allow_connections true")


async def put_back(server: EmbeddedServer) -> None:
    """The database is what it was when the copy was kept, and all that came since is forgotten."""
    async with _admin(server) as admin:
        await admin.execute("alter database paydesk allow_connections false")
        await _alone(admin, "alter database paydesk rename to lost")
        await admin.execute(f"alter database {_KEPT} rename to paydesk")


async def _alone(admin: asyncpg.Connection, statement: str) -> None:
    """Do what takes a database to oneself."""
    for left in reversed(range(_TRIES)):
        await admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname in ('paydesk', $1) and pid <> pg_backend_pid() and backend_type = 'client backend'",
            _KEPT,
        )
        try:
            await admin.execute(statement)
        except asyncpg.ObjectInUseError:
            if not left:
                raise
            await asyncio.sleep(0.05)
        else:
            return
