"""A database that may be corrupted, a bank with its record, and customers who pay by test card."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import shopfront
from tests.conftest import migrated_database

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk


@pytest.fixture(scope="session")
async def corruptible(server_url: str) -> AsyncIterator[Database]:
    """Shared by tests that each look at a merchant of their own only."""
    async with migrated_database(server_url) as url, connected(url, most=2) as database:
        yield database


@pytest.fixture
async def empty(server_url: str) -> AsyncIterator[Database]:
    """For a test that looks at all merchants."""
    async with migrated_database(server_url) as url, connected(url, most=2) as database:
        yield database


@dataclass(frozen=True, slots=True)
class Till:
    """A merchant in test mode, and the bank that its customers pay by."""

    database: Database
    vault: Vault
    shop: Shop
    acquirer: SimulatedAcquirer

    @property
    def record(self) -> Record:
        return self.acquirer.bank.record

    async def order(self, reference: str = "") -> Link:
        """A checkout over 10 USD for a new order (or the one named); its link."""
        return await shopfront.order(self.database, self.shop, reference)

    @property
    def desk(self) -> Desk:
        return Desk(self.database, self.vault, {self.acquirer.name: self.acquirer})

    async def pay(self, number: str, token: Link | None = None) -> None:
        """Pay an order by card."""
        await shopfront.pay(self.desk, token or await self.order(), number)


OpenTill = Callable[[Database], Awaitable[Till]]


@pytest.fixture
async def open_till(vault: Vault, tmp_path: Path) -> AsyncIterator[OpenTill]:
    acquirer = SimulatedAcquirer(Bank(Record(tmp_path / "record.sqlite")), base_url="http://127.0.0.1:1")

    async def make(database: Database) -> Till:
        merchant = await create_merchant(database, vault, name="Shop", email="o@shop.example", now=utc_now())
        return Till(database, vault, Shop(merchant.id, live=False), acquirer)

    yield make
    await acquirer.close()


@pytest.fixture
async def till(open_till: OpenTill, corruptible: Database) -> Till:
    return await open_till(corruptible)
