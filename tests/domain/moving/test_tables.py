"""Every table of the schema is of one class: who adds one says whether its rows move with a
merchant.
"""

from __future__ import annotations

from collections import Counter

from paydesk.database.pool import Database
from paydesk.domain.moving.comparisons import COMPARED, LEFT_OUT
from paydesk.domain.moving.tables import (
    ACCOUNTS,
    COUNTS,
    ELSEWHERE,
    GUARDED,
    OF_ACCOUNTS,
    PEOPLE,
    STAYS,
    SUMS,
    THEIRS,
    owner_column,
)

CLASSED = (*THEIRS, *ACCOUNTS, *OF_ACCOUNTS, *PEOPLE, *SUMS, *COUNTS, *STAYS, *ELSEWHERE)


async def tables_in(database: Database) -> dict[str, bool]:
    """Every table that is no partition, and whether its rows have a merchant."""
    rows = await database.fetch(
        "select c.relname, exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'merchant_id'"
        " and not a.attisdropped) as is_theirs from pg_class c where c.relnamespace = 'public'::regnamespace"
        " and c.relkind in ('r', 'p') and not c.relispartition"
    )
    return {row["relname"]: row["is_theirs"] for row in rows}


async def test_each_table_is_of_one_class(database: Database) -> None:
    twice = [name for name, times in Counter(CLASSED).items() if times > 1]
    assert (sorted(set(await tables_in(database)) - set(CLASSED)), twice) == ([], [])


async def test_what_is_classed_is_there(database: Database) -> None:
    assert sorted(set(CLASSED) - set(ELSEWHERE) - set(await tables_in(database))) == []


async def test_what_goes_and_is_guarded_says_whose_it_is(database: Database) -> None:
    columns = {
        (row["table_name"], row["column_name"])
        for row in await database.fetch("select table_name, column_name from information_schema.columns")
    }
    assert [name for name in (*GUARDED, *SUMS) if (name, owner_column(name)) not in columns] == []


async def test_what_is_a_merchants_and_stays_is_known(database: Database) -> None:
    stays = {name for name, is_theirs in (await tables_in(database)).items() if is_theirs and name not in GUARDED}
    known = {"account_session", "merchant_fence", "directory"}
    assert stays - set(SUMS) <= known


def test_each_table_that_goes_is_compared_or_nobody_misses_what_one_cell_alone_has() -> None:
    goes = {*THEIRS, *ACCOUNTS, *OF_ACCOUNTS, *PEOPLE} - {"person"}
    assert (set(COMPARED) | set(LEFT_OUT), set(COMPARED) & set(LEFT_OUT)) == (goes, set())


async def test_each_table_that_names_an_account_alone_goes_with_it(database: Database) -> None:
    rows = await database.fetch(
        "select c.table_name from information_schema.columns c join pg_class r on r.relname = c.table_name"
        " where c.table_schema = 'public' and c.column_name in ('acquirer', 'account') and r.relkind in ('r', 'p')"
        " and not r.relispartition"
    )
    stays = {
        *("acquirer_count", "acquirer_turn", "acquirer_lost"),
        *("balance_closing",),
    }
    named = {row["table_name"] for row in rows}
    assert named - set(THEIRS) - stays == set(OF_ACCOUNTS)
