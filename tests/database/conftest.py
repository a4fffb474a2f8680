"""Pools whose connections are lent again, and what the driver's own pool sees of that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from paydesk.database.pool import Database, connected


@pytest.fixture
async def narrow(database_url: str) -> AsyncIterator[Database]:
    """A pool of one connection, which was used before."""
    async with connected(database_url, most=1) as pool:
        await pool.execute("select 1")
        yield pool


@pytest.fixture
def seen_by_driver(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What pools of one connection gave back to the driver's own.

    Others, open for the whole session, give back what rests in their own time.
    """
    seen: list[object] = []
    release = asyncpg.Pool.release

    async def noted(self: Database, connection: Any, *, timeout: float | None = None) -> None:
        if self.get_max_size() == 1:
            seen.append(connection)
        await release(self, connection, timeout=timeout)

    monkeypatch.setattr(asyncpg.Pool, "release", noted)
    return seen
