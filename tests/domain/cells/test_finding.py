"""Asking the home cell what a cell does not know itself."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator

import pytest

from paydesk.database.pool import Database, connected
from paydesk.domain.cells import finding
from paydesk.domain.cells.directory import Kind
from paydesk.domain.cells.finding import Home, NotKnownYet


@pytest.fixture
async def frozen(database_url: str) -> AsyncIterator[Database]:
    """Home's database, whose server stands still."""
    if "PAYDESK_DATABASE_URL" in os.environ:
        pytest.skip("only a server of our own can be stopped")
    async with connected(database_url, least=0, most=1, patience=1.0) as pool:
        pid = await pool.fetchval("select pg_backend_pid()")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield pool
        finally:
            os.kill(pid, signal.SIGCONT)


async def test_who_asks_a_frozen_home_does_not_wait_for_its_connection_too(
    frozen: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "PATIENCE", 0.01)
    with pytest.raises(NotKnownYet):
        await Home(frozen).find(Kind.merchant, "4711")
    assert (frozen.get_size(), frozen.get_idle_size()) == (1, 0), "it is on its way back"
