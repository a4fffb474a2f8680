"""Coupons: what they take off, for how long, how often, and what becomes of a use."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.banks import answering, ending_in
from tests.lengths import at_length, longer
from tests.shopfront import DECLINED, GOOD, MONTHLY, subscription_of
from tests.till import Till

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.periods import Period
from paydesk.domain.coupons.applying import apply_coupon, is_used_up
from paydesk.domain.coupons.coupons import Coupon, CouponRefused, read_terms
from paydesk.domain.coupons.keeping import find_coupon, make_coupon, switch_coupon
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.payments.checkouts import Standing
from paydesk.domain.payments.results import Paid, Refused, Result
from paydesk.domain.subscriptions.changing import carry_out_due
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

CHALLENGED, ANSWER_LOST = "4000000000003220", "4000000000009987"
HALF = {"percent": "50"}


async def coupon(till: Till, **given: Any) -> Coupon:
    dates = {"valid_from": given.pop("valid_from", None), "valid_until": given.pop("valid_until", None)}
    skus, code = given.pop("skus", ()), given.pop("code", "HALF")
    terms = read_terms({"code": code, **(given or HALF)}, skus, **dates)
    return await make_coupon(till.database, till.shop, terms, now=utc_now())


async def with_coupon(till: Till, code: str = "half", terms: Terms = MONTHLY, order: str = "", **asked: Any) -> Link:
    checkout = await till.find(await till.order(order, terms=terms, **asked))
    return await apply_coupon(till.database, checkout, code)


async def subscribed(till: Till, code: str = "half", terms: Terms = MONTHLY, order: str = "club-1") -> Subscription:
    assert await till.pay(await with_coupon(till, code, terms, order)) == Paid()
    return await subscription_of(till.database, till.shop, order)


async def tried(till: Till, checkout: Link, **who: Any) -> Result | None:
    try:
        return await till.pay(checkout, **who)
    except Conflict:
        return None


async def uses(till: Till, made: Coupon) -> int:
    return (await find_coupon(till.database, till.shop, made.id)).uses


async def paid(till: Till) -> list[Decimal]:
    return [row["amount"] for row in await till.payments() if row["state"] == "captured"]


async def mrr(till: Till) -> list[tuple[str, Decimal]]:
    rows = await till.database.fetch(
        "select kind, amount from mrr_movement where merchant_id = $1 order by subscription_id, number",
        till.shop.merchant_id,
    )
    return [(row["kind"], row["amount"]) for row in rows]


@pytest.mark.parametrize(
    ("given", "charged", "moved"),
    [
        ({"percent": "50"}, ["5", "5", "5", "5"], [("new", 5)]),
        ({"percent": "50", "periods": "1"}, ["5", "10", "10", "10"], [("new", 10)]),
        (
            {"amount": "2.50", "currency": "USD", "periods": "3"},
            ["7.5", "7.5", "7.5", "10"],
            [("new", 7.5), ("expansion", 2.5)],
        ),
        ({"percent": "33.33", "periods": "2"}, ["6.67", "6.67", "10", "10"], [("new", 6.67), ("expansion", 3.33)]),
    ],
)
async def test_a_subscription_is_charged_what_the_coupon_leaves_for_as_long_as_it_lasts(
    till: Till, given: dict[str, str], charged: list[str], moved: list[Any]
) -> None:
    await coupon(till, **given)
    subscription = await subscribed(till)
    for _ in charged[1:]:
        subscription = await till.charge_due(subscription)
    assert await paid(till) == [Decimal(one) for one in charged]
    assert await mrr(till) == [(kind, Decimal(str(amount))) for kind, amount in moved]
    told = [one["subscription"]["package"] for one in await till.told()]
    assert {one["price"] for one in told} == {"10.00"}
    left = [None if one == "10" else f"{Decimal(one):.2f}" for one in charged]
    assert [one["discount_price"] for one in told] == left
    assert await till.problems() == []


async def test_a_share_of_a_price_in_dinars_leaves_what_acquirers_can_take(till: Till) -> None:
    await coupon(till, percent="15", periods="1")
    subscription = await subscribed(till, terms=replace(MONTHLY, currency="KWD", price=Decimal("9.990")))
    await till.charge_due(subscription)
    assert await paid(till) == [Decimal("8.490"), Decimal("9.990")]
    assert await till.problems() == []


@pytest.mark.parametrize(
    ("periods", "charged"), [("1", ["0", "5", "10"]), ("2", ["0", "5", "5"]), ("", ["0", "5", "5"])]
)
async def test_the_price_of_a_trial_stays_and_the_coupon_is_for_what_follows(
    till: Till, periods: str, charged: list[str]
) -> None:
    await coupon(till, percent="50", periods=periods)
    subscription = await subscribed(till, terms=replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day"))))
    for _ in charged[1:]:
        subscription = await till.charge_due(subscription)
    assert await paid(till) == [Decimal(one) for one in charged]
    assert await till.problems() == []


async def test_a_coupon_that_lasts_longer_than_the_subscription_holds_to_its_end(till: Till) -> None:
    await coupon(till, percent="50", periods="5")
    subscription = await subscribed(till, terms=replace(MONTHLY, limit=2))
    subscription = await till.charge_due(subscription)
    assert (subscription.date_next, await paid(till)) == (None, [Decimal(5), Decimal(5)])


async def test_a_charge_that_fails_is_tried_again_at_the_same_price(till: Till) -> None:
    await coupon(till, percent="50", periods="2")
    order = await with_coupon(till, order="club-1")
    await till.pay(order, number="4000000000000341")
    subscription = await subscription_of(till.database, till.shop, "club-1")
    await till.charge(subscription.date_next)
    assert [row["amount"] for row in await till.payments()] == [Decimal(5), Decimal(5)]
    assert (await till.now(subscription)).package.terms.price == Decimal(5)
    assert await till.problems() == []


@pytest.mark.parametrize("at_once", [False, True])
async def test_another_plan_ends_the_coupon(till: Till, at_once: bool) -> None:
    await coupon(till, percent="50", periods="3")
    subscription = await subscribed(till)
    plan = Plan(price="30.00")
    await change_plan(till.database, till.shop, subscription.id, plan, by="merchant", now=utc_now(), at_once=at_once)
    due = subscription.date_next
    assert due is not None
    await carry_out_due(till.database, real_now=utc_now(), merchant_id=till.shop.merchant_id, at=due)
    for _ in range(2):
        await till.charge_due(subscription)
    assert await paid(till) == [Decimal(5), Decimal(30), Decimal(30)]
    assert await till.problems() == []
    assert (await till.now(subscription)).package.terms.discount is None


async def test_prices_that_others_pay_are_their_own(till: Till) -> None:
    """What a coupon makes of one package is none of what forms name, even at the same price."""
    await coupon(till, percent="50", periods="1")
    await subscribed(till, order="club-1")
    other = await till.subscribe(replace(MONTHLY, price=Decimal("5.00")), order="club-2")
    for _ in range(2):
        await till.charge((await till.now(other)).date_next)
    other = await till.now(other)
    assert (other.package.terms.price, other.package.terms.discount) == (Decimal(5), None)
    assert (await till.told())[1]["subscription"]["package"]["discount_price"] is None
    assert await till.problems() == []


@longer
async def test_of_a_crowd_that_races_for_the_last_use_one_gets_it(till: Till) -> None:
    made = await coupon(till, percent="50", most_uses="1")
    crowd = at_length(200, 30)
    orders = [await till.order(terms=MONTHLY) for _ in range(crowd)]
    checkouts = [await apply_coupon(till.database, await till.find(one), "HALF") for one in orders]
    results = await asyncio.gather(
        *(tried(till, one, address=f"192.0.2.{number}") for number, one in enumerate(checkouts))
    )
    assert Counter(result == Paid() for result in results) == {True: 1, False: crowd - 1}
    assert await paid(till) == [Decimal(5)]
    assert await uses(till, made) == 1
    stands = Counter([(await till.find(one)).standing for one in checkouts])
    assert stands == {Standing.PAID: 1, Standing.COUPON_OVER: crowd - 1}
    without = next(one for one, result in zip(orders, results, strict=True) if result is None)
    assert await till.pay(without) == Paid()
    assert await paid(till) == [Decimal(5), Decimal(10)]
    assert await till.problems() == []


@longer
async def test_who_fails_at_the_last_use_leaves_it_to_the_crowd(till: Till) -> None:
    """Some are declined, some leave at their bank's question, and what some send reaches nobody."""
    made = await coupon(till, percent="50", most_uses="1")
    crowd = at_length(200, 30)
    checkouts = [await with_coupon(till) for _ in range(crowd)]
    dead = till.at(answering(till.desk.acquirers["simulator"], authorize=ending_in(OutcomeUnknown("the line is dead"))))
    ways = [(till, DECLINED), (till, CHALLENGED), (dead, GOOD)]
    for _ in ways:
        coming = [(*ways[place % len(ways)], one, f"192.0.2.{place}") for place, one in enumerate(checkouts)]
        await asyncio.gather(*(tried(at, one, number=number, address=where) for at, number, one, where in coming))
        assert await paid(till) == []
        assert await uses(till, made) <= 1
        await till.settle_all(hours=2)
        assert await uses(till, made) == 0, "a use that came to nothing is free"
    results = await asyncio.gather(
        *(tried(till, one, address=f"192.0.2.{place}") for place, one in enumerate(checkouts))
    )
    assert Counter(result == Paid() for result in results) == {True: 1, False: crowd - 1}
    assert (await paid(till), await uses(till, made)) == ([Decimal(5)], 1)
    assert await till.problems() == []


