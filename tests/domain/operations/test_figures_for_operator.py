"""What an operator reads of live money: by sums or by payments themselves, it is the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests import set_back
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.ledger.summing_sales import sum_sales
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.figures_for_operator import (
    MANY_DISPUTES,
    MerchantFigures,
    Share,
    figures_of_all,
    figures_of_merchants,
)
from paydesk.domain.payments.desk import Desk

__all__ = ["database", "database_url"]

DECLINED, DISPUTED = "4000000000000002", "4000000000000259"

Open = Callable[[], Awaitable[Till]]


@pytest.fixture
def open_live(database: Database, vault: Vault, desk: Desk) -> Open:
    """Opens the live side of another merchant."""

    async def make() -> Till:
        merchant = await create_merchant(database, vault, name="Shop", email="o@shop.example", now=utc_now())
        await set_back.went_live(database, merchant.id)
        return Till(replace(desk, live_acquirer="simulator"), Shop(merchant.id, live=True))

    return make


async def figures(till: Till) -> MerchantFigures:
    found = await figures_of_merchants(till.database, [till.shop.merchant_id], now=utc_now())
    return found[till.shop.merchant_id]


async def sum_all(till: Till) -> None:
    while await sum_sales(till.database):
        pass


async def test_a_merchants_figures_are_the_same_before_and_after_the_sum(open_live: Open) -> None:
    till, other = await open_live(), await open_live()
    now = utc_now()
    old = await till.sell(amount="9.00", now=now - timedelta(days=3))
    await till.sell(amount="30.00", now=now - timedelta(days=2))
    await till.sell(amount="5.00", currency="EUR", now=now - timedelta(days=1))
    await till.sell(amount="70.00", now=now - timedelta(days=45))
    await till.pay(await till.order(now=now - timedelta(days=1)), DECLINED, now=now - timedelta(days=1))
    await till.give_back(old, "4.00")
    await other.sell(amount="1.00")
    before = await figures(till)
    assert [(one.currency, one.successful, one.volume, one.refunded) for one in before.sold] == [
        ("USD", 2, Decimal(39), Decimal(4)),
        ("EUR", 1, Decimal(5), Decimal(0)),
    ]
    assert (before.declined.part, before.declined.of) == (1, 4)
    assert (before.refunded.part, before.refunded.of) == (1, 3)
    assert before.last_paid_at == now - timedelta(days=1)
    assert {one.currency for one in before.held} == {"USD", "EUR"}
    await sum_all(till)
    assert await figures(till) == before
    assert (await figures(other)).successful == 1, "what was paid just now counts"


async def test_who_was_never_paid_has_no_figures(open_live: Open) -> None:
    till = await open_live()
    found = await figures(till)
    assert (list(found.sold), list(found.held), found.last_paid_at, found.disputes) == ([], [], None, 0)
    assert found.declined.rate is None


async def test_a_payment_before_many_that_failed_is_found(open_live: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paydesk.domain.operations.figures_for_operator._NEWEST", 1)
    till, now = await open_live(), utc_now()
    await till.sell(now=now - timedelta(days=4))
    await sum_all(till)
    await till.pay(await till.order(), DECLINED)
    found = (await figures(till)).last_paid_at
    assert found is not None
    assert found.date() == (now - timedelta(days=4)).date()


async def test_disputes_count_by_when_they_were_opened(open_live: Open) -> None:
    till = await open_live()
    await till.sell(number=DISPUTED)
    await till.sell()
    await read_disputes(till.desk, now=utc_now())
    assert ((await figures(till)).disputed.part, (await figures(till)).disputed.of) == (1, 2)


async def test_all_together_are_the_sum_of_each(open_live: Open) -> None:
    tills = [await open_live() for _ in range(3)]
    now = utc_now()
    before = await figures_of_all(tills[0].database, now=now)
    volume = sum((one.total.volume for one in before.sold if one.currency == "GBP"), Decimal(0))
    assert volume == 0
    for number, till in enumerate(tills):
        await till.sell(amount="10.00", currency="GBP", now=now - timedelta(days=number, minutes=1))
        await till.sell(amount="7.00", currency="GBP", now=now - timedelta(days=33))
    for _ in range(2):
        found = await figures_of_all(tills[0].database, now=now)
        (pounds,) = [one for one in found.sold if one.currency == "GBP"]
        assert (pounds.total.volume, pounds.before.volume) == (Decimal(30), Decimal(21))
        assert len(pounds.by_day) == len(pounds.by_day_before) == 30
        (held,) = [one for one in found.held if one.currency == "GBP"]
        assert held.pending + held.available + held.reserve > 0
        await sum_all(tills[0])
    assert found.crowd.live == before.crowd.live
    assert found.crowd.suspended == 0


def test_a_share_is_high_only_of_enough_payments() -> None:
    assert not Share(1, 5, MANY_DISPUTES).high
    assert not Share(1, 101, MANY_DISPUTES).high
    assert Share(1, 100, MANY_DISPUTES).high
    assert not Share(0, 0, MANY_DISPUTES).high
