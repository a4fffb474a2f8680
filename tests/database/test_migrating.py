"""Steps of the schema, applied while others work, by any number of processes,
with code of before beside them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable

import asyncpg
import pytest
from tests.conftest import database_at
from tests.databases import drop_database
from tests.processes import PATIENCE

from paydesk.core.errors import SetupError
from paydesk.database import locking, migrating, piecemeal
from paydesk.database.migrating import Migration, known_migrations, migrate, require_current_schema
from paydesk.database.pool import AWAY, Database, connected

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
    assert piecemeal.PATIENCE > 3600
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
    told: list[float] = []
    assert await migrate(empty, told=told.append) == ["0002_step"]
    assert (await columns(empty), told) == ({"id", "money", "one", "two"}, [1.0])


async def test_of_any_number_at_once_each_step_is_applied_by_one(empty: Database, knows: Knows) -> None:
    knows(*[(number, f"alter table pot add column c{number} integer") for number in range(1, 6)])
    done = await asyncio.gather(*(migrate(empty) for _ in range(3)))
    assert sorted(name for each in done for name in each) == [f"{number:04}_step" for number in range(1, 6)]


async def test_whoever_waits_for_a_step_holds_up_no_index_that_it_builds(empty: Database, knows: Knows) -> None:
    """What a step changes has to be found anew by who waits for it, with a snapshot."""
    steps = []
    for number in range(1, 30, 2):
        index = f"create index concurrently if not exists pot_{number} on pot (c{number})"
        steps += [
            (number, f"alter table pot add column c{number} integer; alter table schema_migration add c{number} text"),
            (number + 1, f"-- outside a transaction\n{index}"),
        ]
    knows(*steps)
    done = await asyncio.wait_for(asyncio.gather(*(migrate(empty) for _ in range(3))), PATIENCE)
    assert sorted(name for each in done for name in each) == [f"{number:04}_step" for number, _ in steps]


@pytest.mark.parametrize(
    "said", [asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError]
)
async def test_whoever_makes_the_table_of_steps_makes_it_for_all(
    empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch, said: type[asyncpg.PostgresError]
) -> None:
    knows()
    execute = empty.execute

    async def too_late(sql: str) -> None:
        """Another process has made it just before; PostgreSQL has these words for that."""
        await execute(sql)
        raise said("it exists")

    monkeypatch.setattr(empty, "execute", too_late)
    assert await migrating.missing_steps(empty) == []


async def test_a_step_that_does_not_get_its_lock_lets_others_work_and_is_tried_again(
    empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "GIVES_WAY", ("20ms",))
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


async def test_a_step_of_several_tables_waits_for_none_while_it_holds_another(
    empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who holds one of them and wants the other would be in a deadlock with it."""
    monkeypatch.setattr(migrating, "GIVES_WAY", (f"{PATIENCE:.0f}s",))
    await empty.execute("create table pan (id integer)")
    both = "alter table pot add column one integer;\nalter table pan add column one integer;\n"
    knows((1, f"-- oldest code: 0\n-- locks: pot, pan\n{both}"))
    async with empty.acquire() as payer:
        paying = payer.transaction()
        await paying.start()
        await payer.execute("lock table pan in row exclusive mode")
        step = asyncio.create_task(migrate(empty))
        waits = (
            "select count(*) from pg_locks l join pg_database d on d.oid = l.database"
            " where d.datname = current_database() and l.relation = 'pan'::regclass and not l.granted"
        )
        while not await empty.fetchval(waits):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await payer.execute("lock table pot in row exclusive mode")
        assert not step.done()
        await paying.commit()
    assert await step == ["0001_step"]
    assert await columns(empty) == {"id", "money", "one"}


async def test_one_whose_tables_are_never_all_free_is_tried_again(
    empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "TRIED_FOR", 0.0)
    monkeypatch.setattr(migrating, "PAUSE", 0.01)
    await empty.execute("create table pan (id integer)")
    knows((1, "-- oldest code: 0\n-- locks: pot, pan\nalter table pan add column one integer;\n"))
    async with empty.acquire() as reader:
        report = reader.transaction()
        await report.start()
        await reader.fetch("select * from pan")
        step = asyncio.create_task(migrate(empty))
        for _ in range(20):
            await empty.fetch("select from pot")
        assert not step.done()
        await report.rollback()
    assert await step == ["0001_step"]


async def test_one_that_never_gets_it_says_what_to_do(
    empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "GIVES_WAY", ("5ms",))
    monkeypatch.setattr(migrating, "TRIED_FOR", 0.0)
    knows((1, "alter table pot add column one integer"))
    async with empty.acquire() as reader, reader.transaction():
        await reader.fetch("select * from pot")
        pid = reader.get_server_pid()
        with pytest.raises(SetupError, match=rf"0001_step of the .* what holds them \(paydesk \(pid {pid}, for "):
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


