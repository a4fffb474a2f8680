"""How captured money becomes available, and what a merchant can see of it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from tests import breaking, set_back
from tests.domain.ledger.paying_out import record_payout

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.paging import EARLIEST, LATEST, Page
from paydesk.database.pool import Database
from paydesk.domain.ledger.balances import (
    Balance,
    PostingKind,
    balances,
    count_postings,
    list_postings,
    reserve_calendar,
    statement,
)
from paydesk.domain.ledger.payouts import list_payouts
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund

Buy = Callable[..., Awaitable[int]]
NET, RESERVE, FEES = Decimal("8.90"), Decimal("0.50"), Decimal("0.60")


async def settle(database: Database, shop: Shop, days: float) -> int:
    """The worker's look at the shop, some days from now."""
    moved = 0
    at = utc_now() + timedelta(days=days)
    while count := await settle_due(database, real_now=utc_now(), merchant_id=shop.merchant_id, at=at):
        moved += count
    return moved


async def held(database: Database, shop: Shop) -> Balance:
    (balance,) = await balances(database, shop)
    return balance


async def test_captured_money_is_pending_for_seven_days(database: Database, shop: Shop, buy: Buy) -> None:
    await buy()
    assert await settle(database, shop, 6.99) == 0
    assert await held(database, shop) == Balance("USD", NET, Decimal(0), RESERVE)
    assert await settle(database, shop, 7.01) == 1
    assert await held(database, shop) == Balance("USD", Decimal(0), NET, RESERVE)


async def test_the_reserve_is_released_after_180_days_once(database: Database, shop: Shop, buy: Buy) -> None:
    before = utc_now()
    await buy()
    after = utc_now()
    assert await settle(database, shop, 179.9) == 1
    (release,) = await reserve_calendar(database, shop)
    assert (release.currency, release.amount) == ("USD", RESERVE)
    assert before.date() <= release.day - timedelta(days=180) <= after.date()
    assert await settle(database, shop, 181) == 1
    assert await settle(database, shop, 400) == 0
    assert await held(database, shop) == Balance("USD", Decimal(0), NET + RESERVE, Decimal(0))
    assert await reserve_calendar(database, shop) == []


async def test_a_merchants_own_delays_count(database: Database, shop: Shop, buy: Buy) -> None:
    await breaking.say(database, "merchant", {"id": shop.merchant_id}, settlement_days=2, reserve_days=30)
    await buy()
    assert await settle(database, shop, 2.01) == 1
    assert await settle(database, shop, 30.01) == 1


async def test_workers_at_the_same_time_settle_each_payment_once(database: Database, shop: Shop, buy: Buy) -> None:
    for number in range(8):
        await buy(order=f"A-{number}")
    at = utc_now() + timedelta(days=8)
    looks = (settle_due(database, real_now=utc_now(), merchant_id=shop.merchant_id, at=at, most=3) for _ in range(8))
    moved = sum(await asyncio.gather(*looks))
    moved += await settle(database, shop, 8)
    assert moved == 8
    assert (await held(database, shop)).available == 8 * NET


async def test_money_of_a_live_side_is_not_moved_by_a_test_clock(database: Database, shop: Shop, buy: Buy) -> None:
    payment_id = await buy()
    await set_back.clock_runs_ahead(database, shop.merchant_id, timedelta(days=30))
    await settle_due(database, real_now=utc_now())
    row = await database.fetchrow("select settled_at from payment where id = $1", payment_id)
    assert row is not None
    assert row["settled_at"] is not None
    other = Shop(shop.merchant_id, live=True)
    assert await balances(database, other) == []


async def test_a_refund_comes_out_of_pending_and_then_out_of_available(
    desk: Desk, database: Database, shop: Shop, buy: Buy
) -> None:
    first = await buy(order="A-1")
    await refund(desk, shop, first, None, requested_by="api", now=utc_now())
    # All of the net and of the reserve, and the fees, which Paydesk keeps.
    assert await held(database, shop) == Balance("USD", Decimal(0), -FEES, Decimal(0))
    second = await buy(order="A-2")
    await settle(database, shop, 8)
    await refund(desk, shop, second, Decimal("5.00"), requested_by="api", now=utc_now())
    assert await held(database, shop) == Balance("USD", Decimal(0), NET - FEES - Decimal("4.75"), Decimal("0.25"))


