"""The real statements under any interleaving of charges, changes, coupons and ends, with a bank
that loses messages and is slow to know what it did.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import set_back
from tests.banks import ObedientBank
from tests.lengths import at_length
from tests.proving import check
from tests.shopfront import MONTHLY, subscription_of
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.coupons.applying import apply_coupon
from paydesk.domain.coupons.coupons import read_terms
from paydesk.domain.coupons.keeping import make_coupon
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.merchant import change_merchant, create_merchant, shop_of
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.changing import cancel_later, carry_out_due, pause, resume, undo
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating, change_plan
from paydesk.domain.subscriptions.ending import cancel, expire_due
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

REFUSALS = (None, None, DeclineReason.INSUFFICIENT_FUNDS, DeclineReason.STOLEN_CARD, DeclineReason.TOO_LATE)

WISHES = ("cancel later", "undo", "pause", "pause until", "plan", "plan at once", "plan prorated", "resume")

COUPONS = (
    None,
    {"percent": "50"},
    {"percent": "25", "periods": "1"},
    {"amount": "2.50", "currency": "USD", "periods": "2"},
)

steps = st.one_of(
    st.tuples(
        st.just("charge"), st.sampled_from(REFUSALS), st.sampled_from(("", "", "question", "answer")), st.booleans()
    ),
    st.tuples(st.just("charge"), st.none(), st.just(""), st.just(False)),
    st.tuples(
        st.just("difference"),
        st.sampled_from((*REFUSALS, None, None)),
        st.sampled_from(("", "", "question", "answer")),
        st.booleans(),
    ),
    st.tuples(st.just("difference"), st.none(), st.sampled_from(("", "answer")), st.just(False)),
    st.just(("charge", None, "answer", True)),
    st.just(("give up",)),
    st.tuples(st.just("wait"), st.integers(1, 24 * 40)),
    st.tuples(st.just("settle"), st.sampled_from((1, 3))),
    st.tuples(st.just("die")),
    st.tuples(st.just("replace card")),
    st.tuples(st.just("cancel"), st.integers(0, 3)),
    st.tuples(st.just("change"), st.sampled_from((*WISHES, *WISHES, None)), st.integers(0, 1)),
    st.tuples(st.just("change"), st.sampled_from((*WISHES, *WISHES, None)), st.integers(0, 1)),
    st.tuples(st.just("reveal")),
    st.tuples(
        st.just("change"),
        st.tuples(st.sampled_from(((), (1,), (24, 72), (48,) * 5)), st.booleans(), st.sampled_from(DunningEnd)),
        st.just(0),
    ),
)
agreed = st.builds(
    replace,
    st.just(MONTHLY),
    period=st.builds(Period, st.integers(1, 2), st.sampled_from(("day", "week", "month"))),
    trial=st.sampled_from((None, Trial(Decimal(0), Period(14, "day")), Trial(Decimal(30), Period(1, "month")))),
    limit=st.integers(0, 4),
)


@dataclass
class World:
    """A merchant with two subscriptions, its clock, and the bank."""

    subscriber: Till
    bank: ObedientBank
    subscriptions: list[Subscription] = field(default_factory=list)
    ahead: timedelta = timedelta()
    coupon: Mapping[str, str] | None = None
    """That of the first one."""
    prorated: int = 0
    """How many changes of plan have put something into a balance, and charged nothing."""

    @property
    def now(self) -> datetime:
        return utc_now() + self.ahead

    async def move_clock(self, hours: int) -> None:
        self.ahead += timedelta(hours=hours)
        await set_back.clock_runs_ahead(self.subscriber.desk.database, self.subscriber.shop.merchant_id, self.ahead)

    async def move_to_next(self) -> None:
        """Move the clock to when something is due: a charge, or a change."""
        known = [await self.subscriber.now(one) for one in self.subscriptions]
        asked = [one.date_next or (one.change.due_at if one.change else None) for one in known]
        dates = [one for one in asked if one]
        if dates and min(dates) > self.now:
            await self.move_clock(int((min(dates) - self.now) / timedelta(hours=1)) + 1)

    async def take(self, step: tuple[object, ...]) -> None:
        """Do one step."""
        database, shop = self.subscriber.desk.database, self.subscriber.shop
        match step:
            case (("charge" | "difference") as what, refuse, lose, hide):
                self.bank.refuse, self.bank.lose, self.bank.hide = refuse, lose, bool(hide and lose)  # type: ignore[assignment]
                await (self.charge() if what == "charge" else self.charge_difference())
                self.bank.refuse, self.bank.lose, self.bank.hide = None, "", False
            case ("give up",):
                await self.take(("charge", None, "answer", True))
                await self.subscriber.settle_all(minutes=3)
            case ("wait", int(hours)):
                await self.move_clock(hours)
                await expire_due(database, real_now=utc_now(), merchant_id=shop.merchant_id, at=self.now)
                await self.carry_out()
            case ("settle", int(minutes)):
                await self.subscriber.settle_all(minutes=minutes)
            case ("die",):
                await self.move_to_next()
                await self.subscriber.die_after_claim(self.now)
            case ("replace card",):
                await set_back.card_replaced(self.subscriber.desk, self.subscriptions[0])
            case ("cancel", int(which)) if which < len(self.subscriptions):
                await cancel(database, shop, self.subscriptions[which].id, by="api", now=self.now)
            case ("change", wish, int(number)):
                await self.change(wish, number)
            case ("reveal",):
                self.bank.hidden.clear()

    async def carry_out(self) -> None:
        """Workers carry out the changes that are due."""
        database, merchant_id = self.subscriber.desk.database, self.subscriber.shop.merchant_id
        await carry_out_due(database, real_now=utc_now(), merchant_id=merchant_id, at=self.now)

    async def charge(self) -> None:
        """Workers charge what is due next, once it is."""
        await self.move_to_next()
        await self.subscriber.charge(self.now)

    async def charge_difference(self) -> None:
        """Somebody wants the first one to be of a plan at another price, charged now."""
        first = self.subscriptions[0]
        plan = Plan(price=f"{(await self.subscriber.now(first)).package.terms.price % 30 + 10:.2f}")
        wish = AtOnce(first.id, plan, by="api", now=self.now)
        with suppress(Conflict, NotCharged):
            done = await change_and_charge(self.subscriber.desk, self.subscriber.shop, wish)
            self.prorated += done.changed.moved and not done.difference.amount

    async def change(self, wish: object, number: int) -> None:
        """Somebody wants a change of one, and what can't be is refused; or what is due next is done
        so many hours later; or the merchant has another dunning plan.
        """
        named = (self.subscriber.desk.database, self.subscriber.shop, self.subscriptions[number].id)
        with suppress(Conflict):
            match wish:
                case None:
                    await self.move_to_next()
                    await self.move_clock(number)
                    await self.carry_out()
                case (tuple(delays), bool(by_reason), DunningEnd() as end):
                    merchant_id = self.subscriber.shop.merchant_id
                    await change_merchant(
                        named[0], merchant_id, dunning_hours=delays, dunning_by_reason=by_reason, dunning_end=end
                    )
                case "cancel later":
                    await cancel_later(*named, by="customer", now=self.now)
                case "undo":
                    await undo(*named, now=self.now)
                case "pause":
                    await pause(*named, by="customer", now=self.now)
                case "pause until":
                    await pause(*named, until=self.now + timedelta(days=20), by="api", now=self.now)
                case "plan":
                    # In turn: another price, another rhythm, and back.
                    seen = (await self.subscriber.now(self.subscriptions[number])).package.terms
                    price, period = f"{seen.price % 30 + 10:.2f}", ("1m", "2m", "1w")[int(seen.price // 10) % 3]
                    await change_plan(*named, Plan(price=price, period=period), by="api", now=self.now)
                case "plan at once" | "plan prorated":
                    seen = (await self.subscriber.now(self.subscriptions[number])).package.terms
                    plan = Plan(price=f"{seen.price % 30 + 10:.2f}")
                    how = Prorating.NEXT_CHARGE if wish == "plan prorated" else Prorating.NONE
                    done = await change_plan(*named, plan, by="api", at_once=True, prorating=how, now=self.now)
                    self.prorated += done.proration is not None
                case "resume":
                    await resume(*named, now=self.now)

    async def assert_true(self) -> None:
        """What must hold at any time: the books are in order,
        and the bank took no period twice unless it is undone.
        """
        database, merchant_id = self.subscriber.desk.database, self.subscriber.shop.merchant_id
        found = await check(database, now=self.now, merchant_id=merchant_id)
        assert [
            (finding.rule.statement, one.detail)
            for finding in found
            for one in finding.differences
            if finding.rule.statement != "outcomes_known"  # the clock jumps over days
        ] == []

    async def assert_settled(self) -> None:
        """What must hold once all is known: the bank kept exactly the money of each period
        that is paid, in order.
        """
        database, merchant_id = self.subscriber.desk.database, self.subscriber.shop.merchant_id
        rows = await database.fetch(
            "select coalesce(p.subscription_id, d.subscription_id) as subscription_id, p.period_number, d.attempt_id as"
            " difference, a.idempotency_key, a.state, a.amount, d.state as told from payment_attempt a"
            " join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id"
            " left join subscription_difference d on d.merchant_id = a.merchant_id and d.attempt_id = a.id"
            " where a.merchant_id = $1 order by a.id",
            merchant_id,
        )
        kept = [row for row in rows if row["idempotency_key"] in self.bank.kept]
        asked = self.bank.decided
        covered = [row for row in rows if row["state"] == "approved" and row["idempotency_key"] not in asked]
        assert len(self.bank.kept) == len(kept)
        assert [row for row in rows if row["difference"] and (row in kept) != (row["told"] == "paid")] == []
        paid = [(row["subscription_id"], row["period_number"]) for row in kept + covered if not row["difference"]]
        for subscription in self.subscriptions:
            current = await self.subscriber.now(subscription)
            ends = [
                one["event"]
                for one in await self.subscriber.told(but="payment")
                if one["subscription"]["id"] == subscription.id
            ]
            assert len(ends) == (current.state == "Cancelled"), "an end is told, once"
            periods = sorted(period for of, period in paid if of == subscription.id)
            first = 0 if current.package.terms.trial else 1
            assert periods == list(range(first, current.next_period))
            assert current.paid_number_counter == len(periods)
            await self.assert_worth(subscription)
        told = [
            one["payment_order"]["merchant_order_id"]
            for one in await self.subscriber.told()
            if one["event"] == "payment"
        ]
        assert len(told) == len(set(told)) == len(kept + covered)
        differences = len([row for row in kept if row["difference"]])
        known = "select count(*) from subscription_proration where merchant_id = $1"
        assert await database.fetchval(known, merchant_id) == self.prorated + differences

    async def assert_worth(self, subscription: Subscription) -> None:
        """What was charged, with the balance, is the time-weighted price of all periods, exactly;
        until the first change of plan each is for what the coupon left.
        """
        database, of = self.subscriber.desk.database, (self.subscriber.shop.merchant_id, subscription.id)
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
        charged = sum(one["amount"] for one in periods) + at_once
        assert charged + await find_balance(database, self.subscriber.shop, subscription.id) == worth
        changed_from = await database.fetchval(
            "select min(period_number) from subscription_change"
            " where merchant_id = $1 and subscription_id = $2 and type = 'change' and state = 'done'",
            *of,
        )
        coupon = self.coupon if subscription == self.subscriptions[0] else None
        for one in periods:
            if one["period_number"] > 0 and (changed_from is None or one["period_number"] < changed_from):
                assert one["price"] == with_coupon(MONTHLY.price, coupon, one["period_number"])


def with_coupon(price: Decimal, coupon: Mapping[str, str] | None, period: int) -> Decimal:
    """What a coupon leaves of a price, as long as it is for."""
    if coupon is None or period > int(coupon.get("periods", period)):
        return price
    return price - Decimal(coupon.get("amount", 0)) - price * int(coupon.get("percent", 0)) / 100


def worth_of(price: Decimal, changes: Sequence[Mapping[str, Any]]) -> Decimal:
    """A period's time-weighted price, to four decimals: each price for its share of the seconds."""
    worth, since = Fraction(0), Fraction(1)
    for change in changes:
        second = timedelta(seconds=1)
        left = (change["ends_at"] - change["at"]) // second
        unused = Fraction(left, (change["ends_at"] - change["began_at"]) // second)
        worth, since, price = worth + Fraction(price) * (since - unused), unused, change["new_price"]
    return Decimal(round((worth + Fraction(price) * since) * 10_000)) / 10_000


async def begin(till: Till, terms: Terms, order: str, coupon: Mapping[str, str] | None) -> Subscription:
    """A customer subscribes, with a coupon if there is one."""
    link = await till.order(order, terms=terms)
    if coupon is not None:
        typed = read_terms({"code": "CLUB", **coupon}, (), valid_from=None, valid_until=None)
        await make_coupon(till.database, till.shop, typed, now=utc_now())
        link = await apply_coupon(till.database, await till.find(link), "club")
    await till.pay(link)
    return await subscription_of(till.database, till.shop, order)


@settings(
    max_examples=at_length(20, 4),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(terms=agreed, coupon=st.sampled_from(COUPONS), plan=st.lists(steps, min_size=4, max_size=18))
async def test_any_interleaving_keeps_every_promise(
    database: Database,
    vault: Vault,
    terms: Terms,
    coupon: Mapping[str, str] | None,
    plan: list[tuple[object, ...]],
) -> None:
    await set_back.nothing_to_look_up(database)
    merchant = await create_merchant(database, vault, name="Club", email="c@shop.example", now=utc_now())
    bank = ObedientBank()
    till = Till(Desk(database, vault, {"simulator": bank}), shop_of(merchant, live=False))
    world = World(till, bank, coupon=coupon)
    for number, other in enumerate((terms, replace(MONTHLY, sku_id=secrets.token_hex(4)))):
        world.subscriptions.append(await begin(world.subscriber, other, f"order-{number}", None if number else coupon))
    for step in plan:
        await world.take(step)
        await world.assert_true()
    bank.hidden.clear()
    for minutes in (1, 3, 70, 150):
        await world.subscriber.settle_all(minutes=minutes)
    await world.assert_true()
    await world.assert_settled()
