"""Where an operator begins: what waits, or that all is clear, and the money of all merchants."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from tests import breaking, set_back
from tests.web.account.conftest import Visitor, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.machinery import run_pulse, workers
from paydesk.domain.payments.desk import Desk

OVERVIEW = "/operator/overview"
POOR = "4000000000009995"


@pytest.fixture
def live(desk: Desk, owner: Visitor) -> Seller:
    """The live side of a shop."""
    seller = seller_of(replace(desk, live_acquirer="simulator"), owner)
    return replace(seller, shop=Shop(seller.shop.merchant_id, live=True))


@pytest.fixture
async def at_work(database: Database) -> AsyncIterator[None]:
    """A worker is alive, and nothing of other tests waits."""
    await breaking.no_alarms(database)
    await set_back.no_pingbacks(database)
    stop = asyncio.Event()
    pulse = asyncio.create_task(run_pulse(database, stop))
    while not await workers(database):
        await asyncio.wait([pulse], timeout=0.02)
    yield
    stop.set()
    await pulse


@pytest.mark.usefixtures("at_work")
async def test_what_waits_is_named_and_nothing_else(operator: Visitor, database: Database) -> None:
    shown = text_of(await operator.see(OVERVIEW))
    assert "Alarms 1" not in shown
    assert "No background work is done" not in shown
    await raise_alarms(database, [Alarm(AlarmKind.set_aside, "payment 8", "no such currency")], now=utc_now())
    page = await operator.see(OVERVIEW)
    assert "Waiting for a hand Alarms 1" in text_of(page)
    assert 'href="/operator/alarms"' in page.text
    assert "All clear" not in page.text


async def test_all_is_clear_where_nothing_waits(operator: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object, **__: object) -> list[object]:
        return []

    monkeypatch.setattr("paydesk.web.operator.overview._needs", nothing)
    shown = text_of(await operator.see(OVERVIEW))
    assert "All clear" in shown
    assert "Nothing waits for a hand" in shown
    assert "Waiting for a hand" not in shown


async def test_without_a_worker_nothing_is_clear(operator: Visitor, database: Database) -> None:
    assert await workers(database) == []
    shown = text_of(await operator.see(OVERVIEW))
    assert "No background work is done" in shown
    assert "All clear" not in shown


async def test_the_money_of_all_merchants_is_drawn_and_told(operator: Visitor, live: Seller) -> None:
    await set_back.went_live(live.database, live.shop.merchant_id)
    await live.sell(amount="4321.00", now=utc_now() - timedelta(days=2))
    page = await operator.see(OVERVIEW)
    text = text_of(page)
    assert "uplot" in page.text
    assert re.search(r"Volume [\d,.]+\sUSD", text), text
    assert "The same as a table" in text
    assert "Held for merchants Available" in text
    assert (await operator.see(f"{OVERVIEW}?currency=%00")).status_code == 200


async def test_a_merchants_volume_balance_last_payment_and_risk_stand_in_list_and_page(
    operator: Visitor, live: Seller
) -> None:
    merchant_id = live.shop.merchant_id
    await set_back.went_live(live.database, merchant_id)
    for number in range(20):
        await live.sell(amount="10.00", number=POOR if number % 2 else "4242424242424242")
    await live.sell(amount="5.00", now=utc_now() - timedelta(days=40))
    listed = text_of(await operator.see(f"/operator/merchants?q={merchant_id}"))
    assert re.search(r"Live 100\.00\sUSD 0\.00\sUSD 50% 0% 0% just now", listed), listed
    page = await operator.see(f"/operator/merchants/{merchant_id}")
    shown = text_of(page)
    assert re.search(r"Volume 100\.00\sUSD Last payment just now", shown), shown
    assert "Declined 50% High 10 of 20" in shown
    assert "Disputed 0% 0 of 10" in shown
    assert "uplot" in page.text


async def test_a_merchant_without_payments_has_dashes(operator: Visitor, owner: Visitor) -> None:
    merchant_id = owner.merchant_path.split("/")[2]
    listed = text_of(await operator.see(f"/operator/merchants?q={merchant_id}"))
    assert "Never live – – – – – –" in listed
    assert "Nobody paid yet." in text_of(await operator.see(f"/operator/merchants/{merchant_id}"))
