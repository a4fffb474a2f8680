"""The real statements under any interleaving of charges, changes, coupons, refunds, chargebacks and
ends, over years, with a bank that loses messages and is slow to know what it did.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import aiosql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import set_back
from tests.banks import TakingBackBank
from tests.domain.subscriptions.machine import BEGINNINGS, World
from tests.lengths import at_length
from tests.proving import check
from tests.shopfront import MONTHLY, subscription_of
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period, occurrence
from paydesk.database.pool import Database
from paydesk.database.statements import Statements
from paydesk.domain.billing import charging
from paydesk.domain.chargebacks import reading_acquirers
from paydesk.domain.chargebacks.booking import Booked
from paydesk.domain.coupons.applying import apply_coupon
from paydesk.domain.coupons.coupons import read_terms
from paydesk.domain.coupons.keeping import make_coupon
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.merchant import change_merchant, create_merchant, shop_of
from paydesk.domain.payments import movements
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.free_trials import begin_free_trial
from paydesk.domain.payments.hosting import Guest
from paydesk.domain.payments.intents import Movement, MovementRow, movement_of
from paydesk.domain.payments.results import Paid
from paydesk.domain.subscriptions import items
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.prorating import Proration
from paydesk.domain.subscriptions.schedule import Schedule
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

__all__ = ["database", "database_url"]

COUPONS = (
    None,
    {"percent": "50"},
    {"percent": "25", "periods": "1"},
    {"amount": "2.50", "currency": "USD", "periods": "2"},
    {"percent": "100", "periods": "3"},
)

ENDS = ("subscription_cancelled", "subscription_stopped", "subscription_expired")

refusals = st.sampled_from(
    (None, None, DeclineReason.INSUFFICIENT_FUNDS, DeclineReason.STOLEN_CARD, DeclineReason.TOO_LATE)
)
losses = st.sampled_from(("", "", "question", "answer"))
number = st.integers(0, 1)
other = st.sampled_from(("price", "number", "rhythm"))
change = st.tuples(st.just("change"), st.sampled_from(("next", "none", "next_charge", "next_charge")), number, other)
wish = st.tuples(st.just("want"), st.sampled_from(("cancel later", "undo", "pause", "pause until", "resume")), number)
steps = st.one_of(
    st.tuples(st.just("charge"), refusals, losses, st.booleans()),
    st.just(("charge",)),
    st.just(("charge", None, "answer", True)),
    st.tuples(st.just("live on"), st.integers(2, 14)),
    st.tuples(st.just("difference"), refusals, losses, st.booleans(), other),
    st.tuples(st.just("difference"), st.none(), st.sampled_from(("", "answer")), st.just(False), other),
    st.just(("give up",)),
    st.just(("die",)),
    st.just(("reveal",)),
    st.tuples(st.just("settle"), st.sampled_from((1, 3))),
    st.tuples(st.just("wait"), st.integers(1, 24 * 40)),
    st.tuples(st.just("carry out later"), number),
    st.tuples(st.just("give back"), st.integers(0, 3), st.sampled_from((None, "0.25", "0.5")), losses),
    st.tuples(st.just("charge back"), st.integers(0, 3), st.booleans()),
    st.just(("replace card",)),
    st.tuples(st.just("give card"), refusals, losses),
    st.tuples(st.just("add item"), number, st.sampled_from(("0.01", "2.50", "40.00"))),
    st.tuples(st.just("take back"), number),
    st.tuples(st.just("cancel"), number),
    *(wish, wish, change, change),
    st.tuples(
        st.just("dun"), st.sampled_from(((), (1,), (24, 72), (48,) * 5)), st.booleans(), st.sampled_from(DunningEnd)
    ),
)
agreed = st.builds(
    replace,
    st.just(MONTHLY),
    period=st.builds(Period, st.integers(1, 2), st.sampled_from(("day", "week", "month", "year"))),
    trial=st.sampled_from((None, Trial(Decimal(0), Period(14, "day")), Trial(Decimal(30), Period(1, "month")))),
    limit=st.integers(0, 4),
)


async def assert_true(world: World) -> None:
    """What must hold at any time: the books are in order."""
    till = world.subscriber
    found = await check(till.database, now=world.now, merchant_id=till.shop.merchant_id)
    assert [
        (finding.rule.statement, one.detail)
        for finding in found
        for one in finding.differences
        if finding.rule.statement != "outcomes_known"  # the clock jumps over days
    ] == []


async def assert_settled(world: World) -> None:
    """What must hold once all is known: the bank kept exactly the money of each period
    that is paid, in order, and has given back and taken back what the books say.
    """
    database, merchant_id, bank = world.subscriber.database, world.subscriber.shop.merchant_id, world.bank
    rows = await database.fetch(
        "select coalesce(p.subscription_id, d.subscription_id) as subscription_id, p.period_number, d.attempt_id as"
        " difference, a.idempotency_key, a.state, a.amount, d.state as told from payment_attempt a"
        " join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id"
        " left join subscription_difference d on d.merchant_id = a.merchant_id and d.attempt_id = a.id"
        " where a.merchant_id = $1 order by a.id",
        merchant_id,
    )
    kept = [row for row in rows if row["idempotency_key"] in bank.kept]
    checks = [key for key in bank.kept if key.startswith("card-")]
    covered = [row for row in rows if row["state"] == "approved" and row["idempotency_key"] not in bank.decided]
    assert len(bank.kept) - len(checks) == len(kept)
    assert [row for row in rows if row["difference"] and (row in kept) != (row["told"] == "paid")] == []
    paid = [(row["subscription_id"], row["period_number"]) for row in kept + covered if not row["difference"]]
    told = await world.subscriber.told()
    for subscription in world.subscriptions:
        current = await world.subscriber.now(subscription)
        ends = [one for one in told if one["event"] in ENDS and one["subscription"]["id"] == subscription.id]
        assert len(ends) == (current.state == "Cancelled"), "an end is told, once"
        periods = sorted(period for of, period in paid if of == subscription.id)
        terms = current.package.terms
        assert periods == list(range(0 if terms.trial else 1, current.next_period))
        assert current.paid_number_counter == len(periods)
        assert current.counter <= (terms.limit or current.counter), "no more are charged than were agreed"
        disputed = [row for row in kept if row["idempotency_key"] in bank.taken_back and not row["difference"]]
        ended = subscription.id in {row["subscription_id"] for row in disputed}
        assert not (ended and current.running), "a chargeback ends it"
        await assert_worth(world, subscription)
    orders = [one["payment_order"]["merchant_order_id"] for one in told if one["event"] == "payment"]
    assert len(orders) == len(set(orders)) == len(kept + covered)
    differences = len([row for row in kept if row["difference"]])
    known = "select count(*) from subscription_proration where merchant_id = $1"
    assert await database.fetchval(known, merchant_id) == world.prorated + differences
    await assert_given_back(world)


async def assert_given_back(world: World) -> None:
    """Each payment is refunded and charged back as at the bank."""
    for row in await world.subscriber.database.fetch(
        "select a.idempotency_key as key, p.refunded, p.refunding, p.charged_back from payment p"
        " join payment_attempt a on a.merchant_id = p.merchant_id and a.id = p.attempt_id"
        " where p.merchant_id = $1 and p.paid_at is not null",
        world.subscriber.shop.merchant_id,
    ):
        taken_back = sum(one.amount for one in world.bank.disputed if one.of_key == row["key"])
        assert tuple(row)[1:] == (world.bank.given_of(row["key"]), 0, taken_back)


async def assert_worth(world: World, subscription: Subscription) -> None:
    """What was charged, with the balance, is the time-weighted price of all periods, exactly,
    with the items that were not taken back, each once; until the first change of plan each period
    is for what the coupon left.
    """
    database, of = world.subscriber.database, (world.subscriber.shop.merchant_id, subscription.id)
    periods = await database.fetch(
        "select period_number, amount, amount + coalesce(into_balance, 0) as price from payment"
        " where merchant_id = $1 and subscription_id = $2 and paid_at is not null",
        *of,
    )
    changes = await database.fetch(
        "select * from subscription_proration where merchant_id = $1 and subscription_id = $2 order by change_id",
        *of,
    )
    at_once = await database.fetchval(
        "select coalesce(sum(charged), 0) from subscription_difference"
        " where merchant_id = $1 and subscription_id = $2 and state = 'paid'",
        *of,
    )
    worth = sum(
        worth_of(one["price"], [each for each in changes if each["period_number"] == one["period_number"]])
        for one in periods
    )
    extra = await database.fetchval(
        "select coalesce(sum(amount), 0) from subscription_item"
        " where merchant_id = $1 and subscription_id = $2 and taken_back_at is null",
        *of,
    )
    charged = sum(one["amount"] for one in periods) + at_once
    assert charged + await find_balance(database, world.subscriber.shop, subscription.id) == worth + extra
    changed_from = await database.fetchval(
        "select min(period_number) from subscription_change"
        " where merchant_id = $1 and subscription_id = $2 and type = 'change' and state = 'done'",
        *of,
    )
    coupon = world.coupon if subscription == world.subscriptions[0] else None
    for one in periods:
        if one["period_number"] > 0 and (changed_from is None or one["period_number"] < changed_from):
            assert one["price"] == with_coupon(MONTHLY.price, coupon, one["period_number"])


def with_coupon(price: Decimal, coupon: Mapping[str, str] | None, period: int) -> Decimal:
    """What a coupon leaves of a price, as long as it is for."""
    if coupon is None or period > int(coupon.get("periods", period)):
        return price
    return price - Decimal(coupon.get("amount", 0)) - price * int(coupon.get("percent", 0)) / 100


def worth_of(price: Decimal, changes: Sequence[Mapping[str, Any]]) -> Decimal:
    """A period's time-weighted price, to four decimals: each price for its share of the seconds,
    and what was given back of one, as far as it was for what was left when it changed: no credit
    is for that.
    """
    worth, since = Fraction(0), Fraction(1)
    for change in changes:
        second = timedelta(seconds=1)
        left = (change["ends_at"] - change["at"]) // second
        unused = Fraction(left, (change["ends_at"] - change["began_at"]) // second)
        worth += Fraction(price) * (since - unused) + Fraction(min(change["given_back"], price)) * unused
        since, price = unused, change["new_price"]
    return Decimal(round((worth + Fraction(price) * since) * 10_000)) / 10_000


async def begin(
    till: Till, terms: Terms, order: str, coupon: Mapping[str, str] | None, *, cardless: bool = False
) -> Subscription:
    """A customer subscribes, with a coupon if there is one, without a card where that may be."""
    link = await till.order(order, terms=terms)
    if coupon is not None:
        typed = read_terms({"code": "CLUB", **coupon}, (), valid_from=None, valid_until=None)
        await make_coupon(till.database, till.shop, typed, now=utc_now())
        link = await apply_coupon(till.database, await till.find(link), "club")
    checkout = await till.find(link)
    if cardless and terms.trial is not None and not terms.trial.price:
        guest = Guest("ada@example.com", "192.0.2.1", agreed="ok")
        assert await begin_free_trial(till.desk, checkout, guest, now=checkout.now) == Paid()
    else:
        await till.pay(link)
    return await subscription_of(till.database, till.shop, order)


async def live_through(
    database: Database,
    vault: Vault,
    terms: Terms,
    coupon: Mapping[str, str] | None,
    plan: Sequence[tuple[Any, ...]],
    *,
    cardless: bool = False,
    begins: tuple[str, datetime] | None = None,
) -> None:
    """Do the steps to two subscriptions of a new merchant, and see that every promise is kept."""
    await set_back.banks_tell_again(database)
    merchant = await create_merchant(database, vault, name="Club", email="c@shop.example", now=utc_now())
    await change_merchant(database, merchant.id, trials_without_card=cardless)
    bank = TakingBackBank()
    till = Till(Desk(database, vault, {"simulator": bank}), shop_of(merchant, live=False))
    world = World(till, bank, coupon=coupon)
    if begins is not None:
        await world.begin_at(*begins)
    for which, other in enumerate((terms, replace(MONTHLY, sku_id=secrets.token_hex(4)))):
        used = None if which else coupon
        world.subscriptions.append(await begin(till, other, f"order-{which}", used, cardless=cardless))
    for step in plan:
        await world.step(*step)
        await assert_true(world)
    bank.hidden.clear()
    for minutes in (1, 3, 70, 150):
        await world.settle(minutes)
    await assert_true(world)
    await assert_settled(world)


@settings(
    max_examples=at_length(20, 4),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    terms=agreed,
    coupon=st.sampled_from(COUPONS),
    cardless=st.booleans(),
    begins=st.sampled_from(BEGINNINGS),
    plan=st.lists(steps, min_size=4, max_size=18),
)
async def test_any_interleaving_keeps_every_promise(
    database: Database,
    vault: Vault,
    terms: Terms,
    coupon: Mapping[str, str] | None,
    cardless: bool,
    begins: tuple[str, datetime] | None,
    plan: list[tuple[Any, ...]],
) -> None:
    await live_through(database, vault, terms, coupon, plan, cardless=cardless, begins=begins)


Plant = Callable[[pytest.MonkeyPatch], None]


def misspelt(queries: Statements, name: str, right: str, wrong: str) -> Plant:
    """A statement says something else in one place."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        text = queries._path.read_text()
        assert text.count(right) == 1
        monkeypatch.setattr(queries, name, getattr(aiosql.from_str(text.replace(right, wrong), "asyncpg"), name))

    return plant


