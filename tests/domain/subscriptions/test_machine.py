"""The real statements under any interleaving of charges, changes and ends, with a bank that loses
messages and is slow to know what it did.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import set_back
from tests.banks import ObedientBank
from tests.lengths import at_length
from tests.proving import check
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.merchant import change_merchant, create_merchant, shop_of
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.changing import cancel_later, carry_out_due, pause, resume, undo
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.ending import cancel, expire_due
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

REFUSALS = (None, None, DeclineReason.INSUFFICIENT_FUNDS, DeclineReason.STOLEN_CARD, DeclineReason.TOO_LATE)

WISHES = ("cancel later", "undo", "pause", "pause until", "plan", "plan at once", "resume")

steps = st.one_of(
    st.tuples(
        st.just("charge"), st.sampled_from(REFUSALS), st.sampled_from(("", "", "question", "answer")), st.booleans()
    ),
    st.tuples(st.just("charge"), st.none(), st.just(""), st.just(False)),
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
            case ("charge", refuse, lose, hide):
                await self.move_to_next()
                self.bank.refuse, self.bank.lose, self.bank.hide = refuse, lose, bool(hide and lose)  # type: ignore[assignment]
                await self.subscriber.charge(self.now)
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
                case "plan at once":
                    seen = (await self.subscriber.now(self.subscriptions[number])).package.terms
                    plan = Plan(price=f"{seen.price % 30 + 10:.2f}")
                    await change_plan(*named, plan, by="api", at_once=True, now=self.now)
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
            "select p.subscription_id, p.period_number, p.paid_at, a.idempotency_key, a.state from payment_attempt a"
            " join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id where a.merchant_id = $1"
            " order by a.id",
            merchant_id,
        )
        kept = [
            (row["subscription_id"], row["period_number"]) for row in rows if row["idempotency_key"] in self.bank.kept
        ]
        assert len(self.bank.kept) == len(kept) == len(set(kept))
        for subscription in self.subscriptions:
            current = await self.subscriber.now(subscription)
            ends = [
                one["event"]
                for one in await self.subscriber.told(but="payment")
                if one["subscription"]["id"] == subscription.id
            ]
            assert len(ends) == (current.state == "Cancelled"), "an end is told, once"
            periods = [period for of, period in kept if of == subscription.id]
            first = 0 if current.package.terms.trial else 1
            assert periods == list(range(first, current.next_period))
            assert current.paid_number_counter == len(periods)
        told = [
            one["payment_order"]["merchant_order_id"]
            for one in await self.subscriber.told()
            if one["event"] == "payment"
        ]
        assert len(told) == len(set(told)) == len(kept)


@settings(
    max_examples=at_length(20, 4),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(terms=agreed, plan=st.lists(steps, min_size=4, max_size=18))
async def test_any_interleaving_keeps_every_promise(
    database: Database, vault: Vault, terms: Terms, plan: list[tuple[object, ...]]
) -> None:
    await set_back.nothing_to_look_up(database)
    merchant = await create_merchant(database, vault, name="Club", email="c@shop.example", now=utc_now())
    bank = ObedientBank()
    world = World(Till(Desk(database, vault, {"simulator": bank}), shop_of(merchant, live=False)), bank)
    for other in (terms, replace(MONTHLY, sku_id=secrets.token_hex(4))):
        world.subscriptions.append(await world.subscriber.subscribe(other, order=f"order-{len(world.subscriptions)}"))
    for step in plan:
        await world.take(step)
        await world.assert_true()
    bank.hidden.clear()
    for minutes in (1, 3, 70, 150):
        await world.subscriber.settle_all(minutes=minutes)
    await world.assert_true()
    await world.assert_settled()
