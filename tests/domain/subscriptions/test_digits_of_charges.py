"""A renewal asks for decimals that acquirers take, whatever code of before has written down
while it ran beside this one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal

import pytest
from tests import set_back
from tests.banks import live_bank_of
from tests.breaking import say
from tests.domain.subscriptions.test_changing_plans import Charges, amounts
from tests.domain.subscriptions.test_items import FAILS_LATER, added
from tests.domain.subscriptions.test_prorating import balance
from tests.shopfront import GOOD, MONTHLY, subscription_of
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.core.currencies import DIGITS, charge_digits
from paydesk.core.errors import Conflict
from paydesk.domain.billing.charging import BillingRun, Side
from paydesk.domain.business.subscriptions_for_team import charges_ahead
from paydesk.domain.coupons.applying import apply_coupon
from paydesk.domain.coupons.coupons import read_terms
from paydesk.domain.coupons.keeping import make_coupon
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.items import WantedItem
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms

DINARS = replace(MONTHLY, currency="KWD")
ARIARY = replace(MONTHLY, currency="MGA", price=Decimal(1000))


async def of_before(till: Till, item: str, digits: int, number: str = GOOD, terms: Terms = DINARS) -> Subscription:
    """A subscription with an item, whose digits code of before wrote down."""
    begun = await till.subscribe(terms, number=number)
    await added(till, begun, WantedItem(Decimal(item), "Set-up"))
    await say(till.database, "subscription", {"id": begun.id}, charge_digits=digits)
    return begun


@pytest.mark.parametrize(
    ("terms", "digits", "item", "charged", "left"),
    [(DINARS, 3, "0.125", "10.12", "0.005"), (ARIARY, 2, "0.60", "1001", "-0.40")],
)
async def test_it_is_charged_without_the_decimals_that_acquirers_refuse(
    subscriber: Till, charges: Charges, terms: Terms, digits: int, item: str, charged: str, left: str
) -> None:
    begun = await of_before(subscriber, item, digits, terms=terms)
    await subscriber.charge_due(begun)
    assert amounts(charges)[-1] == Decimal(charged)
    assert await balance(subscriber, begun) == Decimal(left)
    assert await subscriber.problems() == []


async def test_what_code_of_before_has_tried_in_vain_is_tried_again_without_them(
    subscriber: Till, charges: Charges
) -> None:
    begun = await of_before(subscriber, "0.125", 3, FAILS_LATER)
    await subscriber.charge_due(begun)
    as_before = {"amount": Decimal("10.125"), "into_balance": Decimal("-0.125")}
    await say(subscriber.database, "payment", {"subscription_id": begun.id, "period_number": 2}, **as_before)
    await set_back.card_replaced(subscriber.desk, begun)
    renewed = await subscriber.charge_due(begun)
    assert (renewed.counter, amounts(charges)[-1]) == (2, Decimal("10.12"))
    assert await balance(subscriber, begun) == Decimal("0.005")
    assert await subscriber.problems() == []


async def test_what_declined_is_tried_again_as_it_was(subscriber: Till, charges: Charges) -> None:
    begun = await of_before(subscriber, "0.12", 3, FAILS_LATER)
    await subscriber.charge_due(begun)
    await set_back.card_replaced(subscriber.desk, begun)
    await subscriber.charge_due(begun)
    assert amounts(charges)[-1] == Decimal("10.12")
    assert await balance(subscriber, begun) == Decimal(0)


async def test_the_schema_knows_of_every_currency_what_acquirers_take(subscriber: Till) -> None:
    asked = "select c, charge_digits(c, d) from unnest($1::text[], $2::integer[]) as a (c, d)"
    told = await subscriber.database.fetch(asked, list(DIGITS), list(DIGITS.values()))
    assert {row[0]: row[1] for row in told} == {code: charge_digits(code) for code in DIGITS}


# Live prices that rest from before they would have been refused.


@pytest.fixture
async def live(subscriber: Till, bank: Bank) -> AsyncIterator[Till]:
    """The merchant's live side."""
    live_bank = live_bank_of(bank)
    acquirers = {**subscriber.desk.acquirers, live_bank.name: live_bank}
    desk = replace(subscriber.desk, acquirers=acquirers, live_acquirer=live_bank.name)
    yield replace(subscriber, desk=desk, shop=replace(subscriber.shop, live=True))
    await live_bank.close()


