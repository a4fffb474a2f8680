"""A plan changes within a period, and the next charges settle the difference, by the second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.breaking import say
from tests.domain.subscriptions.test_changing_plans import DAY, PRO, TRIAL, Charges, amounts, due, renewed, to
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.stripe.amounts import main_units, minor_units
from paydesk.core.currencies import DIGITS, charge_digits
from paydesk.core.errors import Conflict
from paydesk.core.periods import Period, occurrence
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.changing import Changed
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.prorating import LEAST_CHARGES, Proration, charge_for, charges_with, difference

THIRTY_DAYS = replace(MONTHLY, period=Period(30, "day"))
JUNE = datetime(2027, 6, 1, tzinfo=UTC)


def change(old: str, new: str, at: datetime, began_at: datetime = JUNE, ends_at: datetime | None = None) -> Proration:
    ends = ends_at or began_at + 30 * DAY
    return Proration(1, began_at, ends, at, Decimal(old), Decimal(new), Decimal(0))


@pytest.mark.parametrize(
    ("begins", "period", "days", "old", "new", "prorated"),
    [
        ("2027-06-01", Period(1, "month"), 10, "10.00", "30.00", "13.3333"),
        ("2027-01-31", Period(1, "month"), 14, "10.00", "30.00", "10.0000"),  # until 28 February
        ("2028-01-31", Period(1, "month"), 15, "10.00", "39.00", "14.0000"),  # until 29 February
        ("2028-01-01", Period(1, "year"), 60, "366.00", "732.00", "306.0000"),  # a leap year
        ("2027-01-01", Period(1, "year"), 60, "365.00", "730.00", "305.0000"),
        ("2027-06-01", Period(1, "month"), 15, "30.00", "10.00", "-10.0000"),
    ],
)
def test_the_difference_is_for_what_is_left_of_the_period(
    begins: str, period: Period, days: int, old: str, new: str, prorated: str
) -> None:
    began = datetime.fromisoformat(begins).replace(tzinfo=UTC)
    latest = change(old, new, began + days * DAY, began, occurrence(began, period, 1))
    assert difference([], latest) == Decimal(prorated)


@pytest.mark.parametrize(
    ("price", "balance", "currency", "charged"),
    [
        ("30.00", "13.3333", "USD", "43.33"),
        ("30.00", "0.0050", "USD", "30.00"),
        ("30.01", "0.0050", "USD", "30.02"),
        ("5.00", "-4.80", "USD", "0"),
        ("5.00", "-4.50", "USD", "0.50"),
        ("5.00", "-12.50", "USD", "0"),
        ("0.20", "0", "USD", "0.20"),
        ("1000", "0.5", "JPY", "1000"),
        ("1001", "0.5", "JPY", "1002"),
        ("100", "-60", "JPY", "0"),
        ("1.000", "-0.9995", "KWD", "0"),
        ("1.001", "-1.0005", "KWD", "0"),
        ("10.000", "0.125", "KWD", "10.12"),
        ("10.000", "0.135", "KWD", "10.14"),
        ("10.000", "-9.994", "KWD", "0.01"),
        ("1000.00", "0.60", "MGA", "1001"),
    ],
)
async def test_a_charge_is_rounded_once_and_the_schema_agrees(
    subscriber: Till, price: str, balance: str, currency: str, charged: str
) -> None:
    said = charge_for(Decimal(price), Decimal(balance), currency, live=False)
    assert said == Decimal(charged)
    digits = {"JPY": 0, "MGA": 0}.get(currency, 2)
    least = LEAST_CHARGES.get(currency, Decimal(0))
    if Decimal(balance):
        asked = "select next_charge($1, $2, $3, $4)"
        assert await subscriber.database.fetchval(asked, Decimal(price), Decimal(balance), digits, least) == said


@given(st.sampled_from(sorted(DIGITS)), st.integers(0, 10**9), st.integers(-(10**9), 10**9))
def test_whatever_a_balance_makes_of_a_price_stripe_can_count_it(currency: str, price: int, balance: int) -> None:
    counted = Decimal(price).scaleb(-charge_digits(currency))
    charge = charge_for(counted, Decimal(balance).scaleb(-4), currency, live=False)
    assert main_units(minor_units(charge, currency), currency) == charge


def test_a_credit_is_used_over_three_periods() -> None:
    five = [Decimal(5)] * 4
    assert charges_with(five, Decimal("-12.5"), "USD", live=False) == [
        Decimal(0),
        Decimal(0),
        Decimal("2.50"),
        Decimal(5),
    ]


MONEY = st.integers(100, 100_000).map(lambda cents: Decimal(cents) / 100)


@given(
    price=MONEY,
    periods=st.lists(
        st.lists(st.tuples(st.integers(0, 30 * 86_400 - 1), MONEY, st.booleans()), max_size=4), min_size=1, max_size=4
    ),
)
def test_charges_and_balance_are_the_time_weighted_price_of_any_chain(
    price: Decimal, periods: Sequence[Sequence[tuple[int, Decimal, bool]]]
) -> None:
    began, balance, charged, worth = JUNE, Decimal(0), Decimal(0), Decimal(0)
    for changes in periods:
        charge = charge_for(price, balance, "USD", live=False)
        balance += price - charge
        charged += charge
        weighted, since, chain = Fraction(0), 0, list[Proration]()
        for second, new, at_once in sorted(changes, key=lambda one: one[0]):
            weighted += Fraction(price) * (second - since)
            latest = change(str(price), str(new), began + timedelta(seconds=second), began)
            balance += difference(chain, latest)
            chain.append(latest)
            if at_once:
                charge = charge_for(Decimal(0), balance, "USD", live=False)
                balance -= charge
                charged += charge
            price, since = new, second
        weighted = (weighted + Fraction(price) * (30 * 86_400 - since)) / (30 * 86_400)
        worth += Decimal(round(weighted * 10_000)) / 10_000
        assert charged + balance == worth
        began += 30 * DAY


async def prorated(till: Till, begun: Subscription, plan: Plan, at: datetime, **how: object) -> Changed:
    return await to(till, begun, plan, at, at_once=True, prorating=Prorating.NEXT_CHARGE, **how)


async def balance(till: Till, begun: Subscription) -> Decimal:
    return await find_balance(till.database, till.shop, begun.id)


async def test_an_upgrade_is_settled_by_the_next_charge_on_the_old_date(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    seen = await prorated(subscriber, begun, PRO, begun.date_start + 10 * DAY, preview=True)
    assert seen.proration is not None
    assert seen.proration.amount == Decimal("13.3333")
    assert await balance(subscriber, begun) == 0
    await prorated(subscriber, begun, PRO, begun.date_start + 10 * DAY)
    assert await balance(subscriber, begun) == Decimal("13.3333")
    now = await subscriber.now(begun)
    assert now.date_next == begun.date_next
    assert await subscriber.problems() == []
    after = await renewed(subscriber, now)
    assert amounts(charges) == [Decimal(10), Decimal("43.33")]
    assert await balance(subscriber, begun) == Decimal("0.0033")
    assert await subscriber.problems() == []
    await renewed(subscriber, after)
    assert amounts(charges) == [Decimal(10), Decimal("43.33"), Decimal(30)]
    assert await subscriber.problems() == []


async def test_a_downgrade_pays_for_three_periods_without_asking_the_bank(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe(replace(THIRTY_DAYS, price=Decimal(30)))
    await prorated(subscriber, begun, Plan(price="5.00"), begun.date_start + 15 * DAY)
    assert await balance(subscriber, begun) == Decimal("-12.5")
    now = await subscriber.now(begun)
    for _ in range(3):
        now = await renewed(subscriber, now)
    assert amounts(charges) == [Decimal(30), Decimal("2.50")]
    paid = [row["amount"] for row in await subscriber.payments()]
    assert paid == [Decimal(30), Decimal(0), Decimal(0), Decimal("2.50")]
    assert await subscriber.events() == ["payment"] * 4
    assert (now.counter, await balance(subscriber, begun)) == (4, Decimal(0))
    assert await subscriber.problems() == []


async def test_a_covered_renewal_whose_worker_died_is_paid_once(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe(replace(THIRTY_DAYS, price=Decimal(30)))
    await prorated(subscriber, begun, Plan(price="5.00"), begun.date_start + 15 * DAY)
    await subscriber.die_after_claim(due(begun))
    await subscriber.settle_all(minutes=10)
    now = await subscriber.now(begun)
    if now.counter == 1:
        now = await renewed(subscriber, now)
    assert (now.counter, await balance(subscriber, begun)) == (2, Decimal("-7.5"))
    assert amounts(charges) == [Decimal(30)]
    assert await subscriber.problems() == []


async def test_a_renewal_that_is_written_again_moves_the_balance_no_more(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await prorated(subscriber, begun, PRO, begun.date_start + 10 * DAY)
    await renewed(subscriber, await subscriber.now(begun))
    left = await balance(subscriber, begun)
    renewal = await subscriber.database.fetchval(
        "select id from payment where subscription_id = $1 and into_balance <> 0", begun.id
    )
    await say(subscriber.database, "payment", {"id": renewal}, paid_at=begun.date_next)
    assert await balance(subscriber, begun) == left


async def test_what_was_given_back_is_no_credit(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await subscriber.give_back(begun.init_payment_id, "4.00")
    await prorated(subscriber, begun, PRO, begun.date_start + 15 * DAY)
    assert await balance(subscriber, begun) == Decimal(12)
    await prorated(subscriber, begun, Plan(price="10.00"), begun.date_start + 15 * DAY)
    assert await balance(subscriber, begun) == Decimal(2)
    assert await subscriber.problems() == []


async def test_code_of_before_does_not_charge_past_a_balance(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await prorated(subscriber, begun, PRO, begun.date_start + 10 * DAY)
    with pytest.raises(asyncpg.RaiseError, match="has a balance"):
        await subscriber.database.execute(
            "insert into payment (merchant_id, live, merchant_order_id, state, amount, currency, attempt_id,"
            " customer_id, card_id, sign_version, key_id, created_at, subscription_id, period_number, renewal)"
            " select merchant_id, live, 'x', 'processing', 30, currency, attempt_id, customer_id, card_id,"
            " sign_version, key_id, created_at, $1, 2, true from payment where id = $2",
            begun.id,
            begun.init_payment_id,
        )


async def test_the_check_finds_a_balance_that_nothing_explains(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await say(subscriber.database, "subscription", {"id": begun.id}, balance=Decimal(1))
    assert any("balance" in problem for problem in await subscriber.problems())


async def test_a_trial_is_not_prorated(subscriber: Till) -> None:
    begun = await subscriber.subscribe(TRIAL)
    with pytest.raises(Conflict, match="is in its trial"):
        await prorated(subscriber, begun, PRO, begun.date_start + DAY)
