"""Which of several servers is spoken to, and what a server that takes no writes is taken for."""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
import pytest
from tests.conftest import database_at
from tests.databases import drop_database

from paydesk.database import readiness, servers
from paydesk.database.pool import AWAY, Database, connected
from paydesk.database.readiness import commits
from paydesk.database.servers import Servers, each_server


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://me:x@a/pay", ["postgresql://me:x@a/pay"]),
        ("postgresql:///pay?host=/run/pg", ["postgresql:///pay?host=/run/pg"]),
        (
            "postgresql://me:p%40ss@a:5432,b,[::1]:7/pay?target_session_attrs=read-write",
            [
                "postgresql://me:p%40ss@a:5432/pay?target_session_attrs=read-write",
                "postgresql://me:p%40ss@b/pay?target_session_attrs=read-write",
                "postgresql://me:p%40ss@[::1]:7/pay?target_session_attrs=read-write",
            ],
        ),
        (
            "postgresql://me@/pay?host=a,b&port=1,2",
            ["postgresql://me@/pay?host=a&port=1", "postgresql://me@/pay?host=b&port=2"],
        ),
    ],
)
def test_an_address_is_taken_apart_into_its_servers(url: str, each: list[str]) -> None:
    assert each_server(url) == each


@pytest.fixture
def hanging() -> Iterator[int]:
    """The port of a server on loopback that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def behind(url: str, port: int) -> str:
    """The address of a database with another server on loopback before its own."""
    parts = urlsplit(url)
    if not parts.hostname:
        asked = dict(parse_qsl(parts.query))
        asked |= {"host": f"127.0.0.1,{asked['host']}", "port": f"{port},{asked['port']}"}
        return urlunsplit(parts._replace(query=urlencode(asked)))
    people, at, server = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{people}{at}127.0.0.1:{port},{server}"))


async def test_a_server_that_hangs_costs_its_patience_once(
    database_url: str, hanging: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = asyncpg.connect

    async def connect(url: str, *, timeout: float, **options: Any) -> asyncpg.Connection:
        """The one that hangs costs less than in earnest, the other may be slow."""
        assert timeout == servers.PATIENCE
        hangs = str(hanging) in url
        asked.append("hanging" if hangs else "well")
        return await real(url, timeout=0.2 if hangs else 60.0, **options)

    monkeypatch.setattr(asyncpg, "connect", connect)
    reach = Servers(behind(database_url, hanging))
    for _ in range(3):
        connection = await reach.connect("")
        await connection.close()
    assert asked == ["hanging", "well", "well", "well"]


async def test_where_no_server_answers_the_database_is_away(hanging: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "PATIENCE", 0.05)
    with pytest.raises(AWAY):
        async with connected(f"postgresql://me@127.0.0.1:{hanging},127.0.0.1:{hanging}/pay"):
            pass


@pytest.fixture
async def read_only(server_url: str, database_url: str) -> AsyncIterator[str]:
    """The address of a database whose sessions may not write, as those of a standby."""
    name = f"paydesk_test_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    await admin.execute(f"alter database {name} set default_transaction_read_only = on")
    yield database_at(server_url, name)
    await drop_database(admin, name)
    await admin.close()


async def test_a_server_that_takes_no_writes_is_away(read_only: str) -> None:
    with pytest.raises(AWAY, match="takes no writes"):
        async with connected(read_only):
            pass


async def test_a_server_that_turns_read_only_is_left_and_what_was_sent_is_not_known(database_url: str) -> None:
    async with connected(database_url, most=1) as pool:
        async with pool.acquire() as connection:
            before = connection.get_server_pid()
            await connection.execute("set default_transaction_read_only = on")
            with pytest.raises(AWAY):
                await connection.execute("create table never (id integer)")
        assert await pool.fetchval("select pg_backend_pid()") != before
        assert await pool.fetchval("show default_transaction_read_only") == "off"


async def test_a_database_that_commits_is_ready(database: Database) -> None:
    assert await commits(database)


async def test_one_that_answers_and_does_not_commit_is_not_ready(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "PATIENCE", 0.05)
    monkeypatch.setattr(readiness, "WRITE", "select pg_sleep(3600)")
    assert not await commits(database)
