"""Sales are summed: no report changes by it, whatever becomes of payments before, meanwhile and
afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from tests import breaking, set_back
from tests.conftest import database_at
from tests.domain.ledger.conftest import OpenTill
from tests.proving import check
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.ledger import summing_sales
from paydesk.domain.ledger.figures import CurrencySales, Span, period_of, sales
from paydesk.domain.ledger.summing_sales import run_summing, sum_sales
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import TAKEN, PaymentState

ZONES = ("UTC", "Asia/Kathmandu")
DECLINED = "4000000000000002"


@pytest.fixture
async def live(open_till: OpenTill, empty: Database) -> Till:
    """The live side of the only merchant of a deployment."""
    till = await open_till(empty)
    await set_back.went_live(empty, till.shop.merchant_id)
    desk = replace(till.desk, live_acquirer="simulator")
    return replace(till, desk=desk, shop=Shop(till.shop.merchant_id, live=True))


@pytest.fixture
async def stranger(live: Till, server_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Another session than the pool's."""
    connection = await asyncpg.connect(
        database_at(server_url, await live.database.fetchval("select current_database()"))
    )
    yield connection
    await connection.close()


async def reports(live: Till, now: datetime) -> list[list[CurrencySales]]:
    """What the account shows of all its periods, for days of two time zones."""
    periods = [period_of(span, ZoneInfo(zone), now=now) for zone in ZONES for span in Span]
    return [await sales(live.database, live.shop, period, now=now) for period in periods]


async def sum_all(live: Till) -> None:
    """Sum what may be summed."""
    for _ in range(1000):
        if not await sum_sales(live.database):
            return
    raise AssertionError("there is always more to sum")


async def changes(live: Till) -> int:
    return int(await live.database.fetchval("select count(*) from sales_change"))


async def summed(live: Till) -> tuple[int, int]:
    """How many payments the sums of all merchants contain that succeeded, and that failed."""
    row = await live.database.fetchrow(
        "select coalesce(sum(successful), 0) as taken, coalesce(sum(failed), 0) as failed from sales_of_all"
    )
    return int(row["taken"]), int(row["failed"])


async def proven(live: Till) -> bool:
    found = await check(live.database, now=utc_now())
    return [one.differences for one in found if one.rule.statement == "sales_add_up"] == [()]


async def trade(live: Till, now: datetime) -> dict[str, int]:
    """Payments of three days, some in other currencies, one that failed;
    the ids of those that succeeded.
    """
    paid = {}
    for name, ago, amount, currency in (
        ("old", timedelta(days=40), "10.00", "USD"),
        ("before", timedelta(days=1, minutes=7), "20.00", "USD"),
        ("euro", timedelta(hours=5), "30.00", "EUR"),
        ("lately", timedelta(hours=3, minutes=11), "40.00", "USD"),
        ("now", timedelta(0), "50.00", "USD"),
    ):
        paid[name] = await live.sell(name, amount=amount, currency=currency, now=now - ago)
    await live.pay(await live.order("failed", now=now - timedelta(hours=4)), DECLINED, now=now - timedelta(hours=4))
    return paid


async def test_a_report_is_the_same_before_and_after_the_sum(live: Till) -> None:
    now = utc_now()
    await trade(live, now)
    before = await reports(live, now)
    assert await summed(live) == (0, 0)
    assert await proven(live)
    assert await sum_sales(live.database), "a day is summed"
    assert await reports(live, now) == before
    await sum_all(live)
    assert await summed(live) == (4, 1), "what was paid just now counts itself"
    assert await changes(live) == 0
    assert await reports(live, now) == before
    assert await proven(live)
    assert not await sum_sales(live.database), "there is nothing new"


async def test_what_is_written_again_as_it_was_is_no_change(live: Till) -> None:
    paid = await trade(live, utc_now())
    await sum_all(live)
    await breaking.say(live.database, "payment", {"id": paid["old"]}, state="captured")
    assert await changes(live) == 0


