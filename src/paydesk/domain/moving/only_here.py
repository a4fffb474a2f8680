"""What of a merchant who is in both cells only the copy here knows: rows that the other cell does
not have, or in which something came to pass that did not there.

A copy that came back from before knows nothing but what the other cell knows, too, or has left
behind: of that its rows say less, never more. Numbers are given out twice after such a return, so
that a row is the other cell's if also what never changes of it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, TypeAlias

from paydesk.database.durability import ConfirmedConnection
from paydesk.database.pool import AWAY
from paydesk.domain.moving.comparisons import COMPARED, Compared
from paydesk.domain.moving.copying import PATIENCE, Pair, Side, names_of_accounts, queries, stream
from paydesk.domain.moving.passes import in_words
from paydesk.domain.moving.tables import theirs

Comparing: TypeAlias = Callable[[], AbstractContextManager[Callable[[], None]]]
"""What hears of each table that is compared, by calls of what it gives for the comparison's
length.
"""


def uncompared() -> AbstractContextManager[Callable[[], None]]:
    """Nobody hears of it."""
    return nullcontext(lambda: None)


FIRST = 5
"""How many rows of a table are named."""

TELLS: Final = "audit_entry"
"""The table whose rows nobody makes anew after a return: what both have was told while they were
one.
"""

WRITES: Final = "1 minute"
"""How long a transaction may have known its moment before others see what it wrote."""


@dataclass(frozen=True, slots=True)
class Alone:
    """What of a table only the copy here knows: how many rows, the first of them, and what all of
    them come to; and what it `may_be` that the other cell does know.
    """

    table: str
    rows: int
    first: Sequence[str]
    hash: str
    may_be: str = ""

    def __str__(self) -> str:
        more = ", …" if self.rows > len(self.first) else ""
        said = f"{self.table}: {self.rows} ({', '.join(self.first)}{more})"
        return f"{said}, {self.may_be}" if self.may_be else said


def code_of(found: Sequence[Alone]) -> str:
    """By what somebody who has seen these rows names them, and no others."""
    return sha256("\n".join(f"{one.table} {one.rows} {one.hash}" for one in found).encode()).hexdigest()[:12]


async def only_here(
    source: Side, target: Side, merchant_id: int, *, report: Callable[[], None] = lambda: None
) -> list[Alone]:
    """What of the merchant's, by table, the cell `source` knows and the cell `target` does not, as
    far as it is about money or people. `report` hears of each table. Changes nothing.

    What only an earlier state of a row here says is nothing that the other cell does not know.
    Raises: Unavailable if a database goes away.
    """
    try:
        return await _only_here(source, target, merchant_id, report)
    except (*AWAY, ExceptionGroup) as error:
        if said := in_words(error):
            raise said from error
        raise


async def _only_here(source: Side, target: Side, merchant_id: int, report: Callable[[], None]) -> list[Alone]:
    async with (
        source.database.acquire() as here,
        target.database.acquire() as there,
        here.transaction(isolation="repeatable_read"),
        there.transaction(isolation="repeatable_read", readonly=True),
    ):
        for each in (here, there):
            await each.execute("set local idle_in_transaction_session_timeout = 0")
        named = {name for each in (here, there) for name in await names_of_accounts(each, merchant_id)}
        # What is compared comes from there.
        pair = Pair(there, here, merchant_id, sorted(named))
        await here.execute(
            "create temporary table kept_there (key text, same text, once boolean[], grows numeric[], version text, "
            "state text) on commit drop"
        )
        await here.execute("create temporary table told_in_both (at timestamptz) on commit drop")
        emptied = await _test_sides(there, merchant_id) > await _test_sides(here, merchant_id)
        found = {}
        for table in sorted(COMPARED, key=lambda one: one != TELLS):
            if pair.has(table):
                found[table] = await _alone(pair, here, table, COMPARED[table], emptied)
            if table == TELLS:
                await here.execute(_told_in_both(COMPARED[table]), merchant_id, timeout=PATIENCE)
            report()
    return [found[table] for table in COMPARED if table in found and found[table].rows]


async def _test_sides(connection: ConfirmedConnection, merchant_id: int) -> int:
    """How often a merchant's test side was begun, as far as a cell knows."""
    return int(await queries.test_generation(connection, merchant_id=merchant_id) or 0)


async def _alone(
    pair: Pair, here: ConfirmedConnection, table: str, compared: Compared, test_side_was_emptied: bool
) -> Alone:
    of, owner = compared.of or f"{table} t", pair.owner(table)
    await here.execute("truncate kept_there", timeout=PATIENCE)
    distinct = "" if compared.key == "t.id" else "distinct"
    asked = f"select {distinct} {compared.facts} from {of} where {theirs(table)}"  # noqa: S608
    await stream(pair, asked, [owner], "kept_there", ["key", "same", "once", "grows", "version", "state"])
    await here.execute("analyze kept_there", timeout=PATIENCE)
    row: Any = await here.fetchrow(_difference(table, compared, of), owner, test_side_was_emptied, timeout=PATIENCE)
    return Alone(row[0], row[1], row[2], row[3], compared.may_be)


def _told_in_both(compared: Compared) -> str:
    """Note when what both cells tell came to pass: until then both were one; $1 is whose it is."""
    return f"""
        insert into told_in_both (at)
        select distinct t.at
          from {compared.of}
          join kept_there k on k.key = row({compared.key})::text and k.same = row({compared.same})::text
         where {theirs(TELLS)}
    """  # noqa: S608


def _difference(table: str, compared: Compared, of: str) -> str:
    """The question for what is here and not there; $1 is whose it is, $2 whether the test side was
    emptied there, and there are `kept_there` and `told_in_both`.
    """
    return f"""
        with ours as (
            select {compared.facts}, ({compared.shown})::text as shown, ({compared.made})::timestamptz as made,
                   {compared.live} as live
              from {of}
             where {theirs(table)}
        ), beside as (
            select o.*, k.key is not null as is_there, k.same as same_there, k.once as once_there,
                   k.grows as grows_there, k.version as version_there, k.state as state_there
              from ours o
              left join kept_there k on k.key = o.key
        ), newest as (
            select greatest(max(made) filter (where is_there and same = same_there),
                            (select max(at) - interval '{WRITES}' from told_in_both)) as made
              from beside
        ), found as materialized (
            select b.*
              from beside b
             cross join newest n
             where not b.is_there and (b.live or not $2)
                   and (b.made <= n.made or b.made in (select at from told_in_both)) is not true
                or b.same <> b.same_there
                or exists (select from unnest(b.once, b.once_there) as o (here, there) where o.here and not o.there)
                or b.is_there
                   and exists (select from unnest(b.grows, b.grows_there) as g (here, there)
                                where g.here > g.there or g.here is not null and g.there is null)
                or b.version = b.version_there and b.state is distinct from b.state_there
        )
        select '{table}' as table, count(*) as rows,
               array(select shown from found order by length(shown), shown limit {FIRST}) as first,
               coalesce(sum(hashtextextended(row(key, same, once, grows, version, state)::text, 0)::numeric), 0)::text
                   as hash
          from found
    """  # noqa: S608
