"""Sales are summed: no report changes by it, whatever becomes of payments before, meanwhile and
afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import asyncpg
import pytest
from dateutil.relativedelta import relativedelta
from tests import breaking, set_back
from tests.conftest import database_at
from tests.domain.ledger.conftest import OpenTill
from tests.proving import check
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.ledger import summing_sales
from paydesk.domain.ledger.figures import CurrencySales, Days, Sales, Span, period_of, sales, whole_of
from paydesk.domain.ledger.summing_sales import run_summing, sum_sales
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.card_guard import in_test_mode
from paydesk.domain.payments.states import TAKEN, PaymentState

ZONES = ("UTC", "Asia/Kathmandu")
BORDERS = ("UTC", "Europe/London", "America/New_York", "Asia/Kathmandu", "Pacific/Kiritimati")
"""Zones whose days are those of UTC always, at times or never."""
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


async def sum_what_is_to_come(live: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sum by a clock that is five hours ahead, which is put back then.

    At most a day is summed at once: past midnight by that clock what is over by any clock
    comes first.
    """
    with monkeypatch.context() as ahead:
        ahead.setattr(summing_sales, "OVER_FOR", summing_sales.OVER_FOR - timedelta(hours=5))
        ahead.setattr(summing_sales, "YOUNG", summing_sales.YOUNG - timedelta(hours=5))
        for _ in range(100):
            assert await sum_sales(live.database)
            if await live.database.fetchval("select closed_until > clock_timestamp() from sales_closing"):
                return
    raise AssertionError("nothing that is to come is summed")


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


def whole_days_of(now: datetime) -> list[date]:
    """Days around which it is looked at what counts for which: of this week and the one before,
    of months before, and those on which Europe's clocks were put forward and back last.
    """
    ago = (0, 1, 6, 7, 13, 29, 30, 59, 60)
    days = [now.date() - timedelta(days=number) for number in ago]
    months = [now.date().replace(day=1) - relativedelta(months=number) for number in (0, 1, 11, 12, 13)]
    return sorted({*days, *months, *(clocks_put(now, month) for month in (3, 10))})


def clocks_put(now: datetime, month: int) -> date:
    """The last Sunday of a month, the last time that it was over."""
    year = now.year if now.month > month else now.year - 1
    return date(year, month, 31) - relativedelta(days=date(year, month, 31).isoweekday() % 7)


async def trade_at_borders(live: Till, now: datetime) -> None:
    """Payments in the last moment before a day of a zone and in its first, and some hours later."""
    # One card pays for all of them, faster than its tries are taken back.
    live = replace(live, desk=replace(live.desk, limits=in_test_mode(live.desk.limits)))
    moments = set()
    for day in whole_days_of(now):
        for zone in BORDERS:
            begins = datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)
            moments |= {begins - timedelta(microseconds=1), begins, begins + timedelta(hours=5, minutes=7)}
    for number, at in enumerate(sorted(one for one in moments if one < now)):
        if number % 5 == 0:
            await live.pay(await live.order(f"b-{number}", now=at), DECLINED, now=at)
        else:
            paid = await live.sell(
                f"b-{number}", amount=f"{number + 1}.00", currency=("USD", "EUR")[number % 2], now=at
            )
            if number % 7 == 0:
                await live.give_back(paid, "0.50")


async def plainly(live: Till, period: Days, now: datetime) -> list[CurrencySales]:
    """The same report by counting payments one by one."""
    before = period.before
    back = relativedelta(months=len(period.days)) if period.by_month else timedelta(days=len(period.days))
    until = min(now - back, period.since)
    days: dict[str, dict[date, Sales]] = {}
    for row in await live.rows("payment"):
        at, taken, back_again = row["created_at"], row["state"] in TAKEN, row["refunded"] > 0
        if not (before.since <= at < until or period.since <= at < period.until):
            continue
        day = at.astimezone(period.zone).date()
        day = day.replace(day=1) if period.by_month else day
        one = days.setdefault(row["currency"], {}).get(day, Sales(day))
        days[row["currency"]][day] = Sales(
            day,
            one.successful + taken,
            one.volume + (row["amount"] if taken else 0),
            one.failed + (row["state"] == PaymentState.DECLINED),
            one.refunds + back_again,
            one.refunded + row["refunded"],
        )
    shown = [whole_of(currency, found, period) for currency, found in days.items() if max(found) >= period.first]
    return sorted(shown, key=lambda one: (-one.total.successful, one.currency))


async def test_every_payment_counts_for_the_day_that_it_is_of_in_the_merchants_zone(live: Till) -> None:
    now = utc_now()
    await trade_at_borders(live, now)
    nows = (now, *(datetime.combine(clocks_put(now, month), time(12, 7), UTC) for month in (3, 10)))
    periods = [
        (period_of(span, ZoneInfo(zone), now=at), at)
        for at in (*nows, now - timedelta(days=3, hours=7))
        for zone in BORDERS
        for span in Span
    ]

    async def is_right() -> None:
        for period, at in periods:
            told = await sales(live.database, live.shop, period, now=at)
            assert told == await plainly(live, period, at), (period.first, period.last, period.zone.key)

    await is_right()
    assert await sum_sales(live.database), "a day is summed"
    await is_right()
    await sum_all(live)
    await is_right()
    (old, *_, late) = [row["id"] for row in await live.payments() if row["state"] == PaymentState.CAPTURED]
    await live.give_back(old, "0.25")
    await live.give_back(late, "0.25")
    assert await changes(live) > 0
    await is_right()
    assert await proven(live)


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


async def test_what_is_sold_after_a_clock_was_put_back_is_in_the_reports(
    live: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = utc_now()
    given_back = await live.sell("before", now=now)
    await sum_what_is_to_come(live, monkeypatch)
    assert await summed(live) == (1, 0)
    await live.sell("after", amount="20.00", now=now)
    await live.give_back(given_back, "1.00")
    await live.pay(await live.order("failed", now=now), DECLINED, now=now)
    await sum_all(live)
    (today,) = await sales(live.database, live.shop, period_of(Span.TODAY, ZoneInfo("UTC"), now=now), now=now)
    total = today.total
    assert (total.successful, total.volume, total.failed, total.refunded) == (2, Decimal(30), 1, Decimal(1))
    assert await proven(live)


async def test_a_clock_that_was_put_back_leaves_the_sums_of_days_before_alone(
    live: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = utc_now()
    await trade(live, now)
    await sum_all(live)
    before = await reports(live, now)
    await sum_what_is_to_come(live, monkeypatch)
    assert await sum_sales(live.database)
    assert (await summed(live))[0] >= 1, "40 days ago is over by any clock"
    await sum_all(live)
    assert await summed(live) == (4, 1)
    assert await reports(live, now) == before
    assert await proven(live)


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