async def test_what_is_declined_or_left_frees_its_use(till: Till) -> None:
    made = await coupon(till, percent="50", most_uses="1")
    first, second = await with_coupon(till), await with_coupon(till)
    assert isinstance(await till.pay(first, DECLINED), Refused)
    assert await uses(till, made) == 0
    await till.pay(first, CHALLENGED)
    assert (await uses(till, made), (await till.find(second)).standing) == (1, Standing.COUPON_OVER)
    assert await tried(till, second) is None
    await till.settle_all(hours=2)
    assert await uses(till, made) == 0
    assert await till.pay(second) == Paid()
    assert await tried(till, first) is None
    assert await till.problems() == []


@pytest.mark.parametrize("error", [OutcomeUnknown("the line went dead"), AcquirerRefused("down")])
async def test_what_never_reached_the_bank_frees_its_use(till: Till, error: Exception) -> None:
    """As it is when the process dies between the intent and the call."""
    made = await coupon(till, percent="50", most_uses="1")
    first, second = await with_coupon(till), await with_coupon(till)
    dead = till.at(answering(till.desk.acquirers["simulator"], authorize=ending_in(error)))
    await tried(dead, first)
    await till.settle_all(minutes=5)
    assert await uses(till, made) == 0
    assert await till.pay(second) == Paid()
    assert await till.problems() == []


