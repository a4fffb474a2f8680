"""What whoever asks may give back of a payment and in a day, however many ask at once."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from tests.shopfront import buy, give_back
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.domain.accounts.housekeeping import forget_past_entries
from paydesk.domain.payments.refundable import OverLimit, RefundLimits
from paydesk.domain.payments.refunding import Refund

LIMITS = RefundLimits(of_payment=Decimal(500), of_day=Decimal(800))


async def give(
    till: Till, payment_id: int, amount: str | None, *, who: str = "person 1", now: datetime | None = None
) -> Refund:
    """Somebody gives back within limits."""
    return await give_back(till.desk, till.shop, payment_id, amount, by=who, now=now, limits=LIMITS)


async def given_back(till: Till) -> Decimal:
    """What the merchant gave back of all."""
    total = "select coalesce(sum(refunded + refunding), 0) from payment where merchant_id = $1"
    return Decimal(await till.desk.database.fetchval(total, till.shop.merchant_id))


async def test_parallel_parts_of_one_payment_are_no_way_around_its_limit(till: Till) -> None:
    payment_id = await buy(till.desk, till.shop, amount="900.00")
    ended = await asyncio.gather(*(give(till, payment_id, "200.00") for _ in range(4)), return_exceptions=True)
    assert sorted(type(one).__name__ for one in ended) == ["OverLimit", "OverLimit", "Refund", "Refund"], ended
    assert await given_back(till) == 400


async def test_parallel_refunds_of_many_payments_are_no_way_around_the_days_limit(till: Till) -> None:
    now = utc_now()
    payments = [await buy(till.desk, till.shop, f"many-{n}", amount="300.00") for n in range(5)]
    ended = await asyncio.gather(*(give(till, one, None, now=now) for one in payments), return_exceptions=True)
    assert sorted(type(one).__name__ for one in ended) == ["OverLimit"] * 3 + ["Refund"] * 2, ended
    assert await given_back(till) == 600
    left = [one for one, end in zip(payments, ended, strict=True) if isinstance(end, OverLimit)]
    with pytest.raises(OverLimit, match=r"800\.00 USD in a day"):
        await give(till, left[0], "200.01", now=now)
    await give(till, left[0], "200.00", now=now)
    await give(till, left[1], "300.00", who="person 2", now=now)
    await give(till, left[2], "300.00", now=now + timedelta(days=1))


async def test_limits_are_worth_about_the_same_in_every_currency(till: Till) -> None:
    payment_id = await buy(till.desk, till.shop, amount="60000", currency="JPY")
    with pytest.raises(OverLimit, match="50000 JPY of one payment"):
        await give(till, payment_id, "50001")
    await give(till, payment_id, "50000")
    other = await buy(till.desk, till.shop, "dollars", amount="310.00")
    with pytest.raises(OverLimit):
        await give(till, other, "301.00")
    await give(till, other, "300.00")


async def test_past_days_are_forgotten(till: Till) -> None:
    now = utc_now()
    await give(till, await buy(till.desk, till.shop, amount="10.00"), None, now=now)
    days = "select count(*) from refund_day where merchant_id = $1"
    await forget_past_entries(till.desk.database, now=now)
    assert await till.desk.database.fetchval(days, till.shop.merchant_id) == 1
    await forget_past_entries(till.desk.database, now=now + timedelta(days=4))
    assert await till.desk.database.fetchval(days, till.shop.merchant_id) == 0
