"""What the simulated bank knows again by a key: as acquirers do, for a day,
and of the very same purchase only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.conftest import open_counter
from tests.adapters.acquirers.counters import TEN, Counter
from tests.standings import standings

from paydesk.adapters.acquirers.interface import Approved, Declined, KeyUsed, Moved, is_earlier
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind

DECLINED = "4000000000000002"
MARK = Mark("here", 1, "tag", live=False, kind=PurchaseKind.ORDER, order="order-1", payment_id=18, attempt=1)


@pytest.fixture(params=["in process", "remote"])
async def bank(request: pytest.FixtureRequest, street: Any, record: Any, clock: Any) -> AsyncIterator[Any]:
    async with open_counter(request, request.param) as opened:
        yield opened


def _taken(bank: Any) -> Decimal:
    return sum((one.net for one in standings(bank.record.operations()).values()), Decimal(0))


@pytest.mark.parametrize("number", ["4242424242424242", DECLINED])
async def test_the_same_purchase_gets_its_first_answer(bank: Counter, number: str) -> None:
    purchase = bank.purchase(number, mark=MARK)
    first = await bank.acquirer.authorize(purchase)
    bank.clock.now += timedelta(hours=23)
    later = replace(purchase, not_after=bank.clock.now + timedelta(minutes=1))
    again = await bank.acquirer.authorize(later)
    assert again == first
    assert isinstance(again, Approved | Declined)
    assert is_earlier(again, later.not_after)
    assert not is_earlier(first, purchase.not_after)


@pytest.mark.parametrize(
    "changed",
    [{"amount": Decimal("10.01")}, {"currency": "EUR"}, {"capture": False}, {"mark": replace(MARK, epoch=2)}],
)
async def test_other_parameters_are_refused(bank: Counter, changed: dict[str, Any]) -> None:
    purchase = bank.purchase(mark=MARK)
    await bank.acquirer.authorize(purchase)
    with pytest.raises(KeyUsed):
        await bank.acquirer.authorize(replace(purchase, **changed))
    assert _taken(bank) == TEN


async def test_a_key_is_forgotten_after_its_lifetime(bank: Counter) -> None:
    purchase = bank.purchase(mark=MARK)
    await bank.acquirer.authorize(purchase)
    bank.clock.now += bank.acquirer.key_lifetime + timedelta(seconds=1)
    later = replace(purchase, not_after=bank.clock.now + timedelta(minutes=1))
    assert not is_earlier(await bank.acquirer.authorize(later), later.not_after)
    assert _taken(bank) == 2 * TEN


async def test_the_list_shows_a_charge_before_a_newer_decline(bank: Counter) -> None:
    purchase = bank.purchase(mark=MARK)
    first = await bank.acquirer.authorize(purchase)
    bank.clock.now += bank.acquirer.key_lifetime + timedelta(seconds=1)
    declined = bank.purchase(DECLINED, key=purchase.key, not_after=bank.clock.now + timedelta(minutes=1))
    assert isinstance(await bank.acquirer.authorize(declined), Declined)
    earlier = await bank.acquirer.look_back(purchase.key)
    assert earlier is not None
    assert earlier.finding == first


async def test_a_refunds_key_is_forgotten_too(bank: Counter) -> None:
    purchase = bank.purchase(mark=MARK)
    approved = await bank.acquirer.authorize(purchase)
    assert isinstance(approved, Approved)
    made = await bank.acquirer.refund("back", approved.reference, Decimal(4), "USD")
    assert await bank.acquirer.refund("back", approved.reference, Decimal(4), "USD") == made
    bank.clock.now += bank.acquirer.key_lifetime + timedelta(seconds=1)
    assert await bank.acquirer.find_movement("back", purchase.key, approved.reference) == Moved(made)
    assert await bank.acquirer.refund("back", approved.reference, Decimal(4), "USD") != made
    assert _taken(bank) == Decimal(2)
