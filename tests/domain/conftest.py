"""A customer who has paid, for what comes after the payment;
and databases to put back to what they were.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from tests import set_back, shopfront
from tests.banks import ObedientBank
from tests.conftest import database_at, template_at
from tests.databases import drop_database
from tests.shopfront import GOOD
from tests.till import Till

from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

Buy = Callable[..., Awaitable[int]]
OpenCopy = Callable[..., Any]


@pytest.fixture
def buy(desk: Desk, shop: Shop) -> Buy:
    """A customer pays, 10 USD unless it is said; the payment's id."""

    async def do(number: str = GOOD, order: str = "A-1", amount: str = "10.00", currency: str = "USD") -> int:
        return await shopfront.buy(desk, shop, order, number=number, amount=amount, currency=currency)

    return do


@pytest.fixture
async def copies(server_url: str) -> AsyncIterator[OpenCopy]:
    """Databases to copy, as a dump and its restore do: each is made from another, by its name,
    or from an empty one.
    """
    admin, made = await asyncpg.connect(server_url), list[str]()

    @asynccontextmanager
    async def open_copy(of: str = "") -> AsyncIterator[tuple[str, Database]]:
        made.append(f"paydesk_test_{secrets.token_hex(6)}")
        whole = of or await template_at(admin, server_url)
        await admin.execute(f"create database {made[-1]} template {whole} strategy file_copy")
        async with connected(database_at(server_url, made[-1]), most=6) as database:
            yield made[-1], database

    try:
        yield open_copy
    finally:
        for name in made:
            await drop_database(admin, name)
        await admin.close()


@pytest.fixture
async def subscriber(desk: Desk, shop: Shop) -> Till:
    """A merchant's customers; a janitor asks for all merchants,
    so what other tests have left is not asked about.
    """
    await set_back.nothing_to_look_up(desk.database)
    return Till(desk, shop)


@pytest.fixture
def obedient() -> ObedientBank:
    return ObedientBank()
