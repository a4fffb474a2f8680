"""One side of a merchant as a test stands at it: what its customers and its server do
(by `tests/shopfront.py`), the rounds that workers do for it, and what came of it by all who know:
rows, pingbacks, alarms, the bank's own record, and `paydesk check`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Self

from tests import shopfront
from tests.proving import check
from tests.shopfront import GOOD, MONTHLY
from tests.standings import standings

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.billing.charging import BillingRun, Side
from paydesk.domain.deliveries.confirming import Confirmed
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import Checkout, find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import Refund
from paydesk.domain.payments.results import Result
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms


@dataclass(frozen=True, slots=True)
class Till:
    """A merchant's side and its desk; `payment_id` is the payment that a test is about, if any."""

    desk: Desk
    shop: Shop
    payment_id: int = 0

    @property
    def database(self) -> Database:
        return self.desk.database

    @property
    def honest(self) -> SimulatedAcquirer:
        """The way to the simulated bank, without whoever stands before it."""
        acquirer = self.desk.acquirer_for(live=self.shop.live)
        while isinstance(acquirer, PassingAcquirer):
            acquirer = acquirer.honest
        assert isinstance(acquirer, SimulatedAcquirer)
        return acquirer

    @property
    def bank(self) -> Bank:
        """The simulated bank."""
        return self.honest.bank

    def at(self, acquirer: Acquirer) -> Self:
        """The same till with another acquirer behind it."""
        return replace(self, desk=replace(self.desk, acquirers={"simulator": acquirer}))

    async def offering_slow_methods(self) -> Self:
        """The same till, whose pages also offer what takes days: its merchant wants it so, and the
        operator allows it.
        """
        await change_merchant(self.database, self.shop.merchant_id, slow_methods=True)
        return replace(self, desk=replace(self.desk, slow_methods=True))

    # What customers and the merchant do.

    async def order(self, reference: str = "", **asked: Any) -> Link:
        """Open a checkout for a new order, or for the one named; its link."""
        return await shopfront.order(self.database, self.shop, reference, **asked)

    async def find(self, link: Link, now: datetime | None = None) -> Checkout:
        """The checkout as it stands."""
        return await find_checkout(self.database, link, now=now or utc_now())

    async def pay(self, link: Link, number: str = GOOD, **who: Any) -> Result:
        """A customer types a card and presses the button."""
        return await shopfront.pay(self.desk, link, number, **who)

    async def sell(self, reference: str = "", **asked: Any) -> int:
        """A customer has paid, 10 USD unless it is said; the payment's id."""
        return await shopfront.buy(self.desk, self.shop, reference, **asked)

    async def buy(self, reference: str = "", number: str = GOOD, **asked: Any) -> Result:
        """A customer orders and pays by a card; what came of it."""
        return await self.pay(await self.order(reference, **asked), number)

    async def subscribe(
        self, terms: Terms = MONTHLY, number: str = GOOD, order: str = "club-1", **asked: Any
    ) -> Subscription:
        """A customer has paid for the beginning of a subscription."""
        return await shopfront.subscribe(self.desk, self.shop, terms, reference=order, number=number, **asked)

    async def confirm(self, payment_id: int, *, now: datetime | None = None, **said: Any) -> Confirmed:
        """The merchant says what became of a payment's goods, shipped with DHL unless said."""
        return await shopfront.ship(self.desk, self.shop, payment_id, now=now, **said)

    async def give(self, amount: str | Decimal | None = None, key: str | None = None, **more: Any) -> Refund:
        """The merchant gives back what was paid, or a part of it."""
        return await self.give_back(self.payment_id, amount, key, **more)

    async def give_back(
        self, payment_id: int, amount: str | Decimal | None = None, key: str | None = None, **more: Any
    ) -> Refund:
        """The merchant gives a payment back, or a part of it."""
        return await shopfront.give_back(self.desk, self.shop, payment_id, amount, key=key, **more)

    # What workers do.

    async def settle(self, **later: float) -> int:
        """The janitor's round over attempts, some time from now."""
        return await settle_due(self.desk, now=utc_now() + timedelta(**later))

    async def settle_all(self, **later: float) -> None:
        """The same until it has nothing left to ask."""
        for _ in range(5):
            await self.settle(**later)

    async def finish(self, **later: float) -> int:
        """The janitor's round over movements, some time from now."""
        return await finish_movements(self.desk, now=utc_now() + timedelta(**later))

    async def act(self, **later: float) -> int:
        """The look at what must be shipped, some time from now."""
        now = utc_now()
        return await act_on_due(self.desk, real_now=now, merchant_id=self.shop.merchant_id, at=now + timedelta(**later))

    async def charge(self, at: datetime | None) -> int:
        """One batch by the billing run, at a time of the merchant's test clock."""
        assert at is not None
        return await BillingRun(self.desk).charge_due(merchant_id=self.shop.merchant_id, at=at)

    async def charge_due(self, subscription: Subscription) -> Subscription:
        """Charge a subscription when it is due."""
        assert await self.charge((await self.now(subscription)).date_next) == 1
        return await self.now(subscription)

    async def die_after_claim(self, at: datetime) -> None:
        """A worker commits its intents and is killed before it calls anybody."""
        await BillingRun(self.desk).claim([Side(self.shop, at)], utc_now())

    # What came of it.

    async def rows(self, table: str, payment_id: int | None = None) -> list[Any]:
        """The merchant's rows of a table, or those of a payment, oldest first."""
        which, *of = ("and payment_id = $2", payment_id) if payment_id else ("",)
        asked = f"select * from {table} where merchant_id = $1 {which} order by id"
        return list(await self.database.fetch(asked, self.shop.merchant_id, *of))

    async def payment(self, payment_id: int | None = None) -> Any:
        asked = "select * from payment where merchant_id = $1 and id = $2"
        return await self.database.fetchrow(asked, self.shop.merchant_id, payment_id or self.payment_id)

    async def payments(self) -> list[Any]:
        """The merchant's payments on either side, oldest first."""
        asked = "select * from payment where merchant_id = $1 order by id"
        return list(await self.database.fetch(asked, self.shop.merchant_id))

    async def state(self, payment_id: int | None = None) -> str:
        """How a payment stands: the one that is named, or the merchant's only one."""
        if payment_id or self.payment_id:
            return str((await self.payment(payment_id))["state"])
        (only,) = await self.payments()
        return str(only["state"])

    async def attempts(self) -> list[Any]:
        return await self.rows("payment_attempt")

    async def attempt_states(self) -> list[str]:
        return [row["state"] for row in await self.attempts()]

    async def passed_over(self) -> list[int]:
        """The subscriptions whose charge takes long: the index of what is due leaves them out."""
        return [row["id"] for row in await self.rows("subscription") if row["charge_takes_long"]]

    async def events(self, payment_id: int | None = None) -> list[str]:
        """Which pingbacks the merchant gets, or gets of a payment, in order."""
        return [row["event"] for row in await self.rows("pingback", payment_id)]

    async def told(self, payment_id: int | None = None, *, but: str = "") -> list[dict[str, Any]]:
        """What these say, those of one event left out."""
        rows = await self.rows("pingback", payment_id)
        return [json.loads(row["payload"], parse_float=Decimal) for row in rows if row["event"] != but]

    async def alarms(self) -> list[tuple[str, str]]:
        """The operator's open alarms of all merchants: each one's kind and subject."""
        rows = await self.database.fetch("select kind, subject from alarm where settled_at is null order by id")
        return [(row["kind"], row["subject"]) for row in rows]

    async def now(self, subscription: Subscription) -> Subscription:
        """A subscription as it stands."""
        return await shopfront.find_subscription(self.database, self.shop, subscription.id)

    async def accounts(self) -> dict[str, Decimal]:
        """What the ledger's accounts hold of the merchant's money, debits positive."""
        asked = "select account, sum(amount) as amount from ledger_entry where merchant_id = $1 group by account"
        rows = await self.database.fetch(asked, self.shop.merchant_id)
        return {row["account"]: row["amount"] for row in rows if row["amount"]}

    async def payments_owed(self) -> dict[int, Any]:
        """The merchant's payments by their ids, each with its key at the bank
        and what the acquirer owes for it by the ledger.
        """
        rows = await self.database.fetch(
            "select p.*, a.idempotency_key, (select coalesce(sum(amount), 0) from ledger_entry e"
            " where e.merchant_id = p.merchant_id and e.payment_id = p.id and e.account = 'acquirer') as owed"
            " from payment p join payment_attempt a on a.merchant_id = p.merchant_id and a.id = p.attempt_id"
            " where p.merchant_id = $1",
            self.shop.merchant_id,
        )
        return {row["id"]: row for row in rows}

    def standings(self) -> dict[str, Standing]:
        """How each purchase stands by the bank's own record, by its key."""
        return standings(self.bank.record.operations())

    def standing(self) -> Standing:
        """How the only purchase stands there."""
        (only,) = self.standings().values()
        return only

    async def at_the_bank(self, payment_id: int) -> list[Kind]:
        """What the bank did with a payment, in order, refusals left out."""
        keys = {row["idempotency_key"] for row in await self.rows("payment_attempt", payment_id)}
        done = [one.kind for one in self.bank.record.operations() if one.of_key in keys]
        return [kind for kind in done if kind is not Kind.REFUSE]

    async def problems(self) -> list[str]:
        """What `paydesk check` finds wrong with the merchant, the bank's record as its witness."""
        merchant_id, record = self.shop.merchant_id, self.bank.record
        found = await check(self.database, now=utc_now(), merchant_id=merchant_id, record=record)
        return [f"{one.rule.statement}: {one.differences}" for one in found if one.found]
