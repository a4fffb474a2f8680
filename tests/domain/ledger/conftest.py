"""A database that may be corrupted, a bank with its record, and customers who pay by test card."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.conftest import migrated_database
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
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


OpenTill = Callable[[Database], Awaitable[Till]]


@pytest.fixture
async def open_till(vault: Vault, tmp_path: Path) -> AsyncIterator[OpenTill]:
    acquirer = SimulatedAcquirer(Bank(Record(tmp_path / "record.sqlite")), base_url="http://127.0.0.1:1")

    async def make(database: Database) -> Till:
        merchant = await create_merchant(database, vault, name="Shop", email="o@shop.example", now=utc_now())
        return Till(Desk(database, vault, {"simulator": acquirer}), Shop(merchant.id, live=False))

    yield make
    await acquirer.close()


@pytest.fixture
async def till(open_till: OpenTill, corruptible: Database) -> Till:
    return await open_till(corruptible)
