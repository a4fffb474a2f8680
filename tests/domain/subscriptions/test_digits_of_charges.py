"""A renewal asks for decimals that acquirers take, whatever code of before has written down
while it ran beside this one.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from tests import set_back
from tests.breaking import say
from tests.domain.subscriptions.test_changing_plans import Charges, amounts
from tests.domain.subscriptions.test_items import FAILS_LATER, added
from tests.domain.subscriptions.test_prorating import balance
from tests.shopfront import GOOD, MONTHLY
from tests.till import Till

from paydesk.core.currencies import DIGITS, charge_digits
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
