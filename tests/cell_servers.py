"""Two cells, each on a PostgreSQL server of its own, between which logical replication runs;
a module imports the fixtures.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.conftest import CARELESS, fast_place

from paydesk.database import cluster, programs
from paydesk.database.cluster import Layout, ServerUser
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.cells.numbers import begin_cell

LOGICAL = (
    *CARELESS,
    "-c",
    "wal_level=logical",
    "-c",
    "wal_receiver_timeout=5s",
    "-c",
    "wal_retrieve_retry_interval=200",
)


@dataclass(frozen=True, slots=True)
class CellServer:
    """A server with one cell's database, that of its only deployment."""

    number: int
    server: EmbeddedServer
    pool: Database

    @property
    def url(self) -> str:
        """The database as the deployment's own role."""
        return self.server.url

    @property
    def admin_url(self) -> str:
        """The database as a superuser, who may replicate and subscribe."""
        return self.server.dsn(role="postgres")


def _let_in(layout: Layout, user: ServerUser) -> None:
    """The other server may come in, too: it runs as another user than the tests."""
    cluster.replace_file(layout.cluster / "pg_hba.conf", "local all all trust\nlocal replication all trust\n", user)


async def start(server: EmbeddedServer, *more: str) -> None:
    """Start a server that writes what logical replication takes."""
    command = programs.server_command
    with (
        patch.object(programs, "server_command", lambda *where: [*command(*where), *LOGICAL, *more]),
        patch.object(cluster, "write_access_rules", _let_in),
    ):
        await server.start()


@asynccontextmanager
async def cell_server(number: int, place: Path) -> AsyncIterator[CellServer]:
    """A server with the migrated database of a cell, for the length of a block."""
    server = EmbeddedServer(place)
    await start(server)
    try:
        async with connected(server.url, most=4) as pool:
            await migrate(pool)
            await begin_cell(pool, number)
            yield CellServer(number, server, pool)
    finally:
        await server.stop()


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CellServer]:
    """The cell that becomes home."""
    with fast_place(tmp_path_factory) as place:
        async with cell_server(0, place) as server:
            yield server


@pytest.fixture(scope="module")
async def other(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CellServer]:
    """Another cell, which is empty at first."""
    with fast_place(tmp_path_factory) as place:
        async with cell_server(2, place) as server:
            yield server
