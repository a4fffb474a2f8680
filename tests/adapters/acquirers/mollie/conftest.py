"""A till at Mollie: the adapter, with the stand-in behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.counters import BankClock
from tests.standins.account import Account

from paydesk.adapters.acquirers.hosted_pages import PageRequest
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.mollie import MollieAcquirer

MARK = Mark("deployment", 1, "tag", True, PurchaseKind.ORDER, "Bestellung №7", 7, 1)


@dataclass
class Till:
    acquirer: MollieAcquirer
    account: Account
    clock: BankClock
    keys: int = 0

    def wanted(self, **changes: Any) -> PageRequest:
        self.keys += 1
        asked: dict[str, Any] = {
            "key": f"key-{self.keys}",
            "amount": Decimal("10.00"),
            "currency": "EUR",
            "order": "A-1",
            "shop": "A shop",
            "description": "A mug",
            "email": "ada@example.com",
            "language": "de-CH",
            "return_url": "https://pay.example/checkout/abc/result",
            "expires_at": self.clock.now + timedelta(hours=20),
            "asked_at": self.clock.now,
            "mark": MARK,
        }
        return PageRequest(**(asked | changes))

    async def paid(self, method: str = "creditcard", **changes: Any) -> tuple[str, str]:
        """The key and the name of a payment that was made."""
        wanted = self.wanted(**changes)
        page = await self.acquirer.open_page(wanted)
        assert self.account.do("pay", page.reference, method)
        return wanted.key, page.reference

    def pass_to(self, now: datetime) -> None:
        self.clock.now = now
        self.account.do("set", time=now.isoformat())

    def restarted(self) -> MollieAcquirer:
        """The adapter of another process, which remembers nothing."""
        return MollieAcquirer("test_x", api_base=self.account.base_url, timeout=60, now=self.clock)


@pytest.fixture
async def till(mollie_account: Account, clock: BankClock) -> AsyncIterator[Till]:
    acquirer = MollieAcquirer("test_x", api_base=mollie_account.base_url, timeout=60, now=clock)
    yield Till(acquirer, mollie_account, clock)
    await acquirer.close()
