"""Asking the home cell what a cell does not know itself."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paydesk.database.embedded import EmbeddedServer
from paydesk.database.pool import Database, connected
from paydesk.domain.cells import finding
from paydesk.domain.cells.directory import Kind
from paydesk.domain.cells.finding import Home, NotKnownYet


@pytest.fixture
async def frozen(tmp_path: Path) -> AsyncIterator[Database]:
    """Home's database, whose server stands still: one of its own, which alone can be stopped."""
    server = EmbeddedServer(tmp_path / "home")
    await server.start()
    try:
        async with connected(server.admin_url, least=0, most=1, patience=1.0) as pool:
            pid = await pool.fetchval("select pg_backend_pid()")
            os.kill(pid, signal.SIGSTOP)
            try:
                yield pool
            finally:
                os.kill(pid, signal.SIGCONT)
    finally:
        await server.stop()


async def test_who_asks_a_frozen_home_does_not_wait_for_its_connection_too(
    frozen: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "PATIENCE", 0.01)
    with pytest.raises(NotKnownYet):
        await Home(frozen).find(Kind.merchant, "4711")
    assert (frozen.get_size(), frozen.get_idle_size()) == (1, 0), "it is on its way back"
