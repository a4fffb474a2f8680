"""A test side that is started anew while something is under way: what is gone is recorded nowhere,
and nobody is alarmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from tests.databases import until_waiting
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.errors import NotFound
from paydesk.domain.payments import storing
from paydesk.domain.subscriptions.packages import agree_package
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk.domain.test_clock.resetting import queries, reset_test_side

_Answer = TypeVar("_Answer")


class Slow(PassingAcquirer):
    """A bank that does what it is asked; meanwhile the merchant's test side is started anew."""

    def __init__(self, till: Till) -> None:
        super().__init__(till.honest)
        self._till = till

    async def _move(self, key: str, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        answer = await call()
        await reset_test_side(self._till.database, self._till.shop.merchant_id)
        return answer


@pytest.fixture
def till(subscriber: Till) -> Till:
    return subscriber


async def is_empty(till: Till) -> bool:
    """Nothing was recorded, and there is nothing for an operator to look at."""
    return not [row for table in ("payment", "subscription", "alarm") for row in await till.rows(table)]


@pytest.mark.parametrize("terms", [None, MONTHLY])
async def test_a_payment_whose_order_is_gone_is_no_alarm(till: Till, terms: Terms | None) -> None:
    link = await till.order(terms=terms)
    await till.at(Slow(till)).pay(link)
    assert await is_empty(till)


async def test_a_renewal_whose_subscription_is_gone_is_no_alarm(till: Till) -> None:
    begun = await till.subscribe()
    await till.at(Slow(till)).charge(begun.date_next)
    assert await is_empty(till)


async def test_a_refund_whose_payment_is_gone_is_not_found(till: Till) -> None:
    payment_id = await till.sell()
    with pytest.raises(NotFound, match="started anew"):
        await till.at(Slow(till)).give_back(payment_id)
    assert await is_empty(till)


async def test_a_checkout_whose_package_goes_meanwhile_has_it_anew(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    agreed = list[int]()

    async def agree_and_lose(*asked: Any, **named: Any) -> int:
        agreed.append(await agree_package(*asked, **named))
        if len(agreed) == 1:
            await reset_test_side(till.database, till.shop.merchant_id)
        return agreed[-1]

    monkeypatch.setattr(storing, "agree_package", agree_and_lose)
    link = await till.order(terms=MONTHLY)
    assert (await till.find(link)).terms == MONTHLY


@pytest.mark.parametrize("terms", [None, MONTHLY])
async def test_a_checkout_that_goes_while_somebody_presses_pay_is_not_found(till: Till, terms: Terms | None) -> None:
    link, database = await till.order(terms=terms), till.database
    async with database.acquire() as connection, connection.transaction():
        await queries.delete_checkouts(connection, merchant_id=till.shop.merchant_id, most=10)
        paying = asyncio.create_task(till.pay(link))
        await until_waiting(database, paying)
    with pytest.raises(NotFound, match="no checkout"):
        await paying
    assert await is_empty(till)
    assert not till.standings(), "no bank was asked"
