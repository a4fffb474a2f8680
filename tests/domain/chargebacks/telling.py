"""A bank that tells of disputes what a test gives it, and a shop's books beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.proving import check
from tests.till import Till

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, DisputeStatus
from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.domain.chargebacks.for_api import Chargeback, list_chargebacks, purchase_of
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.ledger.balances import balances
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

OPEN = DisputeStatus.OPEN


class TellingBank(LyingAcquirer):
    """The honest bank for purchases and refunds; of disputes it tells what it is given,
    page after page.
    """

    def __init__(self, honest: Acquirer, lies: Lies | None = None) -> None:
        super().__init__(honest, lies or Lies())
        self.pages: list[list[Dispute]] = []
        self.stands: dict[str, Dispute] = {}
        self.asked: list[str] = []
        self.silent: Exception | None = None
        self.nonsense = ""

    async def disputes(self, after: str) -> DisputePage:
        if self.silent is not None:
            raise self.silent
        place = int(after or 0)
        return (
            DisputePage(tuple(self.pages[place]), str(place + 1)) if place < len(self.pages) else DisputePage((), after)
        )

    async def find_dispute(self, reference: str) -> Dispute | None:
        self.asked.append(reference)
        if reference == self.nonsense:
            raise KeyError("an answer without sense")
        return self.stands.get(reference)


@dataclass(frozen=True, slots=True)
class Books(Till):
    """A till of one payment, with a bank that tells of disputes over it."""

    key: str = ""

    @property
    def teller(self) -> TellingBank:
        return cast("TellingBank", self.desk.acquirers["simulator"])

    def dispute(self, amount: str, status: DisputeStatus = OPEN, **changes: Any) -> Dispute:
        told = Dispute("dp_1", self.key, Decimal(amount), "USD", "fraudulent", status, utc_now())
        return replace(told, **changes)

    async def hear(self, *disputes: Dispute, now: datetime | None = None) -> int:
        """The bank tells each on a page of its own, and a worker reads."""
        self.teller.pages += [[dispute] for dispute in disputes]
        return await read_disputes(self.desk, now=now or utc_now())

    async def taken_back(self) -> tuple[str, Decimal, Decimal]:
        """The payment's state, what is refunded and what is charged back."""
        row = await self.payment()
        return row["state"], row["refunded"], row["charged_back"]

    async def owed(self) -> Decimal:
        """What the acquirer owes for it, by the ledger."""
        return Decimal(
            await self.database.fetchval(
                "select sum(amount) from ledger_entry"
                " where merchant_id = $1 and payment_id = $2 and account = 'acquirer'",
                self.shop.merchant_id,
                self.payment_id,
            )
        )

    async def merchants(self) -> Decimal:
        """All that the merchant has, in USD."""
        (balance,) = await balances(self.database, self.shop)
        return balance.pending + balance.available + balance.reserve

    async def chargebacks(self) -> list[Chargeback]:
        """The shop's chargebacks, oldest first."""
        return (await list_chargebacks(self.database, self.shop, None, Page(10)))[::-1]

    async def told_of_chargebacks(self) -> list[dict[str, Any]]:
        """What the merchant was told of them, oldest first."""
        return [one for one in await self.told() if one["event"].startswith("chargeback")]

    async def waiting(self) -> list[str]:
        """Why disputes wait."""
        return [
            row["reason"] for row in await self.database.fetch("select reason from dispute_waiting order by first_at")
        ]

    async def kinds(self) -> list[str]:
        """The kinds of the operator's open alarms."""
        return [kind for kind, _ in await self.alarms()]

    async def in_order(self) -> None:
        """`paydesk check` finds nothing."""
        found = await check(self.database, now=utc_now(), merchant_id=self.shop.merchant_id)
        assert [(one.rule.statement, one.differences) for one in found if one.found] == []


async def beside_a_telling_bank(desk: Desk, shop: Shop, payment_id: int) -> Books:
    """A shop's books of a payment, and the bank that may tell of disputes over it."""
    bank = TellingBank(desk.acquirers["simulator"])
    key = (await purchase_of(desk.database, shop, payment_id)).key
    return Books(replace(desk, acquirers={"simulator": bank}), shop, payment_id, key)
