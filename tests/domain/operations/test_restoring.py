"""Ids that a database gave out before it was put back never come again."""

from collections.abc import Awaitable, Callable

from paydesk.database.pool import Database
from paydesk.domain.operations.restoring import GAP, begin_epoch


async def test_ids_go_on_behind_a_gap_and_keep_their_last_digit(
    database: Database, buy: Callable[[], Awaitable[int]]
) -> None:
    before, epoch = await database.fetchrow("select nextval('payment_id_seq'), epoch from deployment")
    begun = await begin_epoch(database)
    after = await buy()
    assert (begun.epoch, await database.fetchval("select epoch from deployment")) == (epoch + 1, epoch + 1)
    assert (after % 10, after - before >= 10 * GAP) == (8, True)
    assert after < 2**53


async def test_each_sequence_is_raised_also_one_that_nobody_has_asked(database: Database) -> None:
    named = "select sequencename from pg_sequences where schemaname = 'public' order by 1"
    lasts = (
        "select sequencename, coalesce(last_value, start_value) as last from pg_sequences where schemaname = 'public'"
    )
    before = {row["sequencename"]: row["last"] for row in await database.fetch(lasts)}
    begun = await begin_epoch(database, gap=50)
    after = {row["sequencename"]: row["last"] for row in await database.fetch(lasts)}
    assert begun.sequences == len(await database.fetch(named)) > 10
    assert all(after[name] >= last + 50 for name, last in before.items())
