"""A database that may be corrupted, a bank with its record, and customers who pay by test card."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from tests.databases import drop_database

from paydesk.adapters.acquirers.interface import CardDetails
from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import find_checkout, open_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.paying import Payer, pay
from paydesk.domain.payments.requests import CheckoutRequest


@asynccontextmanager
async def new_database(server_url: str, name: str) -> AsyncIterator[Database]:
    """A migrated database for the length of a block; nothing else looks into it."""
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    try:
        async with connected(url, most=2) as pool:
            await migrate(pool)
            yield pool
    finally:
        await drop_database(admin, name)
        await admin.close()


@pytest.fixture(scope="session")
async def corruptible(server_url: str) -> AsyncIterator[Database]:
    """Shared by tests that each look at a merchant of their own only."""
    async with new_database(server_url, f"paydesk_ledger_{secrets.token_hex(6)}") as database:
        yield database


@pytest.fixture
async def empty(server_url: str) -> AsyncIterator[Database]:
    """For a test that looks at all merchants."""
    async with new_database(server_url, f"paydesk_ledger_{secrets.token_hex(6)}") as database:
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
        request = CheckoutRequest(
            merchant_order_id=reference or secrets.token_hex(8),
            amount=Decimal("10.00"),
            currency="USD",
            description="A mug",
            success_url="https://shop.example/thanks",
            pingback_url="https://shop.example/pingback",
            sign_version="v2",
            email="ada@example.com",
            first_name="",
            last_name="",
            country="GB",
            wants_qr_code=False,
        )
        key_id = await self.database.fetchval(
            "select id from merchant_key where merchant_id = $1", self.shop.merchant_id
        )
        form = {"nonce": secrets.token_hex(8)}
        return await open_checkout(self.database, self.shop, request, form=form, key_id=key_id, now=utc_now())

    @property
    def desk(self) -> Desk:
        return Desk(self.database, self.vault, {self.acquirer.name: self.acquirer})

    async def pay(self, number: str, token: Link | None = None) -> None:
        """Pay an order by card."""
        now, desk = utc_now(), self.desk
        checkout = await find_checkout(self.database, token or await self.order(), now=now)
        payer = Payer(CardDetails(number, 12, 2040, "Ada Lovelace", "123"), "ada@example.com", "GB", "192.0.2.1")
        await pay(desk, checkout, payer, return_url="https://pay.example/back", now=now)


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
