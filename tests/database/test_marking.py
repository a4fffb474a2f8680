"""A new database whose first `paydesk migrate` was killed is new still, and one that older code may
run on is never taken for new.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.conftest import database_at
from tests.databases import drop_database
from tests.processes import PATIENCE

from paydesk.core.errors import SetupError
from paydesk.database import migrating
from paydesk.database.migrating import Migration, known_migrations, migrate, missing_steps, require_current_schema
from paydesk.database.pool import Database, connected
from paydesk.database.statements import Connection

LAST = len(known_migrations())
FINISH = "paydesk migrate --finish"


class Killed(BaseException):
    """What ends a process at once."""


@pytest.fixture
async def url(server_url: str) -> AsyncIterator[str]:
    name = f"paydesk_test_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    yield database_at(server_url, name)
    await drop_database(admin, name)
    await admin.close()


@pytest.fixture
async def new(url: str) -> AsyncIterator[Database]:
    async with connected(url, most=4) as pool:
        yield pool


def steps(*texts: str, first: int = 1) -> tuple[Migration, ...]:
    return tuple(Migration(number, f"{number:04}_step", text) for number, text in enumerate(texts, first))


WAITS, LETS_OLD = "-- once no older code runs\nselect 1", "-- oldest code: 1\nselect 1"


async def killed_after(database: Database, many: int, *, known: tuple[Migration, ...] | None = None) -> None:
    """`paydesk migrate` is killed once so many steps are done."""
    done = 0.0

    def told(part: float) -> None:
        nonlocal done
        done += part
        if done >= many:
            raise Killed

    with pytest.raises(Killed):
        await migrate(database, steps=known, told=told)


@pytest.mark.parametrize("many", [1, 2, LAST // 2, LAST - 1])
async def test_nothing_waits_once_it_was_killed_between_two_steps(new: Database, many: int) -> None:
    await killed_after(new, many)
    with pytest.raises(SetupError, match="run: paydesk migrate"):
        await require_current_schema(new)
    assert (await migrate(new))[-1] == known_migrations()[-1].name
    assert await missing_steps(new, alone=True) == []
    await require_current_schema(new)
    assert await new.fetchval("select min(number) from schema_migration") == 1


@pytest.mark.parametrize("amid", [1, 3])
async def test_nothing_waits_once_it_was_killed_amid_a_step(
    new: Database, monkeypatch: pytest.MonkeyPatch, amid: int
) -> None:
    known, run = steps("select 1", WAITS, "select 1", WAITS), migrating._run

    async def dying(database: Database, connection: Connection, step: Migration, *more: object) -> None:
        await run(database, connection, step, *more)  # type: ignore[arg-type]
        if step.number == amid:
            raise Killed

    monkeypatch.setattr(migrating, "_run", dying)
    with pytest.raises(Killed):
        await migrate(new, steps=known)
    monkeypatch.undo()
    assert await migrate(new, steps=known) == [step.name for step in known[amid - 1 :]]
    assert await missing_steps(new, known, alone=True) == []


async def paydesk_migrate(url: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "paydesk", "migrate"),
        env=os.environ | {"PAYDESK_DATABASE_URL": url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )


async def test_the_commands_process_is_killed_and_the_next_one_finishes(url: str, new: Database) -> None:
    process = await paydesk_migrate(url)
    there = "select to_regclass('deployment') is not null"
    async with asyncio.timeout(PATIENCE):
        while not await new.fetchval(there):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    assert await missing_steps(new, alone=True) != []
    said = (await (await paydesk_migrate(url)).communicate())[0].decode()
    assert ("applied" in said, FINISH in said) == (True, False), said
    said = (await (await paydesk_migrate(url)).communicate())[0].decode()
    assert ("up to date" in said, FINISH in said) == (True, False), said


async def test_an_upgrade_is_told_to_wait_that_was_killed_as_one_that_was_not(new: Database) -> None:
    before, known = steps("select 1"), steps("select 1", LETS_OLD, WAITS, LETS_OLD)
    await migrate(new, steps=before)
    await killed_after(new, 1, known=known)
    assert await migrate(new, steps=known) == ["0004_step"]
    assert [step.name for step in await missing_steps(new, known, alone=True)] == ["0003_step"]


async def test_no_code_of_before_runs_on_it_until_it_is_finished(
    new: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be in use when what only that needs is taken away."""
    known = steps("select 1", LETS_OLD, WAITS)
    await killed_after(new, 2, known=known)
    monkeypatch.setattr(migrating, "known_migrations", lambda: known[:2])
    for refused in (require_current_schema, migrate):
        with pytest.raises(SetupError, match="needs code that knows version 3 of it, this code knows versions up to 2"):
            await refused(new)
    said = await new.fetchval("select max(oldest_code) from schema_migration")
    assert said > max(step.number for step in known), "code that knows of no mark refuses to run, too"


async def test_newer_code_goes_on_with_it_and_then_the_one_that_began_does_not(new: Database) -> None:
    began = steps("select 1", LETS_OLD, WAITS)
    newer = (*began, *steps(LETS_OLD, WAITS, first=4))
    await killed_after(new, 1, known=began)
    await killed_after(new, 3, known=newer)
    with pytest.raises(SetupError, match="needs code that knows version 5"):
        await migrate(new, steps=began)
    assert await migrate(new, steps=newer) == ["0005_step"]
    assert await missing_steps(new, newer, alone=True) == []


async def test_who_was_slower_takes_nothing_away_once_the_database_was_finished(
    new: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has begun as with a new one, and another process has finished and serves meanwhile."""
    known = steps("select 1", LETS_OLD)
    newer = (*known, *steps(WAITS, first=3))
    look = migrating.missing_steps

    async def looks_early(*given: object, **asked: bool) -> list[Migration]:
        found = await look(*given, **asked)  # type: ignore[arg-type]
        monkeypatch.undo()
        await migrate(new, steps=known)
        return found

    monkeypatch.setattr(migrating, "missing_steps", looks_early)
    assert await migrate(new, steps=newer) == []
    assert [step.name for step in await missing_steps(new, newer, alone=True)] == ["0003_step"]


async def test_a_mark_goes_that_code_which_knows_of_none_has_left(
    new: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That had begun with the new database, too, and has applied the last step."""
    known = steps("select 1", LETS_OLD)
    newer = (*known, *steps(LETS_OLD, WAITS, first=3))
    await killed_after(new, 1, known=known)

    async def nothing(*_: object) -> bool:
        return False

    for name in ("keep_mark", "take_mark_away"):
        monkeypatch.setattr(migrating, name, nothing)
    assert await migrate(new, steps=known) == ["0002_step"]
    monkeypatch.undo()
    assert await migrate(new, steps=known) == []
    assert await migrate(new, steps=newer) == ["0003_step"]
    assert [step.name for step in await missing_steps(new, newer, alone=True)] == ["0004_step"]
