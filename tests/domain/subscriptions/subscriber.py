"""A customer with subscriptions, the run that charges them at any time we like,
and a bank that does as it is told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tests import shopfront
from tests.banks import WithoutPages
from tests.shopfront import MONTHLY, find_subscription

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, FailedRefundPage
from paydesk.adapters.acquirers.interface import (
    Acquirer,
    AcquirerRefused,
    Approved,
    Declined,
    DeclineReason,
    Earlier,
    Finding,
    MovementFinding,
    NothingHeld,
    Outcome,
    OutcomeUnknown,
    Purchase,
    Release,
    Voided,
)
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.core.clock import utc_now
from paydesk.domain.billing.charging import BillingRun, Side
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms

APPROVED = "4242424242424242"


@dataclass
class ObedientBank(WithoutPages):
    """An acquirer in memory: `refuse` says why it declines, `lose` what gets lost,
    `hide` that it is slow to know.
    """

    refuse: DeclineReason | None = None
    lose: str = ""
    hide: bool = False
    asked: list[str] = field(default_factory=list)
    decided: dict[str, Outcome] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    voided: set[str] = field(default_factory=set)
    name: str = "simulator"
    hold_period: timedelta = timedelta(days=7)
    key_lifetime: timedelta = timedelta(hours=24)
    keeps_cards: bool = False
    challenge_origins: tuple[str, ...] = ()

    async def authorize(self, purchase: Purchase) -> Outcome:
        return await self.charge_stored(purchase)

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        self.asked.append(purchase.key)
        if self.lose == "question":
            raise OutcomeUnknown("lost")
        answer: Outcome = Declined(self.refuse) if self.refuse else Approved(purchase.key, f"net-{purchase.key}")
        answer = self.decided.setdefault(purchase.key, answer)
        if self.hide:
            self.hidden.add(purchase.key)
        if self.lose == "answer":
            raise OutcomeUnknown("lost")
        return answer

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        if key in self.voided:
            return Voided()
        return NothingHeld() if key in self.hidden else self.decided.get(key, NothingHeld())

    async def look_back(self, key: str) -> Earlier | None:
        return None

    async def end_challenge(self, of_key: str) -> Finding:
        return await self.find(of_key)

    async def void(self, key: str, of_key: str) -> Release:
        raise AcquirerRefused("not asked for here")

    async def undo(self, key: str, of_key: str) -> Finding:
        self.voided.add(of_key)
        return Voided()

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        raise AcquirerRefused("not asked for here")

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        raise AcquirerRefused("not asked for here")

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        return NothingHeld()

    async def disputes(self, after: str) -> DisputePage:
        return DisputePage((), after)

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        return FailedRefundPage((), after)

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        raise AcquirerRefused("its list is not read here")

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        raise AcquirerRefused("its list is not read here")

    async def find_dispute(self, reference: str) -> Dispute | None:
        return None

    async def submit_evidence(self, reference: str, text: str) -> None:
        raise AcquirerRefused("not asked for here")

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def kept(self) -> set[str]:
        """The keys under which it took money and kept it."""
        return {key for key, answer in self.decided.items() if isinstance(answer, Approved)} - self.voided


class Subscriber:
    """One merchant's test side with its customers' subscriptions."""

    def __init__(self, desk: Desk, shop: Shop) -> None:
        self.desk, self.shop, self.run = desk, shop, BillingRun(desk)

    def at(self, bank: Acquirer) -> Subscriber:
        """The same with another bank behind it."""
        return Subscriber(replace(self.desk, acquirers={"simulator": bank}), self.shop)

    async def subscribe(self, terms: Terms = MONTHLY, number: str = APPROVED, order: str = "club-1") -> Subscription:
        return await shopfront.subscribe(self.desk, self.shop, terms, reference=order, number=number)

    async def charge(self, at: datetime) -> int:
        """One batch by the billing run, at a time of the merchant's test clock."""
        return await self.run.charge_due(merchant_id=self.shop.merchant_id, at=at)

    async def charge_due(self, subscription: Subscription) -> Subscription:
        """Charge it when it is due."""
        due = (await self.now(subscription)).date_next
        assert due is not None
        assert await self.charge(due) == 1
        return await self.now(subscription)

    async def die_after_claim(self, at: datetime) -> None:
        """A worker commits its intents and is killed before it calls anybody."""
        await self.run.claim([Side(self.shop, at)], utc_now())

    async def settle(self, **later: float) -> None:
        """The janitor's rounds, some time from now, until it has nothing left to ask."""
        for _ in range(5):
            await settle_due(self.desk, now=utc_now() + timedelta(**later))

    async def now(self, subscription: Subscription) -> Subscription:
        return await find_subscription(self.desk.database, self.shop, subscription.id)

    async def replace_card(self, subscription: Subscription) -> None:
        """The customer gives another card with the same number
        (a new row, as the portal makes one).
        """
        database, vault = self.desk.database, self.desk.vault
        card_id = await database.fetchval("select nextval('card_id_seq')")
        sealed = vault.seal(APPROVED.encode(), purpose="card number", merchant_id=self.shop.merchant_id, row_id=card_id)
        await database.execute(
            "with held as (select card_id from subscription"
            " where merchant_id = $1 and id = $2 and date_next is not null for update)"
            ", fresh as (insert into card (merchant_id, live, id, number_sealed, vault_key_id, fingerprint,"
            " bin, last4, brand, exp_month, exp_year, holder, created_at)"
            " select $1, false, $3, $4, $5, '', '424242', '4242', 'visa', 12, 2041, 'Ada', now() from held"
            " returning id), old as (update card c set number_sealed = null from held"
            " where c.merchant_id = $1 and c.id = held.card_id)"
            " update subscription set card_id = fresh.id from fresh where merchant_id = $1 and subscription.id = $2",
            self.shop.merchant_id, subscription.id, card_id, sealed.blob, sealed.key_id,
        )  # fmt: skip

    async def payments(self) -> list[Any]:
        """The merchant's payments, oldest first."""
        return list(
            await self.desk.database.fetch(
                "select * from payment where merchant_id = $1 order by id", self.shop.merchant_id
            )
        )

    async def told(self) -> list[dict[str, Any]]:
        """What the merchant's pingbacks say, oldest first."""
        rows = await self.desk.database.fetch(
            "select payload from pingback where merchant_id = $1 order by id", self.shop.merchant_id
        )
        return [json.loads(row["payload"]) for row in rows]
