"""What the start says of a pooler: settings that it leaves out, statements that it loses."""

from __future__ import annotations

from urllib.parse import urlsplit

import asyncpg
import pytest

from paydesk.commands import connecting
from paydesk.core.errors import SetupError
from paydesk.database import pgbouncer, pool
from paydesk.database.pool import Database, connected


async def test_without_a_pooler_nothing_is_to_change(database: Database) -> None:
    await pgbouncer.require_pooler(database)


def test_a_pooler_that_refuses_our_settings_is_told_which() -> None:
    refused = asyncpg.ProtocolViolationError("unsupported startup parameter: plan_cache_mode")
    message = connecting._message(refused) or ""
    assert "ignore_startup_parameters = plan_cache_mode,idle_in_transaction_session_timeout" in message
    assert "alter role paydesk set idle_in_transaction_session_timeout = '1min';" in message
    other = connecting._message(asyncpg.ProtocolViolationError("something else")) or ""
    assert "startup" not in other


async def test_a_pooler_that_leaves_our_settings_out_is_noticed(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {name: value for name, value in pool.SESSION.items() if name != "idle_in_transaction_session_timeout"}
    with monkeypatch.context() as changed:
        changed.setattr(pool, "SESSION", told)
        async with connected(database_url, most=2) as ignored:
            with pytest.raises(SetupError, match="lack idle_in_transaction_session_timeout: "):
                await pgbouncer.require_pooler(ignored)


async def test_a_pooler_that_loses_prepared_statements_is_noticed(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pooler is played: the connection says another server's number,
    and its statements are gone when used.
    """

    async def lost(*_: object, **__: object) -> None:
        raise asyncpg.InvalidSQLStatementNameError('prepared statement "__asyncpg_stmt_1__" does not exist')

    async with connected(database_url, most=2) as pooled:
        monkeypatch.setattr(asyncpg.Connection, "get_server_pid", lambda _: -1)
        await pgbouncer.require_pooler(pooled)
        monkeypatch.setattr(asyncpg.prepared_stmt.PreparedStatement, "fetchval", lost)
        with pytest.raises(SetupError, match=r"pgbouncer 1.21 or newer with max_prepared_statements"):
            await pgbouncer.require_pooler(pooled)


async def test_settings_of_the_role_do_as_well(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = dict(pool.SESSION)
    monkeypatch.setattr(pool, "SESSION", {"application_name": "paydesk"})
    name = urlsplit(database_url).path[1:]
    async with connected(database_url, most=2) as pooled:
        for setting in pgbouncer._kept_back():
            await pooled.execute(f"alter database {name} set {setting} = '{wanted[setting]}'")
    async with connected(database_url, most=2) as pooled:
        await pgbouncer.require_pooler(pooled)
        await pooled.execute(f"alter database {name} reset all")
        await pooled.execute(f"alter database {name} set synchronous_commit = off")