async def test_an_index_of_a_partitioned_table_is_built_beside_the_work_on_each_partition(
    empty: Database, knows: Knows
) -> None:
    await empty.execute("create table entry (id integer, at integer, words text) partition by range (at)")
    await empty.execute("create table entry_m1 partition of entry for values from (1) to (2)")
    await empty.execute("create table entry_other partition of entry default")
    await empty.execute("insert into entry (id, at) values (1, 1), (2, 1), (3, 7)")
    index = "create index concurrently if not exists entry_by_id on entry (id)\n where words is null"
    knows((1, f"-- outside a transaction\n{index};"))
    assert await migrate(empty) == ["0001_step"]
    built = "select indexrelid::regclass::text from pg_index where indisvalid and indrelid = $1::regclass"
    for table, name in (("entry", "entry_by_id"), ("entry_m1", "entry_by_id_m1"), ("entry_other", "entry_by_id_other")):
        assert await empty.fetchval(built, table) == name
    attached = "select count(*) from pg_inherits where inhparent = 'entry_by_id'::regclass"
    assert await empty.fetchval(attached) == 2


async def test_what_reads_for_long_is_waited_for_while_an_index_is_built_and_nobody_waits(
    empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "GIVES_WAY", ("20ms",))
    knows((1, "-- outside a transaction\ncreate index concurrently if not exists pot_id on pot (id);"))
    async with empty.acquire() as reader:
        report = reader.transaction(isolation="repeatable_read")
        await report.start()
        await reader.fetch("select * from pot")
        step = asyncio.create_task(migrate(empty))
        waits = (
            "select count(*) from pg_stat_activity"
            " where datname = current_database() and wait_event = 'virtualxid' and query like 'create index%'"
        )
        while not await empty.fetchval(waits):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        async with empty.acquire() as payer:
            await payer.execute("set lock_timeout = '1s'")
            await payer.execute("insert into pot (id) values (1)")
            await payer.execute("reset lock_timeout")
        assert not step.done()
        await report.rollback()
    assert await step == ["0001_step"]


async def test_rows_are_filled_in_batches_and_what_somebody_holds_is_waited_for(
    empty: Database, knows: Knows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piecemeal, "LOCKED_FOR", 0.01)
    await empty.execute("alter table pot add primary key (money, id)")
    await empty.execute("alter table pot add column twice integer")
    await empty.execute("insert into pot (id, money) select n, n % 3 from generate_series(1, 25) n")
    await empty.execute("analyze pot")
    fill = "update pot p\n   set twice = p.id * 2\n  from batch b\n where p.money = b.money and p.id = b.id"
    knows((1, f"-- oldest code: 0\n-- in batches of 4: pot (money, id)\n{fill};\n"))
    told: list[float] = []
    async with empty.acquire() as payer:
        paying = payer.transaction()
        await paying.start()
        await payer.execute("update pot set money = money where id = 25")
        step = asyncio.create_task(migrate(empty, told=told.append))
        done = "select count(*) from pot where twice = id * 2"
        while await empty.fetchval(done) < 12:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert not step.done()
        await paying.rollback()
    assert await step == ["0001_step"]
    assert await empty.fetchval(done) == 25
    assert len(told) > 6
    assert sum(told) == pytest.approx(1.0)


async def test_a_statement_that_was_prepared_before_a_step_is_refused_once_as_if_the_database_were_away(
    empty: Database, knows: Knows
) -> None:
    async with empty.acquire() as connection:
        await connection.fetch("select * from pot")
        knows((1, "alter table pot add column one integer"))
        await migrate(empty)
        with pytest.raises(AWAY):
            async with connection.transaction():
                await connection.fetch("select * from pot")
        async with connection.transaction():
            assert await connection.fetch("select * from pot") == []


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


async def test_nothing_starts_on_a_schema_that_lacks_a_step(empty: Database, knows: Knows) -> None:
    knows((1, "select 1"))
    with pytest.raises(SetupError, match="run: paydesk migrate"):
        await require_current_schema(empty)
    await migrate(empty)
    await require_current_schema(empty)
    knows((1, "select 1"), (2, "select 2"))
    with pytest.raises(SetupError, match="run: paydesk migrate"):
        await require_current_schema(empty)


async def test_what_only_older_code_needs_stays_until_none_runs_any_more(empty: Database, knows: Knows) -> None:
    knows((1, "select 1"))
    await migrate(empty)
    taken_away = (2, "-- once no older code runs\nselect 2")
    knows((1, "select 1"), taken_away, (3, "-- oldest code: 1\nselect 3"))
    assert await migrate(empty) == ["0003_step"]
    await require_current_schema(empty)
    knows((1, "select 1"))
    await require_current_schema(empty)

    knows((1, "select 1"), taken_away, (3, "-- oldest code: 1\nselect 3"))
    assert await migrate(empty, alone=True) == ["0002_step"]
    assert await migrating.missing_steps(empty, alone=True) == []
    await require_current_schema(empty)
    knows((1, "select 1"))
    with pytest.raises(SetupError, match="needs code that knows version 2"):
        await require_current_schema(empty)


async def test_a_new_database_has_nothing_that_older_code_needs(empty: Database, knows: Knows) -> None:
    knows((1, "select 1"), (2, "-- once no older code runs\nselect 2"))
    assert await migrate(empty) == ["0001_step", "0002_step"]


def test_each_step_lets_code_of_before_run_on_and_says_which() -> None:
    assert [step.name for step in known_migrations() if (step.oldest_code >= step.number) != step.waits] == []
    for step in known_migrations():
        assert step.is_outside == (" concurrently" in step.sql), step.name