async def test_many_partial_refunds_take_what_one_whole_refund_takes(
    desk: Desk, database: Database, shop: Shop, buy: Buy
) -> None:
    payment_id = await buy()
    for amount in ("3.33", "3.33", "3.33", "0.01"):
        await refund(desk, shop, payment_id, Decimal(amount), requested_by="api", now=utc_now())
    assert await held(database, shop) == Balance("USD", Decimal(0), -FEES, Decimal(0))


async def test_the_statement_of_a_period_adds_up_to_the_balances_at_its_ends(
    desk: Desk, database: Database, shop: Shop, buy: Buy
) -> None:
    moments: list[datetime] = [utc_now()]
    first = await buy(order="A-1")
    moments.append(utc_now())
    await refund(desk, shop, first, Decimal("2.00"), requested_by="api", now=utc_now())
    await buy(order="A-2")
    moments.append(utc_now())
    await settle(database, shop, 8)
    moments.append(LATEST)
    for begin in range(len(moments)):
        for end in range(begin, len(moments)):
            await _adds_up(database, shop, moments[begin], moments[end])


async def _adds_up(database: Database, shop: Shop, since: datetime, until: datetime) -> None:
    lines = [posting async for posting in statement(database, shop, since=since, until=until)]
    for line in lines:
        assert line.gross + line.fees == line.pending + line.available + line.reserve
    for name in ("pending", "available", "reserve"):
        written = await database.fetchval(
            "select coalesce(-sum(amount), 0) from ledger_entry"
            " where merchant_id = $1 and not live and account = $2 and at >= $3 and at < $4",
            shop.merchant_id,
            name,
            since,
            until,
        )
        assert sum(getattr(line, name) for line in lines) == written
    assert await count_postings(database, shop, since=since, until=until) == len(lines)


async def test_postings_are_listed_newest_first_page_by_page(
    desk: Desk, database: Database, shop: Shop, buy: Buy
) -> None:
    payment_id = await buy()
    await refund(desk, shop, payment_id, Decimal("1.00"), requested_by="api", now=utc_now())
    everything = await list_postings(database, shop, Page(10))
    assert [posting.kind for posting in everything] == [PostingKind.REFUND, PostingKind.CAPTURE]
    (newest,) = await list_postings(database, shop, Page(1))
    assert newest == everything[0]


async def test_another_merchant_sees_nothing_of_it(database: Database, shop: Shop, other_shop: Shop, buy: Buy) -> None:
    await buy()
    assert await balances(database, other_shop) == []
    assert await list_postings(database, other_shop, Page(10)) == []
    assert await count_postings(database, other_shop, since=EARLIEST, until=LATEST) == 0


class TestPayouts:
    async def test_a_payout_leaves_the_available_balance(self, database: Database, shop: Shop, buy: Buy) -> None:
        await buy()
        await settle(database, shop, 8)
        payout = await record_payout(
            database, shop, Decimal("5.00"), "USD", reference="TRF-1", recorded_by="op", now=utc_now()
        )
        assert await list_payouts(database, shop, Page(10)) == [payout]
        assert (await held(database, shop)).available == NET - 5

    async def test_no_more_than_is_available_is_paid_out(self, database: Database, shop: Shop, buy: Buy) -> None:
        await buy()
        with pytest.raises(Conflict, match="only 0 USD are available"):
            await record_payout(
                database, shop, Decimal("5.00"), "USD", reference="TRF-1", recorded_by="op", now=utc_now()
            )
        assert await list_payouts(database, shop, Page(10)) == []

    async def test_payouts_at_the_same_time_spend_a_balance_once(
        self, database: Database, shop: Shop, buy: Buy
    ) -> None:
        await buy()
        await settle(database, shop, 8)

        async def attempt(number: int) -> bool:
            try:
                await record_payout(
                    database, shop, Decimal("3.00"), "USD", reference=f"T{number}", recorded_by="op", now=utc_now()
                )
            except Conflict:
                return False
            return True

        assert sum(await asyncio.gather(*(attempt(number) for number in range(8)))) == 2
        assert (await held(database, shop)).available == NET - 6

    @pytest.mark.parametrize("reference", ["", "  ", "x" * 141, "a\x00b", "a\nb"])
    async def test_a_payout_needs_a_reference(self, database: Database, shop: Shop, reference: str) -> None:
        with pytest.raises(Malformed):
            await record_payout(
                database, shop, Decimal("1.00"), "USD", reference=reference, recorded_by="op", now=utc_now()
            )
