"""Live payments need a second server that has all that is committed;
a receiver of the log stands in for one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from tests.standing_by import ended, received, replicated

from paydesk.core.errors import SetupError
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.pool import Database, connected
from paydesk.database.standbys import Standbys, require_synchronous_standby, standbys_of, watch_standbys


@pytest.fixture(scope="module")
async def primary(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    """A server of this test's own, which lets its log be received."""
    async with replicated(tmp_path_factory.mktemp("primary")) as server:
        yield server


@pytest.fixture
async def admin(primary: EmbeddedServer) -> AsyncIterator[Database]:
    async with connected(primary.admin_url, most=1) as pool:
        yield pool


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
    second = await received(primary, admin, tmp_path)
    await require_synchronous_standby(admin, allow_async=False)
    assert (await watch_standbys(admin)).keep_all
    assert REGISTRY.get_sample_value("paydesk_synchronous_standbys") == 1
    await admin.execute("revoke pg_read_all_stats from paydesk")
    async with connected(primary.url, most=1) as ours:
        with pytest.raises(SetupError, match="grant pg_read_all_stats to paydesk"):
            await require_synchronous_standby(ours, allow_async=False)
        await admin.execute("grant pg_read_all_stats to paydesk")
        assert (await standbys_of(ours)).keep_all
        await ours.execute("alter role paydesk set synchronous_commit = local")
    async with connected(primary.url, most=1) as ours:
        assert "set synchronous_commit to on" in (await standbys_of(ours)).lack
        await ours.execute("alter role paydesk reset synchronous_commit")
        await ours.execute("alter role paydesk set client_min_messages = error")
    async with connected(primary.url, most=1) as ours:
        assert not (await standbys_of(ours)).keep_all
        assert "set client_min_messages to warning" in (await standbys_of(ours)).lack
    await ended(second, admin)
    assert not (await watch_standbys(admin)).keep_all
    assert REGISTRY.get_sample_value("paydesk_synchronous_standbys") == 0


def test_what_is_hidden_is_said_before_what_is_missing() -> None:
    assert "pg_read_all_stats" in Standbys(True, 1, 0, 1, "paydesk", True).lack
