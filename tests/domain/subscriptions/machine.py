"""A merchant with two subscriptions, its clock and a bank, and all that may be done to them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests import breaking, set_back
from tests.banks import TakingBackBank
from tests.shopfront import GOOD
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.domain.billing.card_lookups import settle_card_changes
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.billing.replacing_cards import NewCard, replace_card
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.subscriptions.changing import cancel_later, carry_out_due, pause, resume, undo
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating, change_plan
from paydesk.domain.subscriptions.ending import cancel, expire_due
from paydesk.domain.subscriptions.items import WantedItem, add_item, list_items, take_back_item
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.rows import NO_ACCOUNT

BEGINNINGS = (
    None,
    ("Europe/Berlin", datetime(2027, 2, 28, 23, 30, tzinfo=UTC)),  # March by the merchant's calendar
    ("America/New_York", datetime(2027, 11, 7, 6, 30, tzinfo=UTC)),  # the second half past one of that night
    ("Australia/Lord_Howe", datetime(2028, 2, 29, 12, tzinfo=UTC)),
    ("Asia/Kathmandu", datetime(2027, 1, 31, 18, 14, 59, tzinfo=UTC)),  # a second before February
)
"""Calendars, and when subscriptions begin by them; else by UTC, and now."""


@dataclass
class World:
    """What the machine's steps are done to; a step is the name of a method and what it takes."""

    subscriber: Till
    bank: TakingBackBank
    subscriptions: list[Subscription] = field(default_factory=list)
    ahead: timedelta = timedelta()
    coupon: Mapping[str, str] | None = None
    """That of the first one."""
    prorated: int = 0
    """How many changes of plan have put something into a balance, and charged nothing."""

    @property
    def now(self) -> datetime:
        return utc_now() + self.ahead

    async def known(self, number: int) -> Subscription:
        """One of the two as it stands."""
        return await self.subscriber.now(self.subscriptions[number])

    async def step(self, name: str, *how: object) -> None:
        """Do one step, and see that nobody was charged who is paused or has ended."""
        before = await self.resting()
        await getattr(self, name.replace(" ", "_"))(*how)
        after = await self.resting()
        assert {one: charges for one, charges in before.items() if after.get(one, charges) != charges} == {}

    async def resting(self) -> dict[int, int]:
        """Those that must not be charged as they are, and how many charges each has had."""
        rows = await self.subscriber.database.fetch(
            "select p.subscription_id as id from payment_attempt a"
            " join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id where a.merchant_id = $1"
            " union all select d.subscription_id from subscription_difference d where d.merchant_id = $1",
            self.subscriber.shop.merchant_id,
        )
        known = [await self.known(number) for number in range(len(self.subscriptions))]
        charges = [row["id"] for row in rows]
        return {one.id: charges.count(one.id) for one in known if one.paused or not one.running}

    # The clock, and what it makes due.

    async def begin_at(self, zone: str, at: datetime) -> None:
        """It is this moment, for a merchant with the calendar of a time zone."""
        await breaking.say(
            self.subscriber.database, "merchant", {"id": self.subscriber.shop.merchant_id}, time_zone=zone
        )
        await self.move_clock((at - utc_now()) / timedelta(hours=1))

    async def move_clock(self, hours: float) -> None:
        self.ahead += timedelta(hours=hours)
        await set_back.clock_runs_ahead(self.subscriber.database, self.subscriber.shop.merchant_id, self.ahead)

    async def move_to_next(self) -> None:
        """Move the clock to when something is due: a charge, or a change."""
        known = [await self.subscriber.now(one) for one in self.subscriptions]
        asked = [one.date_next or (one.change.due_at if one.change else None) for one in known]
        dates = [one for one in asked if one]
        if dates and min(dates) > self.now:
            await self.move_clock(int((min(dates) - self.now) / timedelta(hours=1)) + 1)

    async def carry_out(self) -> None:
        """Workers carry out the changes that are due."""
        database, merchant_id = self.subscriber.database, self.subscriber.shop.merchant_id
        await carry_out_due(database, real_now=utc_now(), merchant_id=merchant_id, at=self.now)

    async def wait(self, hours: int) -> None:
        """Time passes; workers end and change what is due, and charge nothing yet."""
        database, merchant_id = self.subscriber.database, self.subscriber.shop.merchant_id
        await self.move_clock(hours)
        await expire_due(database, real_now=utc_now(), merchant_id=merchant_id, at=self.now)
        await self.carry_out()

    async def carry_out_later(self, hours: int) -> None:
        """What is due next is done so many hours later, if it is a change."""
        await self.move_to_next()
        await self.move_clock(hours)
        await self.carry_out()

    # What is charged, and what the bank makes of it.

    async def charge(self, refuse: DeclineReason | None = None, lose: str = "", hide: bool = False) -> None:
        """Workers charge what is due next, once it is."""
        await self.move_to_next()
        self.bank.refuse, self.bank.lose, self.bank.hide = refuse, lose, bool(hide and lose)
        await self.subscriber.charge(self.now)
        self.bank.refuse, self.bank.lose, self.bank.hide = None, "", False

    async def live_on(self, periods: int) -> None:
        """All goes well for so many charges and changes."""
        for _ in range(periods):
            await self.carry_out()
            await self.charge()

    async def give_up(self) -> None:
        """The bank's answer is lost, and it does not know what it did as long as anybody asks."""
        await self.charge(None, "answer", hide=True)
        await self.subscriber.settle_all(minutes=3)

    async def die(self) -> None:
        """A worker dies between its intents and its calls."""
        await self.move_to_next()
        await self.subscriber.die_after_claim(self.now)

    async def difference(self, refuse: DeclineReason | None, lose: str, hide: bool, other: str) -> None:
        """Somebody wants the first one to be of another price, number or rhythm, charged now; with
        another rhythm, or in a trial, another period begins.
        """
        wish = AtOnce(self.subscriptions[0].id, await self.another(0, other), by="api", now=self.now)
        self.bank.refuse, self.bank.lose, self.bank.hide = refuse, lose, bool(hide and lose)
        with suppress(Conflict, NotCharged):
            done = await change_and_charge(self.subscriber.desk, self.subscriber.shop, wish)
            self.prorated += done.changed.moved and not done.difference.amount
        self.bank.refuse, self.bank.lose, self.bank.hide = None, "", False

    async def settle(self, minutes: int) -> None:
        """The janitor's rounds, some time from now; and what the bank tells of disputes is read."""
        await self.subscriber.settle_all(minutes=minutes)
        await settle_card_changes(self.subscriber.desk, now=utc_now() + timedelta(minutes=minutes))
        await set_back.movements_let_go(self.subscriber.database)
        await self.subscriber.finish(minutes=minutes)
        await read_disputes(self.subscriber.desk, now=utc_now())

    async def reveal(self) -> None:
        """The bank knows at last what it did."""
        self.bank.hidden.clear()

    # What comes after a payment.

    async def purchase(self, which: int) -> Any:
        """One of the last purchases that were paid, a period or a difference; None if there are not
        as many.
        """
        return await self.subscriber.database.fetchrow(
            "select p.id, p.amount, a.idempotency_key as key from payment p"
            " join payment_attempt a on a.merchant_id = p.merchant_id and a.id = p.attempt_id"
            " where p.merchant_id = $1 and p.paid_at is not null order by p.paid_at desc, p.id desc limit 1 offset $2",
            self.subscriber.shop.merchant_id,
            which,
        )

    async def give_back(self, which: int, share: str | None, lose: str) -> None:
        """The merchant gives back one of the last payments, or a share of it."""
        if (bought := await self.purchase(which)) is None:
            return
        amount = None if share is None else (bought["amount"] * Decimal(share)).quantize(Decimal("0.01"))
        self.bank.lose = lose
        with suppress(Conflict, Malformed):
            await self.subscriber.give_back(bought["id"], amount, now=self.now)
        self.bank.lose = ""

    async def charge_back(self, which: int, is_read: bool) -> None:
        """A customer has one of the last payments charged back; a worker hears of it or not yet."""
        if (bought := await self.purchase(which)) is not None:
            self.bank.dispute(bought["key"], bought["amount"], at=utc_now())
        if is_read:
            await read_disputes(self.subscriber.desk, now=utc_now())

    # What customers and the merchant want.

    async def replace_card(self) -> None:
        """A customer who has given a card has given another one."""
        if not await self._waits_for_card():
            await set_back.card_replaced(self.subscriber.desk, self.subscriptions[0])

    async def give_card(self, refuse: DeclineReason | None, lose: str) -> None:
        """Who has begun a trial without a card gives one, which the bank checks."""
        if not await self._waits_for_card():
            return
        new = NewCard(CardDetails(GOOD, 12, 2040, "Ada", "123"), "192.0.2.1", "https://pay.test/back")
        self.bank.refuse, self.bank.lose = refuse, lose
        with suppress(Conflict):
            await replace_card(self.subscriber.desk, await self.known(0), None, new, now=utc_now())
        self.bank.refuse, self.bank.lose = None, ""

    async def _waits_for_card(self) -> bool:
        row = await self.subscriber.database.fetchrow(
            "select acquirer from subscription where merchant_id = $1 and id = $2",
            self.subscriber.shop.merchant_id,
            self.subscriptions[0].id,
        )
        return bool(row["acquirer"] == NO_ACCOUNT)

    async def cancel(self, number: int) -> None:
        await cancel(*self._named(number), by="api", now=self.now)

    async def dun(self, delays: tuple[int, ...], by_reason: bool, end: DunningEnd) -> None:
        """The merchant has another dunning plan."""
        database, merchant_id = self.subscriber.database, self.subscriber.shop.merchant_id
        await change_merchant(database, merchant_id, dunning_hours=delays, dunning_by_reason=by_reason, dunning_end=end)

    async def want(self, wish: str, number: int) -> None:
        """Somebody wants a change of one, and what can't be is refused."""
        named = self._named(number)
        with suppress(Conflict):
            match wish:
                case "cancel later":
                    await cancel_later(*named, by="customer", now=self.now)
                case "undo":
                    await undo(*named, now=self.now)
                case "pause":
                    await pause(*named, by="customer", now=self.now)
                case "pause until":
                    await pause(*named, until=self.now + timedelta(days=20), by="api", now=self.now)
                case "resume":
                    await resume(*named, now=self.now)

    async def add_item(self, number: int, amount: str) -> None:
        """The merchant has the next charge take something besides; where none comes that is
        refused.
        """
        wanted = WantedItem(Decimal(amount), "Extra")
        with suppress(Conflict):
            await add_item(*self._named(number), wanted, by="api", now=self.now)

    async def take_back(self, number: int) -> None:
        """The merchant takes the newest item back, if it still can be."""
        for item in (await list_items(*self._named(number)))[:1]:
            with suppress(Conflict):
                await take_back_item(*self._named(number), item.id, now=self.now)

    async def change(self, how: str, number: int, other: str) -> None:
        """Somebody wants another price, number or rhythm, and what can't be is refused."""
        wanted = await self.another(number, other)
        with suppress(Conflict):
            match how:
                case "next":
                    await change_plan(*self._named(number), wanted, by="api", now=self.now)
                case _:
                    prorating = Prorating(how)
                    await self._change_at_once(number, wanted, prorating)

    async def _change_at_once(self, number: int, wanted: Plan, prorating: Prorating) -> None:
        done = await change_plan(
            *self._named(number), wanted, by="api", at_once=True, prorating=prorating, now=self.now
        )
        if done.proration is not None:
            self.prorated += 1
            assert await self._given_back_counts(number), "no credit is for what was given back"

    async def _given_back_counts(self, number: int) -> bool:
        """Whether all that was given back of the period that runs is in its changes."""
        return bool(
            await self.subscriber.database.fetchval(
                "select p.refunded + p.refunding + p.charged_back"
                " + given_back_of_begun(p.merchant_id, p.live, p.subscription_id, p.period_number)"
                " = (select sum(n.given_back) from subscription_proration n where n.merchant_id = p.merchant_id"
                " and n.subscription_id = p.subscription_id and n.period_number = p.period_number) from payment p"
                " where p.merchant_id = $1 and p.subscription_id = $2 and p.paid_at is not null"
                " order by p.period_number desc limit 1",
                self.subscriber.shop.merchant_id,
                self.subscriptions[number].id,
            )
        )

    async def another(self, number: int, other: str) -> Plan:
        """In turn: another price, another number, or another price and rhythm."""
        terms = (await self.known(number)).package.terms
        price = f"{terms.price % 30 + 10:.2f}"
        match other:
            case "number":
                return Plan(quantity=str(terms.quantity % 3 + 1))
            case "rhythm":
                return Plan(price=price, period=("1m", "2m", "1w", "1y")[int(terms.price // 10) % 4])
            case _:
                return Plan(price=price)

    def _named(self, number: int) -> tuple[Any, Any, int]:
        return self.subscriber.database, self.subscriber.shop, self.subscriptions[number].id
