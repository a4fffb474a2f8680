"""A step of the schema locks one table, or names those that it locks: read from a server."""

from __future__ import annotations

import secrets

import asyncpg
from tests.conftest import database_at
from tests.databases import drop_database

from paydesk.database.migrating import known_migrations, migrate
from paydesk.database.pool import Database, connected

_LOCKED = """
select array_agg(distinct coalesce(parent.relname, c.relname)::text)
  from pg_locks l
  join pg_class c on c.oid = l.relation
  left join pg_inherits i on i.inhrelid = c.oid
  left join pg_class parent on parent.oid = i.inhparent
 where l.pid = pg_backend_pid() and c.oid = any($1::oid[]) and c.relkind = any($2::text[]::"char"[])
   and l.mode not in ('AccessShareLock', 'RowShareLock')
"""
_ALL = "select array_agg(oid) from pg_class where relnamespace = 'public'::regnamespace"
TABLES, VIEWS = ("r", "p"), ("v",)


async def locked(database: Database, sql: str) -> tuple[set[str], set[str]]:
    """The tables and the views of before that a step locks against who writes or reads."""
    async with database.acquire() as connection:
        trying = connection.transaction()
        await trying.start()
        before = await connection.fetchval(_ALL)
        await connection.execute(sql)
        tables, views = [set(await connection.fetchval(_LOCKED, before, kind) or ()) for kind in (TABLES, VIEWS)]
        await trying.rollback()
    return tables, views


async def test_a_step_locks_one_table_or_names_all(server_url: str) -> None:
    """Waiting for one after the other, it would be in a deadlock with a payment."""
    name = f"paydesk_test_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    steps, several = known_migrations(), 0
    unnamed: dict[str, set[str]] = {}
    async with connected(database_at(server_url, name), most=4) as database:
        for number, step in enumerate(steps):
            if not (step.is_baseline or step.is_outside or step.batches):
                tables, views = await locked(database, step.sql)
                several += len(tables) > 1
                # A view is locked with all its tables only: it is waited for a moment, after them.
                if len(tables) > 1 or (tables and views):
                    unnamed |= {step.name: tables} if tables != set(step.locks) else {}
                elif step.locks:
                    unnamed[step.name] = {"needs no line of locks"}
            await migrate(database, steps=steps[: number + 1])
    await drop_database(admin, name)
    await admin.close()
    assert several
    assert unnamed == {}
