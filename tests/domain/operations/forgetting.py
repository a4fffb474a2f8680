"""A deployment whose database is put back to an earlier state, while the bank remembers,
and its books compared.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tests import shopfront
from tests.proving import check
from tests.standings import standings
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import change_merchant, create_merchant, shop_of
from paydesk.domain.operations.differences import Reconciled
from paydesk.domain.operations.reconciling import SETTLED, reconcile
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import Refund

VISA, MASTERCARD = "4242424242424242", "5555555555554444"

BOOKS = {
    "payments": """
        select id, merchant_order_id, state, amount, currency, net, reserve, fees, refunded, refunding, subscription_id,
               period_number, renewal, ship_by is not null as waits
          from payment order by id
    """,
    "attempts": """
        select payment_id, state, idempotency_key, acquirer_reference, network_reference, number
          from payment_attempt where state = 'approved' order by payment_id
    """,
    "movements": """
        select case when kind = 'refund' then id end as id, payment_id, kind, state, amount, idempotency_key
          from movement order by idempotency_key
    """,
    "ledger": """
        select payment_id, kind, account, sum(amount) as amount
          from ledger_entry group by payment_id, kind, account order by payment_id, kind, account
    """,
    "subscriptions": """
        select id, state, init_payment_id, next_period, counter, paid_number_counter, date_next::date, anchor::date,
               failures, network_reference, charging_attempt_id
          from subscription order by id
    """,
}
"""What two databases must say alike of the same events."""


@dataclass(frozen=True)
class Kept:
    """Our books at one moment: rows, and what the shop's pingbacks tell of which payment."""

    rows: dict[str, list[dict[str, Any]]]
    told: list[tuple[str, int, str]]


@dataclass(frozen=True)
class Desks(Till):
    """A till over a database of its own."""

    bank: Bank

    @property
    def database(self) -> Database:
        """Its books."""
        return self.desk.database

    async def books(self) -> Kept:
        """What our books say."""
        rows = {name: [dict(row) for row in await self.database.fetch(asked)] for name, asked in BOOKS.items()}
        sent = await self.database.fetch("select event, payment_id, payload from pingback order by payment_id, event")
        told = [
            (row["event"], row["payment_id"], json.loads(row["payload"])["payment_order"]["merchant_order_id"])
            for row in sent
        ]
        return Kept(rows, sorted(told))

    async def reconcile(self, *, fix: bool = True, ahead: timedelta = 2 * SETTLED) -> Reconciled:
        """Compare with the bank's list, some minutes from now, when all is written down."""
        now = utc_now()
        return await reconcile(self.desk, "simulator", since=now - timedelta(hours=1), now=now + ahead, fix=fix)

    async def broken(self) -> list[str]:
        """What `paydesk check` finds, with the bank's own record."""
        found = await check(self.database, now=utc_now(), record=self.bank.record)
        return [f"{one.rule.statement}: {one.differences}" for one in found if one.found]

    async def draw_ids(self) -> None:
        """Ids are drawn that nobody uses, so that those which were forgotten come again only
        if they are told.
        """
        for of in ("payment", "subscription", "movement"):
            await self.database.execute(f"select nextval('{of}_id_seq')")

    async def give_back(self, payment_id: int, amount: str, key: str | None = None) -> Refund:
        """Give a part of a payment back."""
        return await shopfront.give_back(self.desk, self.shop, payment_id, amount, key=key)

    async def payment(self, order: str) -> int:
        """The id of an order's payment."""
        return int(await self.database.fetchval("select id from payment where merchant_order_id = $1", order))

    def taken(self) -> list[tuple[Decimal, Decimal]]:
        """What the bank took, and gave back of it, purchase by purchase."""
        found = standings(self.bank.record.operations()).values()
        return [(one.captured, one.refunded) for one in found if one.captured]


Play = Callable[[Desks], Awaitable[Any]]


@dataclass(frozen=True)
class Forgetful:
    """Plays something in a database, and gives another that knows only what was before."""

    copies: Any
    desk: Desk
    bank: Bank
    at: Callable[[], datetime] = utc_now

    @asynccontextmanager
    async def after(self, forgotten: Play, *, known: Play | None = None) -> AsyncIterator[tuple[Desks, Kept]]:
        """The database put back to what it was before `forgotten`, and what its books said
        after it.
        """
        async with self.copies() as (name, database):
            made = await create_merchant(database, self.desk.vault, name="Shop", email="o@shop.example", now=utc_now())
            till = Desks(replace(self.desk, database=database), shop_of(made, live=False), self.bank)
            await change_merchant(database, made.id, test_pingback_url="https://shop.example/pingback")
            if known is not None:
                await known(till)
        async with self.copies(name) as (_, database):
            lost = replace(till, desk=replace(self.desk, database=database))
            await forgotten(lost)
            books = await lost.books()
        async with self.copies(name) as (_, database):
            yield replace(till, desk=replace(self.desk, database=database)), books
