"""Live payments need a second server that has all that is committed; a receiver of the log stands in for one."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from paydesk.core.errors import SetupError
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.pool import Database, connected
from paydesk.database.programs import binary
from paydesk.database.standbys import Standbys, require_synchronous_standby, standbys_of, watch_standbys


@pytest.fixture(scope="module")
async def primary(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    """A server of this test's own, which lets its log be received."""
    server = EmbeddedServer(tmp_path_factory.mktemp("primary"))
    await server.start()
    with (server.layout.cluster / "pg_hba.conf").open("a") as rules:
        rules.write("local replication all peer map=owner\n")
    async with connected(server.admin_url, most=1) as admin:
        await admin.execute("alter system set synchronous_standby_names = 'second'")
        await admin.execute("select pg_reload_conf()")
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture
async def admin(primary: EmbeddedServer) -> AsyncIterator[Database]:
    async with connected(primary.admin_url, most=1) as pool:
        yield pool


async def received(primary: EmbeddedServer, admin: Database, folder: Path, name: str) -> subprocess.Popen[bytes]:
    """Begin to receive the log under a name, as a standby would; returns once the server knows of it."""
    url = f"{primary.admin_url.replace('/postgres?', '/?')}&application_name={name}"
    program = [str(binary("pg_receivewal")), "--synchronous", "--no-loop", f"--directory={folder}", f"--dbname={url}"]
    receiver = await asyncio.to_thread(subprocess.Popen, program, stderr=subprocess.DEVNULL)
    async with asyncio.timeout(60):
        while not await admin.fetchval("select count(*) from pg_stat_replication where state = 'streaming'"):
            assert receiver.poll() is None
            await asyncio.sleep(0.05)
    return receiver


async def ended(receiver: subprocess.Popen[bytes], admin: Database) -> None:
    receiver.kill()
    receiver.wait()
    async with asyncio.timeout(60):
        while await admin.fetchval("select count(*) from pg_stat_replication"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_without_a_standby_live_payments_are_refused_unless_that_is_taken(admin: Database) -> None:
    with pytest.raises(SetupError, match=r"the database has no standby.*PAYDESK_ALLOW_ASYNC=1"):
        await require_synchronous_standby(admin, allow_async=False)
    with capture_logs() as logs:
        await require_synchronous_standby(admin, allow_async=True)
    assert [line["log_level"] for line in logs] == ["warning"]


async def test_a_standby_that_commits_wait_for_is_enough_and_one_that_lags_behind_is_not(
    primary: EmbeddedServer, admin: Database, tmp_path: Path
) -> None:
    lagging = await received(primary, admin, tmp_path, "third")
    with pytest.raises(SetupError, match="lag behind: name them in synchronous_standby_names"):
        await require_synchronous_standby(admin, allow_async=False)
    await ended(lagging, admin)
    second = await received(primary, admin, tmp_path, "second")
    await require_synchronous_standby(admin, allow_async=False)
    assert (await watch_standbys(admin)).keep_all
    assert REGISTRY.get_sample_value("paydesk_synchronous_standbys") == 1
    async with connected(primary.url, most=1) as ours:
        with pytest.raises(SetupError, match="grant pg_read_all_stats to paydesk"):
            await require_synchronous_standby(ours, allow_async=False)
        await admin.execute("grant pg_read_all_stats to paydesk")
        assert (await standbys_of(ours)).keep_all
        await ours.execute("alter role paydesk set synchronous_commit = local")
    async with connected(primary.url, most=1) as ours:
        assert "set synchronous_commit to on" in (await standbys_of(ours)).lack
    await ended(second, admin)
    assert not (await watch_standbys(admin)).keep_all
    assert REGISTRY.get_sample_value("paydesk_synchronous_standbys") == 0


def test_what_is_hidden_is_said_before_what_is_missing() -> None:
    assert "pg_read_all_stats" in Standbys(True, 1, 0, 1, "paydesk").lack
