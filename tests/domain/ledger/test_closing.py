"""Old entries of the live ledger are closed: no balance changes by it, and no entry is missed
or counted twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.breaking import say
from tests.conftest import database_at
from tests.domain.ledger.paying_out import record_payout
from tests.proving import check
from tests.till import Till

from paydesk import database as schema
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database, connected
from paydesk.domain.cells.numbers import IDS_OF_A_CELL
from paydesk.domain.ledger import closing
from paydesk.domain.ledger.balances import Balance, balances, queries
from paydesk.domain.ledger.closing import close_ledger, run_closing
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop

MIGRATIONS = Path(schema.__file__).parent / "migrations"
ENTRY = (
    "insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)"
    " values ($1, $2, 1, 'settlement', 1, $3, $4, $5, now())"
)
AVAILABLE = ("available", "USD")


Connect = Callable[[], AbstractAsyncContextManager[asyncpg.Connection]]


@pytest.fixture
async def another(till: Till, server_url: str) -> Connect:
    """Opens another session than the pool's, for a block."""
    url = database_at(server_url, await till.database.fetchval("select current_database()"))

    @asynccontextmanager
    async def connect() -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(url)
        try:
            yield connection
        finally:
            await connection.close()

    return connect


@pytest.fixture
def live(till: Till) -> Shop:
    """The live side of a merchant of this test's own."""
    return Shop(till.shop.merchant_id, live=True)


async def earn(connection: Any, shop: Shop, amount: int, *, account: str = "available", currency: str = "USD") -> None:
    """An entry that gives the shop so much."""
    await connection.execute(ENTRY, shop.merchant_id, shop.live, account, currency, Decimal(-amount))


async def closed(database: Database, shop: Shop) -> dict[tuple[str, str], Decimal]:
    rows = await database.fetch("select * from balance_closing where merchant_id = $1", shop.merchant_id)
    return {(row["account"], row["currency"]): -row["amount"] for row in rows}


async def close_all(database: Database) -> None:
    """Close what is written by now; whoever else has a transaction on the server may hold that up
    for a moment.
    """
    newest = await database.fetchval("select last_value from ledger_entry_id_seq")
    while await database.fetchval("select closed_id from ledger_horizon") < newest:
        await asyncio.sleep(0.02)
        await close_ledger(database)


async def is_proven(database: Database, shop: Shop) -> bool:
    found = await check(database, now=utc_now(), merchant_id=shop.merchant_id)
    return next(finding.found for finding in found if finding.rule.statement == "closings_agree") == 0


async def test_a_balance_is_the_same_before_and_after_it_is_closed(till: Till, live: Shop) -> None:
    database = till.database
    expected = {"EUR": Decimal(0), "USD": Decimal(0)}
    for number in range(1, 6):
        for currency in expected:
            await earn(database, live, number, currency=currency)
            expected[currency] += number
        await earn(database, live, 100, account="reserve")
        assert {one.currency: one.available for one in await balances(database, live)} == expected
        await close_ledger(database)
        assert {one.currency: one.available for one in await balances(database, live)} == expected
        assert await is_proven(database, live)
    await close_all(database)
    assert not await close_ledger(database), "there is nothing new"
    assert await closed(database, live) == {
        ("available", "EUR"): 15,
        ("available", "USD"): 15,
        ("reserve", "USD"): 500,
    }


async def test_an_entry_that_is_still_being_written_is_waited_for(till: Till, live: Shop, another: Connect) -> None:
    database = till.database
    await earn(database, live, 1)
    await close_ledger(database)
    async with another() as slow:
        async with slow.transaction():
            await earn(slow, live, 10)
            await earn(database, live, 100)
            await close_ledger(database)
            assert not await close_ledger(database), "a smaller id may still appear"
        assert await balances(database, live) == [Balance("USD", Decimal(0), Decimal(111), Decimal(0))]
        await close_all(database)
    assert await closed(database, live) == {("available", "USD"): 111}
    assert await balances(database, live) == [Balance("USD", Decimal(0), Decimal(111), Decimal(0))]


async def test_a_session_that_has_an_id_but_has_written_nothing_yet_is_waited_for(
    till: Till, live: Shop, another: Connect
) -> None:
    database = till.database
    await close_ledger(database)
    async with another() as slow:
        async with slow.transaction():
            early = await slow.fetchval("select nextval('ledger_entry_id_seq')")
            await earn(database, live, 100)
            await close_ledger(database)
            assert not await close_ledger(database)
            await slow.execute(
                "insert into ledger_entry (merchant_id, live, id, posting_id, kind, payment_id, account, currency,"
                " amount, at) values ($1, true, $2, 1, 'settlement', 1, 'available', 'USD', -10, now())",
                live.merchant_id,
                early,
            )
        await close_all(database)
    assert await closed(database, live) == {("available", "USD"): 110}
    assert await is_proven(database, live)


async def test_the_first_entry_that_a_sequence_gives_an_id_is_closed_like_others(
    own_database_url: str, vault: Vault
) -> None:
    """In a new database (as code of before has left it, too), and in a cell that has gone on in a
    higher range of ids.
    """
    async with connected(own_database_url, most=3) as database:
        merchant = await create_merchant(database, vault, name="New", email="o@shop.example", now=utc_now())
        live = shop_of(merchant, live=True)
        begins = await database.fetchval("select last_value from ledger_entry_id_seq")
        await say(database, "ledger_horizon", {"single": True}, seen_id=begins, closed_id=begins)
        for earned in (10, 20):
            for _ in range(3):
                await close_ledger(database)
            newest = await queries.newest_posting(database)
            assert await database.fetchval("select nextval('ledger_posting_id_seq')") > newest
            await earn(database, live, 10)
            await close_all(database)
            assert await closed(database, live) == {("available", "USD"): earned}
            assert [one.available for one in await balances(database, live)] == [Decimal(earned)]
            assert await is_proven(database, live)
            first = 899 * IDS_OF_A_CELL + IDS_OF_A_CELL // 2 + 1
            for sequence in ("ledger_entry_id_seq", "ledger_posting_id_seq"):
                await database.execute(f"alter sequence {sequence} minvalue {first} start {first} restart")


