"""The statement of a period that is over never changes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from decimal import Decimal
from importlib.resources import files

import asyncpg
import pytest
from tests import set_back
from tests.conftest import database_at
from tests.domain.ledger.paying_out import record_payout
from tests.lengths import long
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.core.paging import EARLIEST, Page
from paydesk.database.pool import Database, connected
from paydesk.domain.ledger import balances
from paydesk.domain.ledger.balances import list_postings, statement
from paydesk.domain.ledger.closing import close_ledger
from paydesk.domain.merchants.shop import Shop

ENTRY = (
    "insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)"
    " values ($1, $2, nextval('ledger_posting_id_seq'), 'settlement', 1, 'available', 'USD', $3,"
    " posted_at($1, $2, now() - interval '1 hour')) returning at"
)


@pytest.fixture
async def session(till: Till, server_url: str) -> AsyncIterator[asyncpg.Connection]:
    """Another session than the pool's."""
    name = await till.database.fetchval("select current_database()")
    connection = await asyncpg.connect(database_at(server_url, name))
    yield connection
    await connection.close()


async def lines(database: Database, shop: Shop, until: datetime) -> list[Decimal]:
    return [one.available async for one in statement(database, shop, since=EARLIEST, until=until)]


def shop_of(till: Till) -> tuple[int, bool]:
    return till.shop.merchant_id, till.shop.live


async def database_time(database: Database) -> datetime:
    moment: datetime = await database.fetchval("select clock_timestamp()")
    return moment


@pytest.mark.parametrize("live", [True, False])
async def test_money_is_posted_when_it_is_recorded_not_when_its_bank_was_asked(till: Till, live: bool) -> None:
    shop, before = Shop(till.shop.merchant_id, live), await database_time(till.database)
    at = await till.database.fetchval(ENTRY, shop.merchant_id, live, Decimal(-5))
    assert before <= at <= await database_time(till.database)
    paid_at = utc_now() - timedelta(minutes=10)
    await record_payout(till.database, shop, Decimal(5), "USD", reference="T-1", recorded_by="operator", now=paid_at)
    posted = await till.database.fetch("select at from ledger_entry where merchant_id = $1", shop.merchant_id)
    assert min(row["at"] for row in posted) >= before


async def test_a_test_side_whose_clock_runs_ahead_lives_by_that_clock(till: Till) -> None:
    await set_back.clock_runs_ahead(till.database, till.shop.merchant_id, timedelta(days=30))
    wanted = utc_now() + timedelta(days=20)
    posted = await till.database.fetchval("select posted_at($1, false, $2)", till.shop.merchant_id, wanted)
    assert posted == wanted


@long
async def test_what_is_still_being_posted_is_waited_for(
    till: Till, session: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, shop = till.database, till.shop
    change = session.transaction()
    await change.start()
    await session.fetchval(ENTRY, shop.merchant_id, shop.live, Decimal(-7))
    over = await database_time(database)
    with monkeypatch.context() as patched:
        patched.setattr(balances, "_LOOKS", 60)
        patched.setattr(balances, "_BETWEEN_LOOKS", 0.02)
        with pytest.raises(Unavailable, match="just being recorded"):
            await lines(database, shop, over)
        with pytest.raises(Unavailable, match="just being recorded"):
            await list_postings(database, shop, Page(5, until=over))
    await change.commit()
    assert await lines(database, shop, over) == [7]
    assert [one.available for one in await list_postings(database, shop, Page(5, until=over))] == [7]
    await database.fetchval(ENTRY, shop.merchant_id, shop.live, Decimal(-9))
    assert await lines(database, shop, over) == [7], "what comes later is of another period"


async def test_a_period_that_is_not_over_is_shown_as_far_as_it_is(till: Till, session: asyncpg.Connection) -> None:
    database, shop = till.database, till.shop
    await database.fetchval(ENTRY, shop.merchant_id, shop.live, Decimal(-1))
    async with session.transaction():
        await session.fetchval(ENTRY, shop.merchant_id, shop.live, Decimal(-7))
        assert await lines(database, shop, utc_now() + timedelta(days=1)) == [1]


async def test_a_slow_reader_of_a_statement_holds_no_connection_and_no_transaction(
    till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balances, "_BATCH", 2)
    database, shop = till.database, till.shop
    posted = [
        await database.fetchval(ENTRY.replace("returning at", "returning posting_id"), *shop_of(till), Decimal(n))
        for n in range(1, 8)
    ]
    rows = statement(database, shop, since=EARLIEST, until=utc_now() + timedelta(days=1))
    read = []
    async for one in rows:
        read.append(one.id)
        assert database.get_idle_size() == database.get_size(), "while the reader has a line in hand"
        await database.fetchval(ENTRY, *shop_of(till), Decimal(100))
    assert read == posted, "each once, across pages, and nothing that was posted meanwhile"


async def test_a_transaction_that_is_left_open_ends(database_url: str) -> None:
    async with connected(database_url, most=1) as pool:
        assert await pool.fetchval("show idle_in_transaction_session_timeout") == "1min"


async def test_who_only_reads_holds_up_no_statement(till: Till, session: asyncpg.Connection) -> None:
    database, shop = till.database, till.shop
    async with session.transaction():
        await session.fetchval("select count(*) from ledger_entry")
        await database.fetchval(ENTRY, shop.merchant_id, shop.live, Decimal(-1))
        assert await lines(database, shop, await database_time(database)) == [1]
        await close_ledger(database)


def test_every_statement_that_posts_dates_it_so() -> None:
    domain = files("paydesk.domain")
    posting = [
        (path.name, inserted)
        for room in domain.iterdir()
        if room.is_dir()
        for path in room.iterdir()
        if path.name.endswith(".sql")
        for inserted in re.findall(r"insert into ledger_posting\b.*?\n\)", path.read_text(), re.DOTALL)
    ]
    assert len(posting) >= 5
    assert [name for name, inserted in posting if not re.search(r"posted_at(_by)?\(", inserted)] == []