async def test_a_lost_answer_keeps_its_use_and_money_given_back_does_too(till: Till) -> None:
    made = await coupon(till, percent="50", most_uses="1")
    first, second = await with_coupon(till), await with_coupon(till)
    await till.pay(first, ANSWER_LOST)
    assert await tried(till, second) is None
    await till.settle_all(minutes=5)
    assert await paid(till) == [Decimal(5)]
    (payment,) = await till.payments()
    with pytest.raises(Malformed):
        await till.give_back(payment["id"], "5.01")
    await till.give_back(payment["id"])
    await till.finish()
    assert await uses(till, made) == 1
    assert await till.problems() == []


async def test_one_customer_uses_it_as_often_as_they_may(till: Till) -> None:
    await coupon(till, percent="50", most_per_customer="1")
    first, second = await with_coupon(till), await with_coupon(till)
    assert await till.pay(first, email="ada@example.com") == Paid()
    assert await tried(till, second, email="Ada@Example.com") is None
    assert await is_used_up(till.database, await till.find(second), "ADA@example.com")
    assert await till.pay(second, email="bob@example.com") == Paid()


async def test_two_tabs_pay_what_each_of_them_shows_and_one_order_is_paid_once(till: Till) -> None:
    await coupon(till)
    order = await till.order(terms=MONTHLY)
    reduced = await apply_coupon(till.database, await till.find(order), "HALF")
    assert reduced == await apply_coupon(till.database, await till.find(reduced), "half")
    assert [(await till.find(one)).amount for one in (order, reduced)] == [Decimal(10), Decimal(5)]
    assert await till.pay(order) == Paid()
    assert (await till.find(reduced)).standing is Standing.CLOSED
    assert await tried(till, reduced) is None
    assert await paid(till) == [Decimal(10)]


async def test_a_coupon_is_switched_off_and_whoever_used_it_keeps_it(till: Till) -> None:
    made = await coupon(till)
    subscription = await subscribed(till)
    waiting = await with_coupon(till)
    await switch_coupon(till.database, till.shop, made.id, on=False)
    assert (await till.find(waiting)).standing is Standing.COUPON_OVER
    assert await tried(till, waiting) is None
    await till.charge_due(subscription)
    assert await paid(till) == [Decimal(5), Decimal(5)]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"code": "OTHER"}, "unknown"),
        ({"amount": "3", "currency": "EUR"}, "elsewhere"),
        ({"percent": "50", "currency": "EUR"}, "elsewhere"),
        ({"skus": ("tea",)}, "elsewhere"),
        ({"valid_from": utc_now() + timedelta(days=1)}, "over"),
        ({"valid_until": utc_now() - timedelta(days=1)}, "over"),
    ],
)
async def test_a_coupon_that_does_not_fit_is_refused_with_the_reason(
    till: Till, given: dict[str, Any], why: str
) -> None:
    await coupon(till, **given)
    with pytest.raises(CouponRefused) as refused:
        await with_coupon(till)
    assert refused.value.why == why


