"""Steps of the schema, applied while others work, by any number of processes, with code of before beside them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable

import asyncpg
import pytest
from tests.conftest import database_at
from tests.databases import drop_database

from paydesk.core.errors import SetupError
from paydesk.database import migrating
from paydesk.database.migrating import Migration, known_migrations, migrate, require_current_schema
from paydesk.database.pool import Database, connected

LAST_THAT_NEEDS_A_STOP = 149
"""Later steps let the code of before run on, and say which."""

Knows = Callable[..., None]


@pytest.fixture
async def empty(server_url: str) -> AsyncIterator[Database]:
    """A database of this test's own, with one table."""
    name = f"paydesk_test_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    async with connected(database_at(server_url, name), most=6) as pool:
        await pool.execute("create table pot (id integer, money numeric)")
        yield pool
    await drop_database(admin, name)
    await admin.close()


@pytest.fixture
def knows(monkeypatch: pytest.MonkeyPatch) -> Knows:
    """Let the code know these steps and no others."""

    def know(*steps: tuple[int, str]) -> None:
        known = tuple(Migration(number, f"{number:04}_step", sql) for number, sql in steps)
        monkeypatch.setattr(migrating, "known_migrations", lambda: known)

    return know


async def columns(database: Database) -> set[str]:
    rows = await database.fetch("select column_name from information_schema.columns where table_name = 'pot'")
    return {row["column_name"] for row in rows}


async def test_a_step_has_a_patience_of_its_own(empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step over a big table outlasts what a statement of the service may take."""
    assert migrating.PATIENCE > 3600
    knows((1, "select pg_sleep(3600)"))
    monkeypatch.setattr(migrating, "PATIENCE", 0.5)
    with pytest.raises(TimeoutError):
        await migrate(empty)
    assert await empty.fetchval("select count(*) from schema_migration") == 0


async def test_what_fails_leaves_whole_steps_and_the_next_call_goes_on(empty: Database, knows: Knows) -> None:
    one, two = (1, "alter table pot add column one integer"), (2, "alter table pot add column two integer")
    knows(one, (2, f"{two[1]}; select 1 / 0"))
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(empty)
    assert await columns(empty) == {"id", "money", "one"}
    knows(one, two)
    told: list[int] = []
    assert await migrate(empty, told=lambda: told.append(1)) == ["0002_step"]
    assert (await columns(empty), told) == ({"id", "money", "one", "two"}, [1])


async def test_of_any_number_at_once_each_step_is_applied_by_one(empty: Database, knows: Knows) -> None:
    knows(*[(number, f"alter table pot add column c{number} integer") for number in range(1, 6)])
    done = await asyncio.gather(*(migrate(empty) for _ in range(3)))
    assert sorted(name for each in done for name in each) == [f"{number:04}_step" for number in range(1, 6)]


async def test_a_step_that_does_not_get_its_lock_lets_others_work_and_is_tried_again(
    empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "GIVES_WAY", "20ms")
    monkeypatch.setattr(migrating, "PAUSE", 0.01)
    knows((1, "alter table pot add column one integer"))
    async with empty.acquire() as reader:
        report = reader.transaction()
        await report.start()
        await reader.fetch("select * from pot")
        step = asyncio.create_task(migrate(empty))
        for _ in range(20):
            await empty.execute("insert into pot (id) values (1)")
        assert not step.done()
        await report.rollback()
    assert await step == ["0001_step"]
    assert await empty.fetchval("select count(*) from pot") == 20


async def test_one_that_never_gets_it_says_what_to_do(
    empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "GIVES_WAY", "5ms")
    monkeypatch.setattr(migrating, "PAUSE", 0.0)
    monkeypatch.setattr(migrating, "TRIES", 2)
    knows((1, "alter table pot add column one integer"))
    async with empty.acquire() as reader, reader.transaction():
        await reader.fetch("select * from pot")
        with pytest.raises(SetupError, match="0001_step of the schema does not get its locks"):
            await migrate(empty)


async def test_an_index_is_built_beside_the_work_and_anew_after_it_was_broken_off(
    empty: Database, knows: Knows
) -> None:
    sql = (
        "-- Finds pots.\n-- outside a transaction\ncreate unique index concurrently if not exists pot_id on pot (id);\n"
    )
    knows((1, sql))
    await empty.execute("insert into pot (id) values (1), (1)")
    with pytest.raises(asyncpg.UniqueViolationError):
        await migrate(empty)
    valid = "select indisvalid from pg_index where indexrelid = 'pot_id'::regclass"
    assert await empty.fetchval(valid) is False
    await empty.execute("delete from pot")
    assert await migrate(empty) == ["0001_step"]
    assert await empty.fetchval(valid) is True


async def test_code_of_before_starts_on_a_newer_schema_that_lets_it(empty: Database, knows: Knows) -> None:
    old = (1, "alter table pot add column one integer")
    knows(old, (2, "-- oldest code: 1\nalter table pot add column two integer"))
    await migrate(empty)
    knows(old)
    await require_current_schema(empty)
    assert await migrate(empty) == []
    knows(old, (2, "-- oldest code: 1\nselect 1"), (3, "select 1"))
    await migrate(empty)
    knows(old)
    for refused in (require_current_schema, migrate):
        with pytest.raises(SetupError, match="needs code that knows version 3 of it, this code knows versions up to 1"):
            await refused(empty)


async def test_a_schema_of_the_version_without_these_lines_is_taken_on(empty: Database, knows: Knows) -> None:
    knows((1, "select 1"))
    with pytest.raises(SetupError, match="run: paydesk migrate"):
        await require_current_schema(empty)
    await empty.execute("create table schema_migration (number integer primary key, name text not null)")
    await empty.execute("alter table schema_migration add column at timestamptz not null default now()")
    await empty.execute("insert into schema_migration (number, name) values (1, '0001_step')")
    with pytest.raises(SetupError, match="run: paydesk migrate"):
        await require_current_schema(empty)
    assert await migrate(empty) == []
    await require_current_schema(empty)


def test_each_new_step_lets_code_of_before_run_on_and_says_which() -> None:
    new = [step for step in known_migrations() if step.number > LAST_THAT_NEEDS_A_STOP]
    assert [step.name for step in new if step.oldest_code >= step.number] == []
    for step in known_migrations():
        assert step.is_outside == (" concurrently" in step.sql), step.name
