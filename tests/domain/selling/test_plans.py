"""Packages that a payment link sells: the versions that its team chose, at their own terms."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.domain.coupons.test_coupons import coupon
from tests.domain.selling.test_buying import left, opened, standing, tried
from tests.lengths import at_length, longer
from tests.shopfront import MONTHLY, choose, find_subscription, offer_link, offer_packages, pay, subscription_of
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.periods import Period
from paydesk.domain.coupons.applying import apply_coupon
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import Checkout, Standing, find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.free_trials import begin_free_trial
from paydesk.domain.payments.hosting import Guest
from paydesk.domain.payments.results import Paid
from paydesk.domain.selling.buying import SoldOut
from paydesk.domain.selling.payment_links import Rhythm, link_selling
from paydesk.domain.subscriptions.packages import make_version
from paydesk.domain.subscriptions.subscription_terms import RecurringFields, Terms, Trial, as_fields, read_terms

YEARLY = replace(MONTHLY, price=Decimal("100.00"), period=Period(1, "year"))
SEATS = Terms(
    "Seats", "seats", "USD", Decimal("4.00"), Period(1, "month"), Trial(Decimal("1.00"), Period(2, "week")), 12
)


@pytest.fixture
def till(desk: Desk, shop: Shop) -> Till:
    return Till(desk, shop)


async def allow_several(till: Till, on: bool = True) -> None:
    await breaking.say(till.database, "merchant", {"id": till.shop.merchant_id}, signs_quantities=on)


async def version_of(till: Till, link: Any, terms: Terms) -> str:
    """How the link's page names the version of these terms."""
    (key,) = [key for key, sold in (await opened(till, link)).sold.items() if sold.terms == terms]
    return str(key)


@pytest.mark.parametrize("terms", [MONTHLY, YEARLY, SEATS, replace(SEATS, trial=Trial(Decimal(0), Period(3, "day")))])
async def test_a_package_is_sold_in_its_own_version_and_not_in_a_new_one(till: Till, terms: Terms) -> None:
    link = await offer_packages(
        till.database, till.shop, [MONTHLY, YEARLY], [terms] if terms.sku_id == "seats" else [SEATS]
    )
    versions = await till.database.fetchval(
        "select count(*) from package_version where merchant_id = $1", till.shop.merchant_id
    )
    checkout = await choose(till.desk, link, await version_of(till, link, terms))
    shown = await find_checkout(till.database, checkout, now=utc_now())
    assert (shown.terms, shown.amount, shown.description) == (terms, terms.first_amount, terms.name)
    assert await pay(till.desk, checkout) == Paid()
    (told,) = await till.told()
    assert told["subscription"]["package"]["sku_id"] == terms.sku_id
    assert told["subscription"]["price"] == f"{terms.price:.2f}"
    assert versions == await till.database.fetchval(
        "select count(*) from package_version where merchant_id = $1", till.shop.merchant_id
    )
    assert await till.problems() == []


@pytest.mark.parametrize(
    "terms",
    [
        MONTHLY,
        YEARLY,
        SEATS,
        replace(SEATS, trial=Trial(Decimal(0), Period(3, "day")), limit=0, currency="JPY", price=Decimal("500.0000")),
    ],
)
def test_terms_are_read_as_they_are_written(terms: Terms) -> None:
    assert read_terms(RecurringFields(**as_fields(terms)), terms.price, terms.currency) == terms


async def test_a_later_version_is_not_sold_until_it_is_chosen(till: Till) -> None:
    link = await offer_packages(till.database, till.shop, [MONTHLY])
    await make_version(till.database, till.shop, replace(MONTHLY, price=Decimal("12.00")), now=utc_now())
    checkout = await find_checkout(till.database, await choose(till.desk, link), now=utc_now())
    assert checkout.amount == Decimal(10)


