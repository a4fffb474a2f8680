"""Keeps the embedded PostgreSQL of a stage, whoever kills it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime

import asyncpg
from tests.processes import PATIENCE

from paydesk.database import cluster
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.pool import AWAY

Outage = tuple[datetime, datetime]
"""From when PostgreSQL was killed until it was worked with again (UTC)."""


@asynccontextmanager
async def supervised(server: EmbeddedServer) -> AsyncIterator[None]:
    """Start PostgreSQL again whenever it dies; it answers at the end."""
    task = asyncio.create_task(server.supervise())
    try:
        yield
        await answering(server)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def answering(server: EmbeddedServer) -> None:
    """Wait until the database answers."""
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(*AWAY, asyncpg.PostgresError):
                    await (await asyncpg.connect(server.url, timeout=5)).close()
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"PostgreSQL does not come back; see {server.layout.log}") from None


def kill(server: EmbeddedServer) -> None:
    """End PostgreSQL as a power cut would."""
    os.kill(int(cluster.pid_file(server.layout)[0]), signal.SIGKILL)
