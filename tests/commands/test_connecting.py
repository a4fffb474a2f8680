from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, NoReturn

import asyncpg
import pytest
import typer
from tests.commands.conftest import one_line

from paydesk.commands import test_clock
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.database.servers import Servers
from paydesk.domain.accounts.operators import create_operator
from paydesk.domain.accounts.team import invite_first
from paydesk.domain.business.pingback_acting import resend_logged
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.test_clock import read_clock
from paydesk.domain.operations.holding import hold_restored
from paydesk.domain.operations.merchants import resume_merchant

Lose = Callable[..., Callable[..., Awaitable[Any]]]


@pytest.fixture
def end_session(environment: dict[str, str]) -> Callable[[int], Awaitable[None]]:
    """`end_session(number)`: has the server end a session, as it does when it is restarted."""

    async def end(session: int) -> None:
        other = await asyncpg.connect(environment["PAYDESK_DATABASE_URL"])
        await other.execute("select pg_terminate_backend($1, 5000)", session)
        await other.close()

    return end


@pytest.fixture
def lose(end_session: Callable[[int], Awaitable[None]]) -> Lose:
    """`lose(act)`: what acts, and then has the server end the session of whoever had it done."""

    def lost(act: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def acted(first: Any, *args: Any, **given: Any) -> Any:
            came = await act(first, *args, **given)
            async with getattr(first, "database", first).acquire() as connection:
                await end_session(await connection.fetchval("select pg_backend_pid()"))
                await connection.fetchval("select 1")
            return came

        return acted

    return lost


@pytest.mark.parametrize("json", [(), ("--json",)], ids=["words", "json"])
async def test_a_database_that_goes_away_meanwhile_is_one_line_that_says_what_to_do(
    paydesk: Any,
    account: dict[str, Any],
    database: Database,
    lose: Lose,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    json: tuple[str, ...],
) -> None:
    await paydesk("merchant", "suspend", account["id"], "--reason", "looked at")
    with monkeypatch.context() as broken:
        broken.setattr("paydesk.commands.suspending.resume_merchant", lose(resume_merchant))
        said = await paydesk("merchant", "resume", account["id"], "--charge-all-periods", *json)
    assert (said.status, said.out) == (1, "")
    line = one_line(said.err.splitlines())
    assert "the database went away meanwhile" in line
    assert "may be done" in line
    assert line.endswith("run the same command again: nothing is done twice")
    assert not caplog.records, "the driver says nothing beside it"
    again = await paydesk("merchant", "resume", account["id"], "--charge-all-periods", *json)
    assert (again.status, "is not suspended" in again.err) == (1, True)
    resumed = "select count(*) from audit_entry where merchant_id = $1 and action = 'merchant_resumed'"
    assert await database.fetchval(resumed, account["id"]) == 1


async def test_what_would_be_made_twice_is_looked_for_first(
    paydesk: Any, lose: Lose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paydesk.commands.merchants.create_merchant", lose(create_merchant))
    said = await paydesk("merchant", "create", "--name", "Lost Shop", "--email", "l@shop.example", "--json")
    assert (said.status, said.out) == (1, "")
    assert one_line(said.err.splitlines()).endswith("look before you open it again: paydesk merchant list")
    assert "Lost Shop" in (await paydesk("merchant", "list")).out
    monkeypatch.setattr("paydesk.commands.operators.create_operator", lose(create_operator))
    said = await paydesk("operator", "create", "--email", "lost@pay.example", "--json")
    assert "paydesk operator list" in one_line(said.err.splitlines())


@pytest.mark.parametrize(
    ("command", "place", "act", "advice"),
    [
        ("pingback resend", "paydesk.commands.pingbacks.resend_logged", resend_logged, "paydesk pingback show"),
        ("merchant invite", "paydesk.commands.merchants.invite_first", invite_first, "only its newest link works"),
        ("restored", "paydesk.commands.restoring.hold_restored", hold_restored, "one more gap in the ids"),
    ],
)
async def test_nobody_is_told_that_nothing_is_done_twice_where_something_is(
    paydesk: Any,
    account: dict[str, Any],
    add_pingback: Any,
    lose: Lose,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    place: str,
    act: Callable[..., Awaitable[Any]],
    advice: str,
) -> None:
    asked = {
        "pingback resend": [await add_pingback(account["id"], state="exhausted")],
        "merchant invite": [account["id"], "--email", "twice@shop.example"],
    }
    monkeypatch.setattr(place, lose(act))
    said = await paydesk(*command.split(), *asked.get(command, []))
    line = one_line([line for line in said.err.splitlines() if line.startswith("paydesk: ")])
    assert (said.status, advice in line, "nothing is done twice" in line) == (1, True, False), line


async def test_a_clock_that_was_lost_on_its_way_is_advanced_by_the_rest(
    paydesk: Any, account: dict[str, Any], database: Database, lose: Lose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_clock, "_advance", lose(test_clock._advance))
    said = await paydesk("clock", "advance", account["id"], "31d", "--json")
    assert (said.status, said.out) == (1, "")
    line = one_line(said.err.splitlines())
    assert f"paydesk clock show {account['id']}, and advance it by the rest" in line
    assert "run the same command again" not in line
    clock = await read_clock(database, account["id"], real_now=utc_now())
    assert round(clock.ahead / timedelta(days=1)) == 31, "the same command again would have gone twice as far"


async def test_a_server_that_is_away_for_longer_is_told_of_without_a_traceback(
    paydesk: Any,
    account: dict[str, Any],
    end_session: Callable[[int], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The driver's pool tries to connect again beside all else, and tells where that failed."""
    is_away, tried, connect = asyncio.Event(), asyncio.Event(), Servers.connect

    async def connect_if_there(servers: Servers, *args: Any, **options: Any) -> asyncpg.Connection:
        if is_away.is_set():
            tried.set()
            raise asyncpg.CannotConnectNowError("the database system is shutting down")
        return await connect(servers, *args, **options)

    async def restart(database: Database, *_: object, **__: object) -> None:
        async with database.acquire() as connection:
            session = await connection.fetchval("select pg_backend_pid()")
            is_away.set()
            await end_session(session)
            await tried.wait()
            await connection.fetchval("select 1")

    monkeypatch.setattr(Servers, "connect", connect_if_there)
    monkeypatch.setattr("paydesk.commands.suspending.suspend_merchant", restart)
    said = await paydesk("merchant", "suspend", account["id"], "--reason", "looked at")
    assert (said.status, said.out) == (1, "")
    assert "the database went away meanwhile" in one_line(said.err.splitlines())
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.ESTALE])
async def test_a_disk_that_fails_is_not_told_as_a_database_that_is_missing(
    paydesk: Any, account: dict[str, Any], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def broken(*_: object, **__: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(typer, "echo", broken)
    said = await paydesk("merchant", "list", "--json")
    assert (said.status, said.out) == (1, "")
    line = one_line(said.err.splitlines())
    assert os.strerror(number) in line
    assert "disk" in line
    assert "database" not in line
