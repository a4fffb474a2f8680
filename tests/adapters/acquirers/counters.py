"""The counters at which every acquirer is tried: an acquirer, with what only a test can see
and do behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import aiohttp
from tests.adapters.acquirers.stripe.localstripe import Front
from tests.standings import standings

from paydesk.adapters.acquirers.interface import Acquirer, Approved, Challenged, Outcome
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Record, RemoteSimulator, SimulatedAcquirer

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
SHOP = "http://shop.test/checkout/abc?x=1"
TEN = Decimal("10.00")


@dataclass
class BankClock:
    """A clock that a test sets."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Counter:
    """An acquirer under test and its clock."""

    acquirer: Acquirer
    clock: BankClock
    keys: int = field(default=0, kw_only=True)
    declined_card: str = field(default="4000000000000002", kw_only=True)

    def purchase(self, number: str = "4242424242424242", amount: str = "10.00", **changes: Any) -> Purchase:
        self.keys += 1
        asked: dict[str, Any] = {
            "key": f"key-{self.keys}",
            "amount": Decimal(amount),
            "currency": "USD",
            "card": CardDetails(number, 12, 2030, "Ada Lovelace", "123"),
            "capture": True,
            "not_after": self.clock.now + timedelta(minutes=10),
            "return_url": SHOP,
        }
        return Purchase(**(asked | changes))

    def purchase_losing_its_answer(self, **changes: Any) -> Purchase:
        """A purchase that is approved and whose answer never arrives."""
        raise AssertionError("this acquirer can't be made to lose an answer")

    async def standing(self, key: str) -> Any:
        """How a purchase stands behind the counter: its `net` and what is `held`, at least."""
        raise AssertionError("nobody can look behind this counter")

    async def press(self, url: str, decision: str) -> tuple[int, str]:
        """Press a button on the challenge page; gives the status and where the browser goes."""
        async with (
            aiohttp.ClientSession() as browser,
            browser.post(url, data={"decision": decision}, allow_redirects=False) as answer,
        ):
            return answer.status, answer.headers.get("Location", "")


@dataclass
class BankCounter(Counter):
    """The simulated bank, in this process or behind HTTP, with its record."""

    acquirer: SimulatedAcquirer | RemoteSimulator
    record: Record
    base_url: str

    def purchase_losing_its_answer(self, **changes: Any) -> Purchase:
        return self.purchase("4000000000009987", **changes)

    async def standing(self, key: str) -> Any:
        return standings(self.record.operations())[key]


@dataclass
class StripeCounter(Counter):
    """Stripe's adapter with localstripe behind it."""

    front: Front

    def purchase_losing_its_answer(self, **changes: Any) -> Purchase:
        self.front.lose_answer_to = "/v1/payment_intents"
        return self.purchase(**changes)

    async def standing(self, key: str) -> Any:
        return await self.front.standing(key)


async def approved(counter: Counter, **changes: Any) -> tuple[str, str]:
    purchase = counter.purchase(**changes)
    outcome = await counter.acquirer.authorize(purchase)
    assert isinstance(outcome, Approved)
    return purchase.key, outcome.reference


async def challenged(counter: Counter, **changes: Any) -> tuple[str, Challenged]:
    purchase = counter.purchase("4000000000003220", **changes)
    outcome = await counter.acquirer.authorize(purchase)
    assert isinstance(outcome, Challenged)
    return purchase.key, outcome


def later_charge(counter: Counter, number: str, first: Outcome) -> Purchase:
    """A charge of a card that was stored with the first purchase."""
    assert isinstance(first, Approved)
    stored = CardDetails(number, 12, 2030, "Ada Lovelace")
    return counter.purchase(card=stored, network_reference=first.network_reference, return_url="")
