"""When the reserve is released, summed: the sums are what payments hold, whatever moves them."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from tests import breaking
from tests.proving import check

from paydesk import database as schema
from paydesk.core.clock import utc_now
from paydesk.database.piecemeal import batches_of, run_in_batches
from paydesk.database.pool import Database
from paydesk.domain.ledger.balances import reserve_calendar
from paydesk.domain.ledger.reserves import fold_reserves
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund

Buy = Callable[..., Awaitable[int]]
RESERVE = Decimal("0.50")
MIGRATIONS = Path(schema.__file__).parent / "migrations"


async def settle(database: Database, shop: Shop, days: float) -> None:
    """The worker's looks at the shop, some days from now."""
    at = utc_now() + timedelta(days=days)
    while await settle_due(database, real_now=utc_now(), merchant_id=shop.merchant_id, at=at):
        pass


async def due(database: Database, shop: Shop) -> list[Decimal]:
    return [one.amount for one in await reserve_calendar(database, shop)]


async def kept(database: Database, shop: Shop) -> tuple[Decimal, int]:
    """What the sums hold, and how many changes are not folded."""
    side = "where merchant_id = $1 and live = $2"
    total = await database.fetchval(
        f"select coalesce(sum(amount), 0) from reserve_due {side}", shop.merchant_id, shop.live
    )
    changes = await database.fetchval(f"select count(*) from reserve_change {side}", shop.merchant_id, shop.live)
    return total, changes


async def adds_up(database: Database, shop: Shop) -> None:
    found = await check(database, now=utc_now() + timedelta(days=200), merchant_id=shop.merchant_id)
    assert [one.differences for one in found if one.rule.statement == "reserves_add_up"] == [()]


async def test_the_calendar_is_the_same_before_and_after_the_fold(database: Database, shop: Shop, buy: Buy) -> None:
    for number in range(3):
        await buy(order=f"A-{number}")
    assert await due(database, shop) == [3 * RESERVE], "what has not settled stands in it too"
    assert await kept(database, shop) == (Decimal(0), 0), "money that is only captured costs nothing"
    await settle(database, shop, 8)
    assert await kept(database, shop) == (Decimal(0), 3)
    before = await reserve_calendar(database, shop)
    assert [one.amount for one in before] == [3 * RESERVE]
    assert await fold_reserves(database, now=utc_now(), most=2) >= 3
    assert await kept(database, shop) == (3 * RESERVE, 0)
    assert await reserve_calendar(database, shop) == before
    await adds_up(database, shop)


async def test_the_calendar_is_told_where_the_database_knows_no_time_zone_of_that_name(
    database: Database, shop: Shop, buy: Buy
) -> None:
    await buy(order="A-1")
    before = await reserve_calendar(database, shop)
    await breaking.say(database, "merchant", {"id": shop.merchant_id}, time_zone="localtime")
    assert await reserve_calendar(database, shop) == before


async def test_what_is_given_back_leaves_the_sums(database: Database, shop: Shop, desk: Desk, buy: Buy) -> None:
    first = await buy(order="A-1")
    await buy(order="A-2")
    await settle(database, shop, 8)
    await fold_reserves(database, now=utc_now())
    await refund(desk, shop, first, None, requested_by="test", now=utc_now())
    taken = await database.fetchval("select reserve_taken from payment where id = $1", first)
    assert await due(database, shop) == [2 * RESERVE - taken]
    assert (await kept(database, shop))[1] == (1 if taken else 0)
    await adds_up(database, shop)


async def test_what_is_written_again_as_it_was_leaves_the_sums(database: Database, shop: Shop, buy: Buy) -> None:
    bought = await buy()
    await settle(database, shop, 8)
    await fold_reserves(database, now=utc_now())
    await breaking.say(database, "payment", {"id": bought}, reserve=RESERVE)
    assert await kept(database, shop) == (RESERVE, 0)


async def test_what_is_released_leaves_the_sums_and_they_are_forgotten(
    database: Database, shop: Shop, buy: Buy
) -> None:
    await buy()
    await settle(database, shop, 8)
    await fold_reserves(database, now=utc_now())
    await settle(database, shop, 181)
    assert await due(database, shop) == []
    await fold_reserves(database, now=utc_now() + timedelta(days=183))
    assert await kept(database, shop) == (Decimal(0), 0)
    rows = await database.fetchval("select count(*) from reserve_due where merchant_id = $1", shop.merchant_id)
    assert rows == 0
    await adds_up(database, shop)


async def test_an_upgrade_writes_down_what_is_missing_and_no_more(database: Database, shop: Shop, buy: Buy) -> None:
    for number in range(2):
        await buy(order=f"A-{number}")
    await settle(database, shop, 8)
    sql = (MIGRATIONS / "0408_reserves_of_before.sql").read_text()
    batches = batches_of(sql)
    assert batches is not None
    async with database.acquire() as connection:
        # As if one had settled before, and half of its reserve been given back since.
        first = await connection.fetchval("select min(id) from payment where merchant_id = $1", shop.merchant_id)
        await breaking.say(connection, "reserve_change", {"payment_id": first}, amount=Decimal("-0.20"))
        for _ in range(2):
            await run_in_batches(connection, sql, batches, "1s", lambda _: None)
    assert await due(database, shop) == [2 * RESERVE]
    await adds_up(database, shop)
