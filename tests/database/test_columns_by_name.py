"""Columns are named wherever rows are written: a schema that grew breaks no old code."""

from __future__ import annotations

import ast
import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import aiosql
import asyncpg
import pytest
from tests.conftest import database_at
from tests.database.statements import all_readers, all_statements
from tests.databases import drop_database
from tests.till import Till

import paydesk
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.ledger import checking
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund

SOURCE = Path(paydesk.__file__).parent
FILES = sorted([*SOURCE.rglob("*.sql"), *SOURCE.rglob("*.py")])

_COMMENT = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_INSERT = re.compile(
    r"\binsert\s+into\s+(?P<table>[\w.]+)(?:\s+as\s+\w+)?\s*(?P<columns>\([^)]*\)|default\s+values)?", re.I
)
_EVERYTHING = re.compile(r"(?:^|[\s,(])(?:\w+\.)?\*\s*(?:,|$|\n)")


def unnamed_inserts(sql: str) -> list[str]:
    """The tables that something is inserted into without saying which column gets what."""
    plain = _COMMENT.sub("''", sql)
    found = []
    for insert in _INSERT.finditer(plain):
        rest = plain[insert.end() :]
        selected = re.match(r"\s*select\b(.*?)(?=\bfrom\b|;|\Z)", rest, re.S | re.I)
        if insert["columns"] is None or (selected and _EVERYTHING.search(selected[1])):
            found.append(insert["table"])
    return found


def sql_in(path: Path) -> list[str]:
    """The statements of a file: all of it, or the strings of a module,
    with a word where a value is put in.
    """
    if path.suffix == ".sql":
        return [path.read_text()]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def test_no_statement_inserts_without_naming_the_columns() -> None:
    inserting = [path for path in FILES if "insert" in path.read_text().lower()]
    found = {str(path.relative_to(SOURCE)): unnamed_inserts(sql) for path in inserting for sql in sql_in(path)}
    assert {path: tables for path, tables in found.items() if tables} == {}


def test_the_statements_of_modules_are_looked_through(tmp_path: Path) -> None:
    module = tmp_path / "moving.py"
    module.write_text('async def move(c, log):\n    await c.execute(f"insert into {log} select * from moved")\n')
    assert [tables for sql in sql_in(module) if (tables := unnamed_inserts(sql))] == [["x"]]


@pytest.mark.parametrize(
    "sql",
    [
        "insert into pot select v.*\n from version v",
        "insert into pot select * from version",
        "insert into pot (a, b) select * from version",
        "insert into pot as p (a, b)\nselect a, v.*, b from version v",
        "insert into pot values (1)",
    ],
)
def test_an_insert_that_names_no_columns_is_seen(sql: str) -> None:
    assert unnamed_inserts(sql) == ["pot"]


@pytest.mark.parametrize(
    "sql",
    [
        "insert into pot (a) select count(*) from version",
        "insert into pot (a) select a * 2 from version",
        "insert into pot default values",
        "insert into pot (a) values (1) returning *",
        "-- insert into pot select *\nselect 1",
    ],
)
def test_what_names_its_columns_is_left_alone(sql: str) -> None:
    assert unnamed_inserts(sql) == []


@pytest.fixture
async def grown(server_url: str) -> AsyncIterator[Database]:
    """A database of the next release: every table has a column that this one does not know."""
    name = f"paydesk_grown_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    try:
        async with connected(database_at(server_url, name), most=4) as pool:
            await migrate(pool)
            yield pool
    finally:
        await drop_database(admin, name)
        await admin.close()


async def grow(database: Database) -> None:
    tables = await database.fetch(
        "select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition"
    )
    for table in tables:
        await database.execute(f"alter table {table['name']} add column added_later text not null default ''")


_SPREAD = re.compile(r"\*\*(?:dict\()?(?:row|one|key)\b")
_CALL = re.compile(r"(\w+)\.(\w+)\(")
_LOADED = re.compile(r'^(\w+) = load_statements\(__package__ or ""(?:, "([\w.]+)")?\)', re.M)


def statements_of(path: Path) -> dict[str, str]:
    """The statements of a file, by name."""
    found = aiosql.from_path(path, "asyncpg", mandatory_parameters=True)
    return {name: getattr(found, name).sql for name in found.available_queries if not name.endswith("_cursor")}


def called_by(module: Path) -> dict[str, str]:
    """The statements that a module calls of those that it has loaded itself, by name."""
    text = module.read_text()
    loaded = {name: statements_of(module.parent / (file or "queries.sql")) for name, file in _LOADED.findall(text)}
    calls = {(name, statement) for name, statement in _CALL.findall(text) if statement in loaded.get(name, {})}
    return {statement: loaded[name][statement] for name, statement in sorted(calls)}


async def test_no_column_that_is_added_later_reaches_a_class_that_is_filled_from_a_row(grown: Database) -> None:
    await grow(grown)
    fed: list[str] = []
    statements = all_statements()
    filled = {name for reader in all_readers() for filling in reader.fillings() for name in filling.statements}
    filling = [path for path in sorted(SOURCE.rglob("*.py")) if _SPREAD.search(path.read_text())]
    async with grown.acquire() as connection, connection.transaction():
        await checking.queries.make_bank_record(connection)
        await checking.queries.make_bank_purchase(connection)
        for module in filling:
            for name, sql in called_by(module).items():
                prepared = await connection.prepare(sql)
                if "added_later" in {column.name for column in prepared.get_attributes()}:
                    fed.append(f"{module.relative_to(SOURCE)}: {name}")
        for path, name in filled:
            prepared = await connection.prepare(statements[path, name].sql)
            if "added_later" in {column.name for column in prepared.get_attributes()}:
                fed.append(f"{path.relative_to(SOURCE)}: {name}")
    assert not fed, "name the columns that the class has"


async def test_old_code_sells_renews_and_refunds_on_a_schema_that_grew(
    grown: Database, desk: Desk, vault: Vault
) -> None:
    await grow(grown)
    merchant = await create_merchant(grown, vault, name="Corner Shop", email="owner@shop.example", now=utc_now())
    shop = shop_of(merchant, live=False)
    club = Till(replace(desk, database=grown), shop)
    subscription = await club.subscribe()
    renewed = await club.charge_due(subscription)
    assert (renewed.counter, renewed.paid_number_counter) == (2, 2)
    payment = (await club.payments())[-1]
    done = await refund(
        club.desk, shop, payment["id"], Decimal("4.00"), requested_by="api", now=utc_now() + timedelta(days=40)
    )
    assert done.total == 4
