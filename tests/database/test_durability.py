"""A commit whose wait for the standby is broken off is neither done nor undone;
what takes the log is the standby.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests.lengths import long, one_of
from tests.processes import PATIENCE
from tests.standing_by import ended, frozen, received, replicated

from paydesk.core.errors import Unsure
from paydesk.database import surely as module
from paydesk.database.durability import Unconfirmed
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.pool import AWAY, Database, connected
from paydesk.database.readiness import commits
from paydesk.database.surely import surely

Write = Callable[[Any, str], Coroutine[Any, Any, object]]

INSERT = "insert into wish (name) values ($1)"


@pytest.fixture(scope="module")
async def primary(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    """A server whose commits wait for a standby."""
    async with replicated(tmp_path_factory.mktemp("primary")) as server:
        yield server


@pytest.fixture(scope="module")
async def admin(primary: EmbeddedServer) -> AsyncIterator[Database]:
    """The operator, who only looks and cancels."""
    async with connected(primary.admin_url, most=2) as pool:
        yield pool


@pytest.fixture(scope="module")
async def standby(
    primary: EmbeddedServer, admin: Database, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[subprocess.Popen[bytes]]:
    """What commits wait for."""
    receiver = await received(primary, admin, tmp_path_factory.mktemp("second"))
    yield receiver
    await ended(receiver, admin)


@pytest.fixture
async def database(primary: EmbeddedServer, standby: subprocess.Popen[bytes]) -> AsyncIterator[Database]:
    """Our own pool of one connection, so that it shows whether that was dropped;
    with a table of the test's.
    """
    async with connected(primary.url, most=1) as pool:
        await pool.execute("create table if not exists wish (name text primary key)")
        await pool.execute("truncate wish")
        yield pool


async def _in_transaction(database: Database, name: str) -> None:
    async with database.acquire() as connection, connection.transaction():
        await connection.execute(INSERT, name)


WRITES: dict[str, Write] = {
    "execute": lambda database, name: database.execute(INSERT, name),
    "a simple statement": lambda database, name: database.execute(f"insert into wish (name) values ('{name}')"),
    "executemany": lambda database, name: database.executemany(INSERT, [(name,)]),
    "fetch": lambda database, name: database.fetch(f"{INSERT} returning name", name),
    "fetchrow": lambda database, name: database.fetchrow(f"{INSERT} returning name", name),
    "fetchval": lambda database, name: database.fetchval(f"{INSERT} returning name", name),
    "a transaction": _in_transaction,
}


async def waiting(admin: Database) -> int:
    """The server's process that waits for the standby, once there is one."""
    async with asyncio.timeout(PATIENCE):
        while True:
            pid = await admin.fetchval("select pid from pg_stat_activity where wait_event = 'SyncRep'")
            if pid is not None:
                return int(pid)
            await asyncio.sleep(0.02)


async def names(primary: EmbeddedServer) -> list[str]:
    """What anybody can see."""
    async with connected(primary.url, most=1) as other:
        return [row["name"] for row in await other.fetch("select name from wish order by 1")]


async def server_process(database: Database) -> int:
    return int(await database.fetchval("select pg_backend_pid()"))


def broken_off() -> float:
    return REGISTRY.get_sample_value("paydesk_unconfirmed_commits_total") or 0.0


@pytest.mark.parametrize("write", one_of(4, WRITES.values()), ids=WRITES)
async def test_a_commit_that_an_operator_cancels_is_neither_done_nor_undone(
    database: Database, admin: Database, primary: EmbeddedServer, standby: subprocess.Popen[bytes], write: Write
) -> None:
    before, counted = await server_process(database), broken_off()
    with frozen(standby):
        writing = asyncio.create_task(write(database, "once"))
        await admin.execute("select pg_cancel_backend($1)", await waiting(admin))
        with pytest.raises(Unconfirmed, match="a failover may forget"):
            await writing
        assert await names(primary) == ["once"], "everybody sees it"
        assert await server_process(database) != before, "its connection is dropped"
    assert broken_off() == counted + 1
    assert isinstance(Unconfirmed(), AWAY)


async def test_one_whose_process_is_ended_is_a_lost_answer(
    database: Database, admin: Database, primary: EmbeddedServer, standby: subprocess.Popen[bytes]
) -> None:
    with frozen(standby):
        writing = asyncio.create_task(database.execute(INSERT, "once"))
        await admin.execute("select pg_terminate_backend($1)", await waiting(admin))
        with pytest.raises(AWAY):
            await writing
        assert await names(primary) == ["once"]


@pytest.mark.parametrize("how", ["our own limit", "who waits goes away"])
async def test_one_that_nobody_waits_for_any_more_leaves_no_connection_behind(
    database: Database, admin: Database, primary: EmbeddedServer, standby: subprocess.Popen[bytes], how: str
) -> None:
    before, counted = await server_process(database), broken_off()
    with frozen(standby):
        limit = 0.5 if how == "our own limit" else None
        writing = asyncio.create_task(database.execute(INSERT, "once", timeout=limit))
        if limit is None:
            await waiting(admin)
            writing.cancel()
        with pytest.raises(TimeoutError if limit else asyncio.CancelledError):
            await writing
        assert await names(primary) == ["once"]
        assert await server_process(database) != before
    assert broken_off() == counted + 1


async def _write(connection: Any) -> str:
    return str(await connection.fetchval(f"{INSERT} returning name", "once"))


async def _look(connection: Any) -> str | None:
    name: str | None = await connection.fetchval("select name from wish")
    return name


async def test_what_can_be_seen_does_not_count_while_no_standby_has_it(
    database: Database, admin: Database, standby: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    with frozen(standby):
        writing = asyncio.create_task(surely(database, _write, _look, unsure="look first"))
        await admin.execute("select pg_cancel_backend($1)", await waiting(admin))
        with pytest.raises(Unsure, match="look first"):
            await writing


async def test_it_counts_as_soon_as_the_standby_is_back(
    database: Database, admin: Database, primary: EmbeddedServer, standby: subprocess.Popen[bytes]
) -> None:
    with frozen(standby):
        writing = asyncio.create_task(surely(database, _write, _look, unsure="look first"))
        await admin.execute("select pg_cancel_backend($1)", await waiting(admin))
    assert await writing == "once"
    assert await names(primary) == ["once"]


@long
async def test_who_asks_whether_we_are_ready_hears_no_and_leaves_nothing_behind(
    database: Database, admin: Database, standby: subprocess.Popen[bytes]
) -> None:
    with frozen(standby):
        assert not await commits(database)
        hanging = await admin.fetchval("select count(*) from pg_stat_activity where wait_event = 'SyncRep'")
        assert hanging == 0
    assert await commits(database)
