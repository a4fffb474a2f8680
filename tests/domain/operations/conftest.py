"""Books that may differ from the bank's, and databases that forget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests import breaking, shopfront
from tests.domain.conftest import OpenCopy
from tests.domain.operations.books import Books

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import change_merchant, create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

Play = Callable[[Books], Awaitable[Any]]
After = Callable[..., AbstractAsyncContextManager[tuple[Books, dict[str, list[Any]]]]]


@pytest.fixture
async def books(desk: Desk, shop: Shop, database: Database) -> Books:
    """A merchant that was paid once, and no alarm; what other tests left was paid at banks
    of their own.
    """
    await breaking.paid_elsewhere(database)
    await breaking.no_alarms(database)
    return Books(desk, shop, await shopfront.buy(desk, shop))


@pytest.fixture
def after(copies: OpenCopy, desk: Desk) -> After:
    """Play something in a database, and open another that knows only what was before."""

    @asynccontextmanager
    async def put_back(
        forgotten: Play, *, known: Play | None = None
    ) -> AsyncIterator[tuple[Books, dict[str, list[Any]]]]:
        """The database put back to what it was before `forgotten`, and what its books said
        after it.
        """
        async with copies() as (name, database):
            made = await create_merchant(database, desk.vault, name="Shop", email="o@shop.example", now=utc_now())
            till = Books(replace(desk, database=database), shop_of(made, live=False))
            await change_merchant(database, made.id, test_pingback_url="https://shop.example/pingback")
            if known is not None:
                await known(till)
        async with copies(name) as (_, database):
            lost = replace(till, desk=replace(desk, database=database))
            await forgotten(lost)
            written = await lost.written()
        async with copies(name) as (_, database):
            yield replace(till, desk=replace(desk, database=database)), written

    return put_back