NOTHING = [{"percent": "100"}, {"amount": "10", "currency": "USD"}, {"amount": "99.50", "currency": "USD"}]


@pytest.mark.parametrize("given", NOTHING, ids=["all of it", "just the price", "more than the price"])
async def test_what_leaves_nothing_is_free_for_so_long_and_keeps_the_card(till: Till, given: dict[str, str]) -> None:
    await coupon(till, **given, periods="2")
    link = await with_coupon(till, order="free")
    checkout = await till.find(link)
    assert checkout.terms is not None
    assert (checkout.amount, checkout.terms.list_price) == (Decimal(0), MONTHLY.price)
    assert await till.pay(link) == Paid()
    subscription = await subscription_of(till.database, till.shop, "free")
    assert subscription.date_next is not None
    asked = len(list(till.bank.record.operations()))
    for _ in range(2):
        subscription = await till.charge_due(subscription)
        assert await till.problems() == []
    assert await paid(till) == [Decimal(0), Decimal(0), MONTHLY.price]
    assert len(list(till.bank.record.operations())) == asked + 1, "nobody is asked for nothing"
    payments = await till.payments()
    assert [row["fees"] for row in payments[:2]] == [0, 0]
    assert await till.events() == ["payment"] * 3
    told = [body["subscription"]["package"]["discount_price"] for body in await till.told()]
    assert told == ["0.00", "0.00", None]
    assert subscription.package.terms.price == MONTHLY.price
    assert (subscription.state, subscription.counter) == ("Active", 3)


async def test_one_for_ever_never_charges_until_the_plan_changes(till: Till) -> None:
    await coupon(till, percent="100")
    link = await with_coupon(till, order="free")
    assert await till.pay(link) == Paid()
    subscription = await subscription_of(till.database, till.shop, "free")
    for _ in range(3):
        subscription = await till.charge_due(subscription)
    at = subscription.date_paid
    assert at is not None
    await change_plan(till.database, till.shop, subscription.id, Plan(price="7.00"), by="api", now=at)
    changed = await till.now(subscription)
    assert changed.date_next is not None
    assert await carry_out_due(
        till.database, real_now=utc_now(), merchant_id=till.shop.merchant_id, at=changed.date_next
    )
    await till.charge_due(changed)
    assert await paid(till) == [Decimal(0)] * 4 + [Decimal(7)]
    assert await till.problems() == []


async def test_a_free_trial_comes_before_the_periods_that_cost_nothing(till: Till) -> None:
    await coupon(till, percent="100", periods="1")
    terms = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))
    link = await with_coupon(till, terms=terms, order="free")
    assert await till.pay(link) == Paid()
    subscription = await subscription_of(till.database, till.shop, "free")
    for _ in range(2):
        subscription = await till.charge_due(subscription)
    assert await paid(till) == [Decimal(0), Decimal(0), MONTHLY.price]
    assert await till.problems() == []


async def test_a_card_that_is_declined_gets_nothing_for_nothing(till: Till) -> None:
    await coupon(till, percent="100", periods="1", most_uses="1")
    link = await with_coupon(till)
    assert await till.pay(link, DECLINED) == Refused("declined")
    assert await till.pay(link) == Paid(), "and the last use was free again"


async def test_it_is_for_its_packages(till: Till) -> None:
    await coupon(till, skus=("tea", "club"))
    assert (await till.find(await with_coupon(till))).amount == Decimal(5)


async def test_a_code_is_made_once_whatever_its_letters_and_its_terms_stay(till: Till) -> None:
    made = await coupon(till, code="Spring-26")
    assert await coupon(till, code="SPRING-26") == made
    with pytest.raises(Conflict):
        await coupon(till, code="spring-26", percent="40")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "percent"),
        ({"percent": "10", "amount": "1", "currency": "USD"}, "percent"),
        ({"percent": "100.01"}, "percent"),
        ({"percent": "101"}, "percent"),
        ({"percent": "0"}, "percent"),
        ({"percent": "1.234"}, "percent"),
        ({"amount": "1"}, "currency"),
        ({"amount": "1.001", "currency": "USD"}, "amount"),
        ({"percent": "5", "currency": "XXX"}, "currency"),
        ({"percent": "5", "periods": "0"}, "periods"),
        ({"percent": "5", "most_uses": "-1"}, "most_uses"),
        ({"percent": "5", "code": "two words"}, "code"),
        ({"percent": "5", "code": ""}, "code"),
    ],
)
def test_terms_that_can_t_be_are_refused_by_their_field(given: dict[str, str], field: str) -> None:
    with pytest.raises(Malformed) as wrong:
        read_terms({"code": "A", **given}, (), valid_from=None, valid_until=None)
    assert wrong.value.fields == (field,)
