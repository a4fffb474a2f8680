"""`paydesk check` finds what must not be of coupons."""

from __future__ import annotations

from decimal import Decimal

from tests import breaking
from tests.domain.coupons.test_coupons import coupon, subscribed
from tests.till import Till


async def broken(till: Till) -> set[str]:
    return {said.partition(":")[0] for said in await till.problems()}


async def test_a_coupon_that_was_used_too_often_is_found(till: Till) -> None:
    made = await coupon(till, percent="50", most_uses="2")
    for order in ("club-1", "club-2"):
        await subscribed(till, order=order)
    assert await broken(till) == set()
    await breaking.say(till.database, "coupon", {"id": made.id}, most_uses=1)
    assert await broken(till) == {"coupons_kept"}


async def test_a_payment_that_has_not_used_its_coupon_is_found(till: Till) -> None:
    await coupon(till)
    await subscribed(till)
    await breaking.forget(till.database, till.shop.merchant_id, "coupon_use")
    assert await broken(till) == {"coupons_kept"}


async def test_a_renewal_at_another_price_than_the_coupon_leaves_is_found(till: Till) -> None:
    await coupon(till, percent="50", periods="2")
    subscription = await subscribed(till)
    for _ in range(2):
        subscription = await till.charge_due(subscription)
    assert await broken(till) == set()
    for number, amount in ((1, Decimal(10)), (2, Decimal(5))):
        paid = (await till.payments())[number]
        await breaking.say(till.database, "payment", {"id": paid["id"]}, amount=amount)
        assert "discounts_kept" in await broken(till)
        await breaking.say(till.database, "payment", {"id": paid["id"]}, amount=paid["amount"])
