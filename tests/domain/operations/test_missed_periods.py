"""After a suspension or an outage nobody pays for several periods at once,
unless an operator wants that.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests import set_back
from tests.banks import ObedientBank
from tests.domain.subscriptions.test_lifecycle import START, started
from tests.proving import check
from tests.shopfront import MONTHLY, find_subscription
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.missed_periods import Missed, charge_all_missed, missed_periods
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.lifecycle import paid
from paydesk.domain.subscriptions.subscription_terms import Terms

DAILY = replace(MONTHLY, period=Period(1, "day"))
PLANS = pytest.mark.parametrize(("terms", "in_90_days"), [(MONTHLY, 3), (DAILY, 90)], ids=["monthly", "daily"])


@pytest.fixture
def bank() -> ObedientBank:
    return ObedientBank()


@pytest.fixture
def club(desk: Desk, shop: Shop, bank: ObedientBank) -> Till:
    return Till(desk, shop).at(bank)


@PLANS
async def test_one_period_is_charged_and_the_calendar_moves_on(
    club: Till, bank: ObedientBank, terms: Terms, in_90_days: int
) -> None:
    before = await club.subscribe(terms)
    assert before.date_next is not None
    back = before.date_next + timedelta(days=90)
    charges = 0
    while await club.charge(back):
        charges += 1
    after = await club.now(before)
    assert charges == 1
    assert len(bank.kept) == 2
    assert (after.counter, after.paid_number_counter, after.next_period) == (2, 2, 3)
    assert after.date_next is not None
    assert back < after.date_next <= back + timedelta(days=31), "the next day of its own calendar"
    assert in_90_days - 1 <= after.skipped <= in_90_days
    renewed = await club.charge_due(after)
    assert (renewed.counter, renewed.skipped) == (3, after.skipped), "and on it goes, period by period"
    assert [row["merchant_order_id"] for row in await club.payments()] == ["club-1", "club-1:2", "club-1:3"]


async def test_what_was_skipped_agrees_with_the_check(club: Till, database: Database) -> None:
    subscription = await club.subscribe(replace(DAILY, limit=5))
    assert subscription.date_next is not None
    await club.charge(subscription.date_next + timedelta(days=40))
    ahead = timedelta(days=60)
    await set_back.clock_runs_ahead(database, club.shop.merchant_id, ahead)
    found = await check(database, now=utc_now(), merchant_id=club.shop.merchant_id)
    # The bank of this test keeps no record of its own to compare with.
    assert [one.rule.statement for one in found if one.found] == []


@PLANS
async def test_an_operator_may_want_all_that_was_missed(club: Till, terms: Terms, in_90_days: int) -> None:
    before = await club.subscribe(terms)
    assert before.date_next is not None
    back = before.date_next + timedelta(days=90)
    [preview] = await missed_periods(club.desk.database, club.shop, now=back)
    await charge_all_missed(club.desk.database, COMMAND_LINE, club.shop.merchant_id, now=back)
    charges = 0
    while await club.charge(back):
        charges += 1
    assert charges == preview.periods
    assert in_90_days <= charges <= in_90_days + 1
    assert (await club.now(before)).skipped == 0


async def test_what_falls_due_after_the_choice_is_skipped_again(club: Till) -> None:
    before = await club.subscribe(DAILY)
    assert before.date_next is not None
    await charge_all_missed(club.desk.database, COMMAND_LINE, club.shop.merchant_id, now=before.date_next)
    while await club.charge(before.date_next + timedelta(days=10)):
        pass
    assert (await club.now(before)).skipped == 10


async def test_the_preview_says_what_each_choice_costs_the_customers(club: Till, database: Database) -> None:
    first = await club.subscribe(DAILY, order="a")
    await club.subscribe(replace(DAILY, price=Decimal("2.50"), sku_id="small"), order="b")
    await club.subscribe(replace(DAILY, currency="EUR", sku_id="euro"), order="c")
    assert first.date_next is not None
    later = first.date_next + timedelta(days=3, hours=1)
    euro, dollar = await missed_periods(database, club.shop, now=later)
    assert euro == Missed("EUR", 1, Decimal(10), 4, Decimal(40))
    assert dollar == Missed("USD", 2, Decimal("12.5"), 8, Decimal(50))
    assert dollar.skipped == 6
    assert await missed_periods(database, Shop(club.shop.merchant_id, live=True), now=later) == []


async def test_the_choice_is_on_record_and_for_a_merchant_that_exists(database: Database, shop: Shop) -> None:
    await charge_all_missed(database, COMMAND_LINE, shop.merchant_id, now=utc_now())
    assert await database.fetchval(
        "select count(*) from audit_entry where merchant_id = $1 and action = 'missed_periods_wanted'",
        shop.merchant_id,
    )
    with pytest.raises(NotFound):
        await charge_all_missed(database, COMMAND_LINE, 987654321, now=utc_now())


def test_the_agreed_number_of_payments_stays_and_the_end_moves() -> None:
    fresh = started(replace(DAILY, limit=3))
    late = paid(fresh, 2, at=START + timedelta(days=11, hours=1))
    assert (late.skipped, late.date_next, late.date_end) == (10, START + timedelta(days=12), None)
    over = paid(late, 3, at=START + timedelta(days=12))
    assert (over.date_next, over.counter, over.date_end) == (None, 3, START + timedelta(days=13))


def test_a_month_that_was_skipped_does_not_move_the_day_of_the_month() -> None:
    late = paid(started(MONTHLY), 2, at=START.replace(month=4, day=2))
    assert late.date_next == START.replace(month=4, day=30)
    assert paid(late, 3, at=late.date_next).date_next == START.replace(month=5, day=31)


def test_an_answer_that_is_heard_of_late_skips_nothing() -> None:
    fresh = started(DAILY)
    assert fresh.date_next is not None
    known = paid(fresh, 2, at=fresh.date_next + timedelta(days=9), tried_at=fresh.date_next)
    assert (known.skipped, known.date_next) == (0, fresh.date_next + timedelta(days=1))


def test_a_charge_on_its_day_skips_nothing() -> None:
    fresh = started(DAILY)
    for number in range(2, 30):
        assert fresh.date_next is not None
        fresh = paid(fresh, number, at=fresh.date_next + timedelta(hours=20))
    assert (fresh.skipped, fresh.counter) == (0, 29)


async def test_the_version_that_was_read_is_the_version_that_was_written(club: Till) -> None:
    subscription = await club.subscribe(DAILY)
    assert subscription.date_next is not None
    await club.charge(subscription.date_next + timedelta(days=5))
    assert (await find_subscription(club.desk.database, club.shop, subscription.id)).skipped == 5
