"""The baseline is what the steps before it made, as the code that has them makes it,
and upgrades begin there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeAlias

import asyncpg
import pytest
from tests.conftest import database_at
from tests.databases import drop_database
from tests.lengths import long
from tests.processes import environment
from tests.upgrade.code import NEW, PAYDESK, Code, code_of

from paydesk.database import baseline
from paydesk.database.migrating import Migration, known_migrations, migrate, steps_in
from paydesk.database.pool import Database, connected
from paydesk.database.statements import load_statements

BEFORE = 140
"""A number of long ago, at which a deployment may still be."""

TABLES = """
select relname
  from pg_class
 where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'schema_migration'
"""
SEQUENCES = "select sequencename, last_value from pg_sequences order by sequencename"
DRAWN = {"tag", "beaten_at"}
"""What is drawn or read from a clock where a row is made."""

New: TypeAlias = Callable[[], Awaitable[tuple[str, Database]]]
queries = load_statements("paydesk.database", "catalog.sql")


@pytest.fixture
async def new(server_url: str) -> AsyncIterator[New]:
    """Makes empty databases: the address of each, and a pool of connections to it."""
    admin = await asyncpg.connect(server_url)
    made: dict[str, tuple[object, Database]] = {}

    async def make() -> tuple[str, Database]:
        name = f"paydesk_test_{secrets.token_hex(6)}"
        await admin.execute(f"create database {name} template template0")
        url = database_at(server_url, name)
        opening = connected(url, most=2)
        made[name] = opening, await opening.__aenter__()
        return url, made[name][1]

    yield make
    for name, (opening, _) in made.items():
        await opening.__aexit__(None, None, None)  # type: ignore[attr-defined]
        await drop_database(admin, name)
    await admin.close()


@pytest.fixture(scope="module")
def with_steps(tmp_path_factory: pytest.TempPathFactory) -> Code:
    """The last code that has the steps before the baseline."""
    return code_of(baseline.LAST_WITH_STEPS, tmp_path_factory.mktemp("code") / "old")


async def migrated(code: Code, url: str) -> tuple[int, str]:
    """How `paydesk migrate` of some code ends, and what it says."""
    process = await asyncio.create_subprocess_exec(
        *PAYDESK,
        "migrate",
        env=environment({"database_url": url}) | code.env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, " ".join(said.decode().split())


def steps_of(code: Code) -> tuple[Migration, ...]:
    """The steps that some code has."""
    return steps_in(code.source / "paydesk" / "database" / "migrations")


async def catalog(database: Database) -> dict[tuple[str, str, str], str]:
    return {tuple(row)[:3]: row["definition"] async for row in queries.catalog_of(database, schema="public")}


async def rows(database: Database) -> Mapping[str, object]:
    """What stands in the tables, and where the sequences are."""
    found: dict[str, object] = {"": [tuple(row) for row in await database.fetch(SEQUENCES)]}
    for table in await database.fetch(TABLES):
        held = await database.fetch(f"select * from {table['relname']} order by 1")
        found[table["relname"]] = [{name: each for name, each in row.items() if name not in DRAWN} for row in held]
    return found


async def test_the_baseline_makes_what_the_steps_made(new: New, with_steps: Code) -> None:
    _, old = await new()
    await migrate(old, steps=steps_of(with_steps))
    _, fresh = await new()
    await migrate(fresh, steps=known_migrations()[:1])
    by_steps, at_once = await catalog(old), await catalog(fresh)
    assert {thing: at_once.get(thing) for thing in by_steps if at_once.get(thing) != by_steps[thing]} == {}
    assert at_once.keys() == by_steps.keys()
    assert await rows(fresh) == await rows(old)
    for database in (old, fresh):
        assert await database.fetchval("select beaten_at > now() - interval '1 hour' from history")
        assert len(await database.fetchval("select tag from deployment")) == 32
    later = [step.name for step in known_migrations()[1:] if not step.waits]
    assert await migrate(old) == later, "it is recognised"
    assert await migrate(old) == []


@long
async def test_code_of_before_finds_nothing_to_do_on_a_database_of_this_one(new: New, with_steps: Code) -> None:
    url, fresh = await new()
    await migrate(fresh, steps=[step for step in known_migrations() if not step.waits])
    assert await migrated(with_steps, url) == (0, "the schema is up to date")


@long
async def test_an_older_database_is_brought_to_the_baseline_by_the_code_that_is_named(
    new: New, with_steps: Code
) -> None:
    url, old = await new()
    await migrate(old, steps=[step for step in steps_of(with_steps) if step.number <= BEFORE])
    status, said = await migrated(NEW, url)
    assert status == 1
    assert f"at step {BEFORE}," in said
    assert f"commit {baseline.LAST_WITH_STEPS[:12]} first" in said
    assert await old.fetchval("select max(number) from schema_migration") == BEFORE
    assert (await migrated(with_steps, url))[0] == 0
    assert await migrate(old) == [step.name for step in known_migrations()[1:] if not step.waits]