async def test_what_becomes_of_payments_later_is_added_once(live: Till) -> None:
    now = utc_now()
    paid = await trade(live, now)
    assert await sum_sales(live.database), "the oldest day is summed"
    await live.give_back(paid["old"], "4.00")
    await live.give_back(paid["before"], "5.00")
    await live.pay(await live.order("failed", now=now), now=now)
    await live.sell("late", amount="3.00", now=now - timedelta(days=40))
    assert await changes(live) > 3
    seen = await reports(live, now)
    month, year = (seen[place][0].total for place in (2, 3))
    assert (month.successful, month.failed, month.refunds, month.refunded) == (4, 0, 1, Decimal(5))
    assert (year.successful, year.failed, year.refunds, year.refunded) == (6, 0, 2, Decimal(9))
    assert await proven(live)
    await sum_all(live)
    assert await changes(live) == 0
    assert await reports(live, now) == seen
    assert await proven(live)
    await live.give_back(paid["lately"], "1.50")
    after = await reports(live, now)
    assert (after[2][0].total.refunds, after[2][0].total.refunded) == (2, Decimal("6.50"))
    assert await proven(live)


async def test_what_is_paid_at_once_costs_nothing(live: Till) -> None:
    paid = await live.sell("now")
    await live.give_back(paid)
    assert await changes(live) == 0


async def test_test_payments_are_in_no_sum(live: Till) -> None:
    at = utc_now() - timedelta(days=3)
    await replace(live, shop=Shop(live.shop.merchant_id, live=False)).sell("test", now=at)
    await sum_all(live)
    assert await summed(live) == (0, 0)
    assert await changes(live) == 0


async def test_nothing_is_summed_while_somebody_writes_who_began_before(
    live: Till, stranger: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is not over is to be summed: so that whoever writes now began before that ended.
    monkeypatch.setattr(summing_sales, "OVER_FOR", timedelta(hours=-1))
    await live.sell("old", now=utc_now() - timedelta(minutes=1))
    began = stranger.transaction()
    await began.start()
    await stranger.execute("lock table payment in row exclusive mode")
    assert not await sum_sales(live.database)
    await began.rollback()
    assert await sum_sales(live.database)
    assert await summed(live) == (1, 0)


async def test_two_sum_once(live: Till) -> None:
    await trade(live, utc_now())
    async with live.database.acquire() as one, one.transaction():
        await one.fetch("select * from sales_closing for update")
        assert not await sum_sales(live.database), "somebody else is at it"
    await asyncio.gather(*(sum_all(live) for _ in range(3)))
    assert await summed(live) == (4, 1)
    assert await proven(live)


async def test_the_worker_sums_all_that_is_over_before_it_rests(live: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    await trade(live, utc_now())
    stop, add = asyncio.Event(), sum_sales

    async def until_nothing_is_left(database: Database) -> bool:
        more = await add(database)
        if not more:
            stop.set()
        return more

    monkeypatch.setattr(summing_sales, "sum_sales", until_nothing_is_left)
    await run_summing(live.database, stop)
    assert await summed(live) == (4, 1)


@pytest.mark.parametrize("table", ["sales_quarter", "sales_day", "sales_of_all"])
async def test_a_wrong_sum_is_named(live: Till, table: str) -> None:
    await trade(live, utc_now())
    await sum_all(live)
    assert await proven(live)
    await breaking.say(live.database, table, {"currency": "EUR"}, successful=2)
    assert not await proven(live)


async def test_the_schema_counts_as_sold_what_the_states_say_was_taken(live: Till) -> None:
    at, counted = utc_now() - timedelta(days=1), {}
    payment_id = await live.sell("one", now=at)
    for state in PaymentState:
        await breaking.say(live.database, "payment", {"id": payment_id}, state=state)
        row = await live.database.fetchrow("select * from payment_sold where id = $1", payment_id)
        counted[state] = (row["successful"], row["failed"])
    assert {state for state, (taken, _) in counted.items() if taken} == TAKEN
    assert {state for state, (_, failed) in counted.items() if failed} == {PaymentState.DECLINED}