async def renewed(till: Till, begun: Subscription) -> Subscription:
    """It, once it is charged on its day."""
    due = (await till.now(begun)).date_next
    assert due is not None
    await BillingRun(till.desk).charge_one(Side(till.shop, due), begun.id)
    return await till.now(begun)


async def priced_before(till: Till, price: str, number: str = GOOD) -> Subscription:
    """A subscription whose price code of before has taken."""
    opened = await till.order("club-1", terms=DINARS)
    await say(till.database, "package_version", {"merchant_id": till.shop.merchant_id}, price=Decimal(price))
    await till.pay(opened, number)
    return await subscription_of(till.database, till.shop, "club-1")


async def test_a_live_price_of_before_is_charged_rounded_down_and_the_rest_waits(live: Till, charges: Charges) -> None:
    begun = await priced_before(live, "10.125")
    for charged, left in (("10.12", "0.005"), ("10.13", "0"), ("10.12", "0.005")):
        ahead = charges_ahead(await live.now(begun), 1, await balance(live, begun))
        await renewed(live, begun)
        assert amounts(charges)[-1] == ahead[0].amount == Decimal(charged)
        assert await balance(live, begun) == Decimal(left)
    assert await live.problems() == []


async def test_a_live_price_that_was_tried_in_vain_is_tried_again_rounded_down(live: Till, charges: Charges) -> None:
    begun = await priced_before(live, "10.125", FAILS_LATER)
    await renewed(live, begun)
    as_before = {"amount": Decimal("10.125"), "into_balance": Decimal(0)}
    await say(live.database, "payment", {"subscription_id": begun.id, "period_number": 2}, **as_before)
    await set_back.card_replaced(live.desk, begun)
    paid = await renewed(live, begun)
    assert (paid.counter, amounts(charges)[-1]) == (2, Decimal("10.12"))
    assert await balance(live, begun) == Decimal("0.005")
    assert await live.problems() == []


async def test_a_live_change_of_number_is_looked_at_as_it_is_charged(live: Till) -> None:
    begun = await live.subscribe(replace(DINARS, price=Decimal("20.25"), quantity=2))
    named = (live.database, live.shop, begun.id)
    with pytest.raises(Conflict, match=r"acquirers don't take 10\.125 KWD"):
        await change_plan(*named, Plan(quantity="1"), by="api", now=utc_now())
    done = await change_plan(*named, Plan(price="10.125", quantity="4"), by="api", now=utc_now())
    assert done.subscription.as_charged_next.package.terms.price == Decimal("40.500")


async def test_a_test_price_is_charged_as_it_is(subscriber: Till, charges: Charges) -> None:
    begun = await priced_before(subscriber, "10.125")
    await subscriber.charge_due(begun)
    assert (amounts(charges)[-1], await balance(subscriber, begun)) == (Decimal("10.125"), Decimal(0))


async def test_a_live_checkout_of_before_is_paid_rounded_down(live: Till, charges: Charges) -> None:
    opened = await live.order(amount="10.12", currency="KWD")
    await say(live.database, "checkout", {"id": opened.row_id}, amount=Decimal("10.125"))
    assert (await live.find(opened)).amount == Decimal("10.12")
    await live.pay(opened)
    assert amounts(charges) == [Decimal("10.12")]
    assert await live.problems() == []


async def test_a_live_coupon_of_before_leaves_a_price_that_is_taken(live: Till, charges: Charges) -> None:
    terms = read_terms({"code": "CLUB", "amount": "0.12", "currency": "KWD"}, (), valid_from=None, valid_until=None)
    coupon = await make_coupon(live.database, live.shop, terms, now=utc_now())
    await say(live.database, "coupon", {"id": coupon.id}, amount=Decimal("0.125"))
    opened = await live.order(terms=DINARS)
    await live.pay(await apply_coupon(live.database, await live.find(opened), "CLUB"))
    assert amounts(charges) == [Decimal("9.87")]
    assert await live.problems() == []
