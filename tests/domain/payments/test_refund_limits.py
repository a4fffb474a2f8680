"""What whoever asks may give back of a payment and in a day, however many ask at once."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.shopfront import buy

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.domain.accounts.forgetting import forget_past_entries
from paydesk.domain.payments.refundable import OverLimit, RefundLimits
from paydesk.domain.payments.refunding import Refund, refund

LIMITS = RefundLimits(of_payment=Decimal(500), of_day=Decimal(800))


class Till:
    """Sells, and gives back within limits."""

    def __init__(self, till: Any) -> None:
        self.till, self.database = till, till.desk.database

    async def paid(self, amount: str, order: str = "A-1", **changes: Any) -> int:
        return await buy(self.till.desk, self.till.shop, order, amount=amount, **changes)

    async def refund(
        self, payment_id: int, amount: str | None, *, who: str = "person 1", now: datetime | None = None
    ) -> Refund:
        asked = None if amount is None else Decimal(amount)
        return await refund(
            self.till.desk,
            self.till.shop,
            payment_id,
            asked,
            requested_by=who,
            limits=LIMITS,
            now=now or utc_now(),
        )

    async def given_back(self) -> Decimal:
        total = "select coalesce(sum(refunded + refunding), 0) from payment where merchant_id = $1"
        return Decimal(await self.database.fetchval(total, self.till.shop.merchant_id))


@pytest.fixture
def counter(till: Any, bank: Bank) -> Till:
    return Till(till)


async def test_parallel_parts_of_one_payment_are_no_way_around_its_limit(counter: Till) -> None:
    payment_id = await counter.paid("900.00")
    ended = await asyncio.gather(*(counter.refund(payment_id, "200.00") for _ in range(4)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in ended) == ["OverLimit", "OverLimit", "Refund", "Refund"], ended
    assert await counter.given_back() == 400


async def test_parallel_refunds_of_many_payments_are_no_way_around_the_days_limit(counter: Till) -> None:
    now = utc_now()
    payments = [await counter.paid("300.00", f"many-{n}") for n in range(5)]
    ended = await asyncio.gather(*(counter.refund(one, None, now=now) for one in payments), return_exceptions=True)
    assert sorted(type(one).__name__ for one in ended) == ["OverLimit"] * 3 + ["Refund"] * 2, ended
    assert await counter.given_back() == 600
    left = [one for one, end in zip(payments, ended, strict=True) if isinstance(end, OverLimit)]
    with pytest.raises(OverLimit, match=r"800\.00 USD in a day"):
        await counter.refund(left[0], "200.01", now=now)
    await counter.refund(left[0], "200.00", now=now)
    await counter.refund(left[1], "300.00", who="person 2", now=now)
    await counter.refund(left[2], "300.00", now=now + timedelta(days=1))


async def test_limits_are_worth_about_the_same_in_every_currency(counter: Till) -> None:
    payment_id = await counter.paid("60000", currency="JPY")
    with pytest.raises(OverLimit, match="50000 JPY of one payment"):
        await counter.refund(payment_id, "50001")
    await counter.refund(payment_id, "50000")
    other = await counter.paid("310.00", "dollars")
    with pytest.raises(OverLimit):
        await counter.refund(other, "301.00")
    await counter.refund(other, "300.00")


async def test_past_days_are_forgotten(counter: Till) -> None:
    now = utc_now()
    await counter.refund(await counter.paid("10.00"), None, now=now)
    days = "select count(*) from refund_day where merchant_id = $1"
    await forget_past_entries(counter.database, now=now)
    assert await counter.database.fetchval(days, counter.till.shop.merchant_id) == 1
    await forget_past_entries(counter.database, now=now + timedelta(days=4))
    assert await counter.database.fetchval(days, counter.till.shop.merchant_id) == 0
