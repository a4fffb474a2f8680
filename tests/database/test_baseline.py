"""The baseline: what a new database gets, and how one that was made step by step is recognised,
or told what to do.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.resources import files
from typing import Any, TypeAlias

import asyncpg
import pytest
from tests.conftest import database_at
from tests.databases import drop_database

from paydesk.core.errors import SetupError
from paydesk.core.units import UNITS
from paydesk.database import baseline, migrating
from paydesk.database.baseline import require_same
from paydesk.database.migrating import Migration, known_migrations, migrate, require_current_schema
from paydesk.database.pool import Database, connected
from paydesk.database.statements import load_statements

DIGEST = "f50d50608f5ba1e0ac2eea16cedcce3d347936b9e8a3fcb5dee0cee55bc22adb"
"""Of the catalog that the baseline makes, on every version of PostgreSQL:
a released baseline never changes.

It is what the steps up to its number made (tests/upgrade/test_baseline.py proves that); a failing
test prints another.
"""

BY_STEPS = "0165_forgotten_purchases"
"""What the last of the steps called itself, under whose number the baseline is recorded now."""

Copy: TypeAlias = Callable[[], AbstractAsyncContextManager[Database]]
queries = load_statements("paydesk.database", "catalog.sql")


@pytest.fixture(scope="module")
async def by_steps(server_url: str) -> AsyncIterator[str]:
    """The name of a database as the steps left it:
    at the baseline's number, recorded step by step.
    """
    name = f"paydesk_by_steps_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    try:
        async with connected(database_at(server_url, name), most=2) as pool:
            await migrate(pool, steps=known_migrations()[:1])
            await pool.execute("update schema_migration set name = $2 where number = $1", baseline.NUMBER, BY_STEPS)
        yield name
    finally:
        await drop_database(admin, name)
        await admin.close()


@pytest.fixture
def copy(server_url: str, by_steps: str) -> Copy:
    """Copies of that database, one for each block."""

    @asynccontextmanager
    async def copied() -> AsyncIterator[Database]:
        name = f"paydesk_test_{secrets.token_hex(6)}"
        admin = await asyncpg.connect(server_url)
        await admin.execute(f"create database {name} template {by_steps}")
        try:
            async with connected(database_at(server_url, name), most=4) as pool:
                yield pool
        finally:
            await drop_database(admin, name)
            await admin.close()

    return copied


async def standing(database: Database) -> dict[str, Any]:
    """What a refusal leaves as it was: the record of the steps,
    and which schemas and tables there are.
    """
    return {
        "steps": await database.fetch("select to_jsonb(m)::text from schema_migration m order by number"),
        "tables": await database.fetch("select oid, relname from pg_class where relnamespace >= 2200 order by oid"),
        "schemas": await database.fetch("select nspname from pg_namespace where nspname !~ '^pg_' order by 1"),
    }


def test_every_file_of_the_schema_has_its_place_in_the_order() -> None:
    there = {file.name for file in files("paydesk.database").joinpath("baseline_0165").iterdir()}
    assert there == {f"{noun}.sql" for noun in baseline.NOUNS}


async def test_the_released_baseline_never_changes(copy: Copy) -> None:
    async with copy() as database:
        catalog = [tuple(row) async for row in queries.catalog_of(database, schema="public")]
    assert len(catalog) == 1143
    assert hashlib.sha256(json.dumps(catalog).encode()).hexdigest() == DIGEST


async def test_a_new_database_gets_the_baseline_in_one_go(server_url: str) -> None:
    name = f"paydesk_test_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    try:
        async with connected(database_at(server_url, name), most=2) as database:
            told: list[float] = []
            assert await migrate(database, told=told.append) == [step.name for step in known_migrations()]
            assert await migrate(database) == []
            await require_current_schema(database)
            assert sum(told) == len(known_migrations())
            recorded = await database.fetch(
                "select number, oldest_code from schema_migration where name = $1 order by number", baseline.NAME
            )
            assert [row["number"] for row in recorded] == list(range(1, baseline.NUMBER + 1))
            assert {row["oldest_code"] for row in recorded} == {*range(1, 151)}
            units = await database.fetch("select currency, units from currency_unit")
            assert dict(tuple(row) for row in units) == dict(UNITS)
            place = await database.fetchval("select server_place()")
            history = await database.fetchrow("select number, arrived, whole, held_at from history")
            assert tuple(history) == (0, place, place, None)
            assert await database.fetchval("select epoch from deployment where copied_at is null") == 1
            assert await database.fetchval("select closed_id from ledger_horizon") == 0
            assert await database.fetchval("select nextval('payment_id_seq')") == 8
    finally:
        await drop_database(admin, name)
        await admin.close()


async def test_code_that_knows_the_steps_runs_on_a_database_that_never_had_them(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = tuple(Migration(number, f"{number:04}_step", "select 1 / 0") for number in range(1, 166))
    monkeypatch.setattr(migrating, "known_migrations", lambda: steps)
    async with copy() as database:
        await require_current_schema(database)
        assert await migrate(database) == []


async def test_what_was_made_step_by_step_is_recognised_once(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    later = [step.name for step in known_migrations()[1:] if not step.waits]
    async with copy() as database:
        with pytest.raises(SetupError, match="run: paydesk migrate"):
            await require_current_schema(database)
        done = await asyncio.gather(*(migrate(database) for _ in range(3)))
        assert sorted(name for each in done for name in each) == later
        await require_current_schema(database)
        looked: list[object] = []
        monkeypatch.setattr(baseline, "require_same", looked.append)
        assert await migrate(database) == []
    assert looked == []


async def test_what_an_operator_added_or_tuned_is_let_be(copy: Copy) -> None:
    async with copy() as database:
        await database.execute(
            """
            create index payment_by_card_and_time on payment (card_id, created_at);
            create table note (id integer primary key, words text check (words <> ''));
            create view takings as select currency, sum(amount) from payment group by currency;
            create function half(of_it numeric) returns numeric language sql return of_it / 2;
            alter table payment set (autovacuum_vacuum_scale_factor = 0.01);
            alter table payment_attempt enable trigger copies_move_no_live_money;
            alter table payment alter column state set statistics 500;
            alter table pingback drop constraint pingback_state_check, add constraint pingback_state_check
                check (state in ('waiting', 'due', 'acknowledged', 'exhausted', 'muted')) not valid;
            create table rejected_form_m204105 partition of rejected_form
                for values from ('2041-05-01') to ('2041-06-01')
            """
        )
        await migrate(database)
        await require_current_schema(database)


CHANGES = {
    "drop index payment_by_card": "index payment.payment_by_card is missing",
    "drop index mail_once; create index mail_once on mail (once)": "unique index mail.mail_once is missing",
    "create unique index one on payment (amount)": "unique index payment.one is not Paydesk's",
    "alter table payment add column note text": "column payment.note is not Paydesk's",
    "alter table payment alter column net drop default": (
        'column payment.net is "8. numeric(20,4) not null" and not "8. numeric(20,4) not null default 0"'
    ),
    "alter table payment drop constraint payment_check": "constraint payment.payment_check is missing",
    "alter table payment add constraint few check (amount < 9)": "constraint payment.few is not Paydesk's",
    "drop trigger ledger_entry_is_append_only on ledger_entry": (
        "trigger ledger_entry.ledger_entry_is_append_only is missing"
    ),
    "create or replace view card_number_spare as select merchant_id, live, id from card": (
        "view card_number_spare is another one"
    ),
    "create or replace function server_place() returns text language sql return ''": (
        "function server_place() is another one"
    ),
    "alter sequence mail_id_seq increment by 2": (
        'sequence mail_id_seq is "bigint 1 2 1 9223372036854775807 1" and not "bigint 1 1 1 9223372036854775807 1"'
    ),
    "alter table mail_place reset (fillfactor)": "table mail_place is ",
    "alter table card_try set logged": "table card_try is ",
    "comment on table checkout is null": "table checkout is ",
    "drop table audit_entry_other": "partition audit_entry.audit_entry_other is missing",
}
"""What somebody may have done to a schema, and how it is named."""


async def test_what_differs_is_named_and_refused_and_nothing_is_changed(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "_NAMED", 99)
    async with copy() as database:
        for change in CHANGES:
            await database.execute(change)
        before = await standing(database)
        with pytest.raises(
            SetupError, match=r"at step 165, but not as .* migrate again\. Nothing was changed"
        ) as refusal:
            await migrate(database)
        assert [named for named in CHANGES.values() if named not in str(refusal.value)] == []
        assert await standing(database) == before
        with pytest.raises(SetupError, match="run: paydesk migrate"):
            await require_current_schema(database)


async def test_of_many_differences_some_are_named(copy: Copy) -> None:
    async with copy() as database:
        await database.execute("drop table pingback cascade")
        with pytest.raises(SetupError, match=r"is missing, and [0-9]{2} more\. Put this right"):
            await migrate(database)


async def test_a_database_with_an_older_number_is_told_which_code_to_run_first(copy: Copy) -> None:
    async with copy() as database:
        await database.execute("delete from schema_migration where number > 140")
        await database.execute("alter table schema_migration drop column oldest_code")
        before = await standing(database)
        for refused in (migrate, require_current_schema):
            with pytest.raises(
                SetupError, match=r"at step 140, .* of commit aa2581eb0a52 first, .*Nothing was changed"
            ):
                await refused(database)
        assert await standing(database) == before


async def test_a_role_that_may_make_no_schema_is_told_what_it_needs(copy: Copy) -> None:
    async with copy() as database, database.acquire() as connection:
        looking = connection.transaction()
        await looking.start()
        if await connection.fetchval("select rolsuper from pg_roles where rolname = current_user"):
            await connection.execute("set local role pg_read_all_data")
        else:
            name = await connection.fetchval("select quote_ident(current_database())")
            await connection.execute(f"revoke create on database {name} from current_user")
        with pytest.raises(SetupError, match="let it own the database, or grant it create on it"):
            await require_same(connection)
        await looking.rollback()