async def test_several_are_sold_where_the_shop_allows_it(till: Till) -> None:
    link = await offer_packages(till.database, till.shop, [SEATS], most_quantity=5, picture="00" * 32)
    with pytest.raises(Malformed):
        await choose(till.desk, link, quantity=2)
    await allow_several(till)
    checkout = await choose(till.desk, link, quantity=3)
    shown = await find_checkout(till.database, checkout, now=utc_now())
    assert shown.terms is not None
    assert (shown.terms.price, shown.terms.quantity, shown.amount) == (Decimal(12), 3, Decimal(3))
    (line,) = shown.items
    assert (line.name, line.unit_price, line.quantity) == ("Seats", Decimal(4), 3)
    assert await pay(till.desk, checkout) == Paid()
    (told,) = await till.told()
    seen = {name: told["subscription"].get(name) for name in ("price", "quantity", "unit_price")}
    assert seen == {"price": "12.00", "quantity": 3, "unit_price": "4.00"}
    assert await till.problems() == []
    await allow_several(till, False)
    assert (await opened(till, link)).most == 1


async def test_a_price_of_its_own_by_the_month_is_sold_several_times_too(till: Till) -> None:
    link = await offer_link(till.database, till.shop, price=None, monthly_price=Decimal(5), most_quantity=4)
    await allow_several(till)
    shown = await find_checkout(till.database, await choose(till.desk, link, Rhythm.MONTHLY, 4), now=utc_now())
    assert shown.terms is not None
    assert (shown.terms.price, shown.terms.quantity) == (Decimal(20), 4)


async def test_more_than_can_be_paid_is_refused(till: Till) -> None:
    dear = replace(MONTHLY, price=Decimal("999999999.00"))
    link = await offer_packages(till.database, till.shop, [dear], most_quantity=1000)
    await allow_several(till)
    assert await choose(till.desk, link, quantity=1)
    huge = await offer_packages(
        till.database, till.shop, [replace(MONTHLY, price=Decimal("9999999999.00"))], most_quantity=1000
    )
    with pytest.raises(Malformed):
        await choose(till.desk, huge, quantity=1000)


async def test_a_coupon_takes_its_share_of_all_of_them(till: Till) -> None:
    await coupon(till, percent="50", periods="1")
    await breaking.say(till.database, "merchant", {"id": till.shop.merchant_id}, types_coupons=True)
    await allow_several(till)
    link = await offer_packages(till.database, till.shop, [MONTHLY], most_quantity=2, most_sales=2)
    checkout = await find_checkout(till.database, await choose(till.desk, link, quantity=2), now=utc_now())
    assert checkout.takes_coupons
    reduced = await apply_coupon(till.database, checkout, "half")
    assert await pay(till.desk, reduced) == Paid()
    assert [row["amount"] for row in await till.payments()] == [Decimal(10)]
    assert await left(till, link) == 0
    assert await till.problems() == []


@longer
async def test_of_a_crowd_that_races_for_the_last_package_one_gets_it(till: Till) -> None:
    link = await offer_packages(till.database, till.shop, [MONTHLY, YEARLY], [SEATS], most_sales=1)
    crowd, keys = at_length(200, 30), list((await opened(till, link)).sold)
    checkouts = [await choose(till.desk, link, keys[number % len(keys)]) for number in range(crowd)]
    results = await asyncio.gather(
        *(tried(till, one, address=f"192.0.2.{number}") for number, one in enumerate(checkouts))
    )
    assert Counter(result == Paid() for result in results) == {True: 1, False: crowd - 1}
    stands = Counter([await standing(till, one) for one in checkouts])
    assert stands == {Standing.PAID: 1, Standing.SOLD_OUT: crowd - 1}
    assert len(await till.payments()) == 1
    assert len([one for one in till.standings().values() if one.net]) == 1
    with pytest.raises(SoldOut):
        await choose(till.desk, link, keys[0])
    assert await till.problems() == []


async def test_renewals_are_not_sales(till: Till) -> None:
    link = await offer_packages(till.database, till.shop, [MONTHLY], most_sales=3)
    assert await pay(till.desk, await choose(till.desk, link)) == Paid()
    (told,) = await till.told()
    reference = told["payment_order"]["merchant_order_id"]
    await till.charge_due(await subscription_of(till.database, till.shop, reference))
    assert len(await till.payments()) == 2
    assert await left(till, link) == 2


