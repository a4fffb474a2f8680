"""What has changed of a merchant's rows since a snapshot is brought after the copy that was made of
it.

A row that was written by a transaction older than all that ran at the snapshot is in it as it is;
so rows of younger ones are brought, the few with them that were there already. What was deleted
shows in how many rows there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paydesk.database.durability import ConfirmedConnection
from paydesk.domain.moving.copying import (
    PATIENCE,
    Pair,
    Table,
    copy_whole,
    hash_of,
    listed,
    require_same,
    seen,
    stream,
)

_YOUNGER = "age(t.xmin) <= age({}::text::xid8::xid)"
"""Whether a row is of no older transaction than this one, which is younger than half of all numbers
that rows know (`Snapshot.follows` sees to it); a row of long ago may seem to be."""


@dataclass(frozen=True, slots=True)
class Brought:
    """How many rows a table has, and how many of them came."""

    rows: int
    changed: int


@dataclass(frozen=True, slots=True)
class _Found:
    """How many rows there are, and the places of those that may have changed."""

    rows: int
    places: Sequence[tuple[int, int]]


async def bring_changes(pair: Pair, table: Table, since: str) -> Brought:
    """Make a table there what it is here, after what it was for who sees all of the transactions
    below `since`; and compare what came. Raises: Conflict.
    """
    asked = f"select count(*) from {table.table} where {table.theirs}"  # noqa: S608
    found, there = await asyncio.gather(
        _look(pair, table, since), pair.there.fetchval(asked, pair.owner(table.table), timeout=PATIENCE)
    )
    if not found.places and found.rows == there:
        return Brought(found.rows, 0)
    await _stage(pair, table, found, since)
    there -= await _rows(pair.there, _same("delete from {table} t using incoming i where {same}", table))
    if there + len(found.places) > found.rows:
        there -= await _drop_what_is_gone(pair, table)
    if there + len(found.places) == found.rows:
        await _put(pair, table, found, since)
        changed = len(found.places)
    else:
        await pair.there.execute(
            f"delete from {table.table} where {table.theirs}",  # noqa: S608
            pair.owner(table.table),
            timeout=PATIENCE,
        )
        changed = await copy_whole(pair, table)
    await pair.there.execute("drop table incoming")
    return Brought(found.rows, changed)


async def _look(pair: Pair, table: Table, since: str) -> _Found:
    asked = (
        f"select count(*), coalesce(array_agg(ctid) filter (where {_YOUNGER.format('$2')}), '{{}}') "  # noqa: S608
        f"from {table.table} t where {table.theirs}"
    )
    row: Any = await pair.here.fetchrow(asked, pair.owner(table.table), since, timeout=PATIENCE)
    return _Found(*row)


def _of_places(table: Table) -> str:
    """Which rows were found: partitions have places of the same name, of which the others are not
    younger.
    """
    return f"from {table.table} t where {table.theirs} and ctid = any($2::tid[]) and {_YOUNGER.format('$3')}"


async def _stage(pair: Pair, table: Table, found: _Found, since: str) -> None:
    """Bring what may have changed into a table of this transaction's."""
    columns = listed(table.columns)
    await pair.there.execute(
        f"create temporary table incoming on commit drop as select {columns} from {table.table} with no data"  # noqa: S608
    )
    if found.places:
        asked = f"select {columns} {_of_places(table)}"
        await stream(pair, asked, [pair.owner(table.table), found.places, since], "incoming", table.columns)


async def _drop_what_is_gone(pair: Pair, table: Table) -> int:
    """Delete there what is not here any more; how many rows."""
    keys = listed(table.keys)
    await pair.there.execute(
        f"create temporary table standing on commit drop as select {keys} from {table.table} with no data"  # noqa: S608
    )
    asked = f"select {keys} from {table.table} where {table.theirs}"  # noqa: S608
    await stream(pair, asked, [pair.owner(table.table)], "standing", table.keys)
    await pair.there.execute("analyze standing", timeout=PATIENCE)
    gone = "delete from {table} t where {theirs} and not exists (select from standing i where {same})"
    dropped = await _rows(pair.there, _same(gone, table), pair.owner(table.table))
    await pair.there.execute("drop table standing")
    return dropped


async def _put(pair: Pair, table: Table, found: _Found, since: str) -> None:
    """Put what came in its place, and compare it. Raises: Conflict."""
    if not found.places:
        return
    columns = listed(table.columns)
    await pair.there.execute(
        f"insert into {table.table} ({columns}) overriding system value select {columns} from incoming",  # noqa: S608
        timeout=PATIENCE,
    )
    was, came = await asyncio.gather(
        seen(pair.here, f"select {hash_of(table)} {_of_places(table)}", pair.owner(table.table), found.places, since),
        seen(pair.there, _same("select {hash} from {table} t join incoming i on {same}", table)),
    )
    require_same(table, was, came)


def _same(statement: str, table: Table) -> str:
    """A statement about rows `t` of a table that have the key of rows `i`."""
    same = " and ".join(f't."{one}" = i."{one}"' for one in table.keys)
    return statement.format(table=table.table, theirs=table.theirs, hash=hash_of(table), same=same)


async def _rows(connection: ConfirmedConnection, statement: str, *values: object) -> int:
    """Run a statement; how many rows it was about."""
    said = str(await connection.execute(statement, *values, timeout=PATIENCE))
    return int(said.rpartition(" ")[2])