@pytest.mark.parametrize("range_of_ids", [0, 5])
async def test_an_upgrade_has_the_entry_in_balances_that_code_of_before_has_left_out(
    own_database_url: str, vault: Vault, range_of_ids: int
) -> None:
    async with connected(own_database_url, most=3) as database:
        shops = []
        for name in ("First", "Second"):
            made = await create_merchant(database, vault, name=name, email="o@shop.example", now=utc_now())
            shops.append(shop_of(made, live=True))
        begins = range_of_ids * IDS_OF_A_CELL + 1
        await database.execute(f"alter sequence ledger_entry_id_seq minvalue {begins} start {begins} restart")
        await say(database, "ledger_horizon", {"single": True}, seen_id=begins, closed_id=begins)
        for amount in (10, 20):
            for shop in shops:
                await earn(database, shop, amount)
        await close_all(database)
        assert [await closed(database, shop) for shop in shops] == [{AVAILABLE: 20}, {AVAILABLE: 30}]
        assert not await is_proven(database, shops[0])
        for _ in range(2):
            async with database.acquire() as connection, connection.transaction():
                await connection.execute((MIGRATIONS / "0550_first_entries_in_balances.sql").read_text())
            assert [await closed(database, shop) for shop in shops] == [{AVAILABLE: 30}] * 2
        await earn(database, shops[0], 5)
        assert [(await balances(database, shop))[0].available for shop in shops] == [Decimal(35), Decimal(30)]
        assert [await is_proven(database, shop) for shop in shops] == [True, True]


async def test_who_only_reads_holds_up_nothing_however_long(till: Till, live: Shop, another: Connect) -> None:
    database = till.database
    async with another() as reader, reader.transaction(isolation="repeatable_read"):
        await reader.fetchval("select count(*) from ledger_entry")
        await earn(database, live, 3)
        await close_ledger(database)
        assert await close_ledger(database)
        assert await closed(database, live) == {("available", "USD"): 3}


async def test_any_number_of_lookers_let_it_advance(till: Till, live: Shop, another: Connect) -> None:
    """Some transaction is open all the time, and somebody looks whenever another begins."""
    database = till.database
    await close_all(database)
    async with another() as one, another() as other:
        open_now, closings = one.transaction(), 0
        await open_now.start()
        await earn(one, live, 1)
        for number in range(8):
            newer, session = (other, one)[number % 2], (one, other)[number % 2]
            following = newer.transaction()
            await following.start()
            await earn(newer, live, 1)
            await close_ledger(database)
            await open_now.commit()
            for _ in range(3):
                closings += await close_ledger(database)
            open_now = following
            assert session is not newer
        await open_now.commit()
    assert closings >= 3
    await close_all(database)
    assert await closed(database, live) == {("available", "USD"): 9}


async def test_closing_while_many_write_counts_each_entry_once(till: Till, live: Shop, another: Connect) -> None:
    database, stop = till.database, asyncio.Event()

    async def write() -> None:
        async with another() as connection:
            for _ in range(40):
                async with connection.transaction():
                    await earn(connection, live, 1)
                    await asyncio.sleep(0)

    async def close() -> None:
        while not stop.is_set():
            await close_ledger(database)
            seen = {one.available for one in await balances(database, live)}
            written = await database.fetchval(
                "select count(*) from ledger_entry where merchant_id = $1", live.merchant_id
            )
            assert seen <= {Decimal(count) for count in range(int(written) + 1)}
            await asyncio.sleep(0)

    closers = [asyncio.create_task(close()) for _ in range(2)]
    await asyncio.gather(*(write() for _ in range(4)))
    stop.set()
    await asyncio.gather(*closers)
    await close_all(database)
    assert await closed(database, live) == {("available", "USD"): 160}
    assert await balances(database, live) == [Balance("USD", Decimal(0), Decimal(160), Decimal(0))]


async def test_a_payout_comes_out_of_closed_money_and_of_new_money_together(till: Till, live: Shop) -> None:
    database, now = till.database, utc_now()
    await earn(database, live, 30)
    await close_all(database)
    await earn(database, live, 12)
    with pytest.raises(Conflict, match=r"42\.00"):
        await record_payout(database, live, Decimal("42.01"), "USD", reference="T-1", recorded_by="operator", now=now)
    await record_payout(database, live, Decimal(42), "USD", reference="T-2", recorded_by="operator", now=now)
    assert [one.available for one in await balances(database, live)] == [0]


async def test_a_test_side_is_never_closed(till: Till, live: Shop) -> None:
    database, test = till.database, till.shop
    await earn(database, test, 5)
    await close_all(database)
    assert await closed(database, test) == {}
    assert [one.available for one in await balances(database, test)] == [5]
    assert await balances(database, live) == []


async def test_the_worker_closes_and_stops_when_told(till: Till, live: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "PAUSE", 0.01)
    database, stop = till.database, asyncio.Event()
    await earn(database, live, 7)
    await close_ledger(database)
    running = asyncio.create_task(run_closing(database, stop))
    while not await closed(database, live):
        assert not running.done()
        await asyncio.sleep(0.02)
    stop.set()
    await running
    assert await closed(database, live) == {("available", "USD"): 7}
