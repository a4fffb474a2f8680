"""A test clock moves the test side of one merchant, and nothing else."""

from __future__ import annotations

from datetime import timedelta

from tests import set_back

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import shop_time

AHEAD = timedelta(days=40)


async def test_the_live_side_keeps_real_time(database: Database, shop: Shop) -> None:
    await set_back.clock_runs_ahead(database, shop.merchant_id, AHEAD)
    now = utc_now()
    assert await shop_time(database, Shop(shop.merchant_id, live=True), real_now=now) == now
    assert await shop_time(database, Shop(shop.merchant_id, live=False), real_now=now) == now + AHEAD


async def test_statements_know_the_time_of_each_side(database: Database, shop: Shop) -> None:
    await set_back.clock_runs_ahead(database, shop.merchant_id, AHEAD)
    ahead = await database.fetch(
        "select live, side_clock(live, test_clock) as ahead from merchant, (values (true), (false)) side (live)"
        " where id = $1",
        shop.merchant_id,
    )
    assert {row["live"]: row["ahead"] for row in ahead} == {True: timedelta(0), False: AHEAD}


async def test_the_time_of_a_side_is_worked_out_as_a_part_of_its_statement(database: Database) -> None:
    """A claim that had to call a function for each row would not keep its index."""
    plan = await database.fetch(
        "explain (verbose) select p.id from payment p join merchant m on m.id = p.merchant_id"
        " where p.funds_due_at <= now() + side_clock(p.live, m.test_clock)"
    )
    text = "\n".join(row[0] for row in plan)
    assert "test_clock" in text
    assert "side_clock" not in text