def another_way(room: object, name: str, does: Any) -> Plant:
    """A function does something else."""
    return lambda monkeypatch: monkeypatch.setattr(room, name, does)


def due_for_ever(calendar: Schedule, number: int) -> datetime:
    """The charge for a period is due, whatever number of payments was agreed."""
    return occurrence(calendar.anchor, calendar.terms.period, number - 1 + calendar.skipped, calendar.time_zone)


def of_all_that_was_paid(change: Proration) -> Fraction:
    """What a change comes to if nothing was given back."""
    return (Fraction(change.new_price) - Fraction(change.old_price)) * change.unused


def under_another_key(row: MovementRow) -> Movement:
    """A movement whose key is made anew each time."""
    return replace(movement_of(row), key=secrets.token_hex(16))


async def nobody_ends(*_database: Any, **_names: Any) -> None:
    """Subscriptions go on whatever was charged back."""


async def books_nothing(*_told: Any, **_names: Any) -> Booked:
    """A dispute is passed by."""
    return Booked(changed=False)


DUE = "s.date_next <= timed.shop_now\n            and s.charging_attempt_id is null"
WITHOUT_A_DATE = misspelt(charging.queries, "begin_renewals", DUE, f"(s.date_next is null or {DUE})")
CHARGED_BACK = (("charge",), ("charge back", 0, True))
GIVEN_BACK = (("charge",), ("give back", 0, "0.5", ""), ("give back", 1, "0.5", ""))
BUGS: Mapping[str, tuple[Plant, Terms, tuple[tuple[Any, ...], ...]]] = {
    "charges who is paused": (WITHOUT_A_DATE, MONTHLY, (("want", "pause", 0), ("charge",))),
    "charges who has ended": (WITHOUT_A_DATE, MONTHLY, (("cancel", 0), ("charge",))),
    "charges more than were agreed": (
        another_way(Schedule, "due", due_for_ever),
        replace(MONTHLY, limit=2),
        (("live on", 6),),
    ),
    "credits what was given back": (
        another_way(Proration, "exact", property(of_all_that_was_paid)),
        MONTHLY,
        (*GIVEN_BACK, ("change", "next_charge", 0, "price")),
    ),
    "gives back under another key": (
        another_way(movements, "movement_of", under_another_key),
        MONTHLY,
        (("charge",), ("give back", 0, None, "answer")),
    ),
    "charges what was taken back": (
        misspelt(items.queries, "take_back_item", "balance = s.balance - was.amount", "balance = s.balance"),
        MONTHLY,
        (("add item", 0, "2.50"), ("take back", 0), ("charge",)),
    ),
    "passes a chargeback by": (another_way(reading_acquirers, "record_dispute", books_nothing), MONTHLY, CHARGED_BACK),
    "goes on after a chargeback": (
        another_way(reading_acquirers, "_end_subscriptions", nobody_ends),
        MONTHLY,
        CHARGED_BACK,
    ),
}


@pytest.mark.parametrize("bug", BUGS)
async def test_a_bug_is_found(database: Database, vault: Vault, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    plant, terms, plan = BUGS[bug]
    await live_through(database, vault, terms, None, plan)
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        await live_through(database, vault, terms, None, plan)