FREE_AT_FIRST = replace(SEATS, trial=Trial(Decimal(0), Period(3, "day")))


@pytest.mark.parametrize("card", [True, False], ids=["with a card", "without a card"])
async def test_a_free_trial_is_a_sale_like_any(till: Till, card: bool) -> None:
    await change_merchant(till.database, till.shop.merchant_id, trials_without_card=not card)
    link = await offer_packages(till.database, till.shop, [FREE_AT_FIRST], most_sales=1)
    first, late = await choose(till.desk, link), await choose(till.desk, link)
    shown = await till.find(first)
    assert (shown.needs_card, shown.amount) == (card, Decimal(0))
    if card:
        assert await pay(till.desk, first) == Paid()
    else:
        guest = Guest("ada@example.com", "192.0.2.1", agreed="ok")
        assert await begin_free_trial(till.desk, shown, guest, now=shown.now) == Paid()
    assert (await left(till, link), await standing(till, late)) == (0, Standing.SOLD_OUT)
    (row,) = await till.rows("subscription")
    trial = await find_subscription(till.database, till.shop, row["id"])
    assert (trial.state, trial.has_card) == ("Trial", card)
    assert [(one["state"], one["amount"], one["fees"]) for one in await till.payments()] == [("captured", 0, 0)]
    assert await till.rows("ledger_entry") == []
    assert await till.problems() == []


async def test_who_comes_late_for_a_trial_without_a_card_gets_none(till: Till) -> None:
    await change_merchant(till.database, till.shop.merchant_id, trials_without_card=True)
    link = await offer_packages(till.database, till.shop, [FREE_AT_FIRST], most_sales=1)
    crowd = [await till.find(await choose(till.desk, link)) for _ in range(8)]

    async def begin(checkout: Checkout, number: int) -> bool:
        guest = Guest(f"ada{number}@b.example", f"192.0.2.{number}", agreed="ok")
        try:
            return await begin_free_trial(till.desk, checkout, guest, now=checkout.now) == Paid()
        except Conflict:
            return False

    begun = await asyncio.gather(*(begin(one, number) for number, one in enumerate(crowd)))
    assert begun.count(True) == 1
    assert len(await till.rows("subscription")) == 1
    assert await till.problems() == []


async def test_one_that_is_off_sells_nothing_and_code_of_before_takes_it_for_off(till: Till) -> None:
    link = await offer_packages(till.database, till.shop, [MONTHLY])
    assert (await opened(till, link)).active
    assert not await till.database.fetchval("select active from payment_link where id = $1", link.row_id)
    await breaking.say(till.database, "payment_link", {"id": link.row_id}, plans_on=False)
    with pytest.raises(Conflict):
        await choose(till.desk, link)


async def test_a_package_is_bought_again_where_a_link_sells_it(till: Till, other_shop: Shop) -> None:
    assert await link_selling(till.database, till.shop, "club") is None
    await offer_packages(till.database, till.shop, [MONTHLY])
    newest = await offer_packages(till.database, till.shop, [YEARLY], [SEATS])
    assert await link_selling(till.database, till.shop, "club") == newest
    assert await link_selling(till.database, till.shop, "tea") is None
    assert await link_selling(till.database, other_shop, "club") is None
    await breaking.say(till.database, "payment_link", {"id": newest.row_id}, plans_on=False)
    again = await link_selling(till.database, till.shop, "club")
    assert again not in (None, newest)


async def test_what_is_none_of_the_pages_is_refused(till: Till) -> None:
    link = await offer_packages(till.database, till.shop, [MONTHLY, YEARLY])
    other = await offer_packages(till.database, till.shop, [SEATS])
    for chosen in ("", "monthly", "0", "-1", await version_of(till, other, SEATS)):
        with pytest.raises(Malformed):
            await choose(till.desk, link, chosen)
