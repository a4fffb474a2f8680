"""One row that can't be worked out stops nobody: not the renewals beside it, not the janitor,
not another merchant.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests import breaking
from tests.domain.subscriptions.subscriber import ObedientBank, Subscriber
from tests.shopfront import ships
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.ledger.settling import settle_due as settle_funds
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.subscriptions import failed_renewals
from paydesk.domain.subscriptions.ending import expire_due
from paydesk.domain.subscriptions.lifecycle import Subscription, failed

__all__ = ["database", "database_url"]

NOWHERE = "Nowhere/At All"
"""A time zone that no calendar knows: what comes after the next payment can't be worked out."""


class Club:
    """A subscription that can't be worked out, and five of another merchant's that can,
    all of them due.
    """

    def __init__(self, desk: Desk, shop: Shop, other_shop: Shop) -> None:
        self.bank = ObedientBank()
        self.bad = Subscriber(desk, shop).at(self.bank)
        self.good = Subscriber(desk, other_shop).at(self.bank)
        self.database = desk.database

    odd: Subscription

    async def open(self) -> None:
        self.odd = await self.bad.subscribe(order="odd")
        many = [await self.good.subscribe(order=f"even-{number}") for number in range(5)]
        await breaking.say(self.database, "subscription", {"id": self.odd.id}, time_zone=NOWHERE)
        await self.database.execute(
            "update subscription set date_next = $1 where id = any($2)",
            utc_now() - timedelta(minutes=1),
            [self.odd.id, *(one.id for one in many)],
        )

    async def charge(self) -> None:
        """All in one batch, as it happens where many are due."""
        while await self.good.run.charge_due():
            pass

    async def renewals(self, club: Subscriber) -> list[str]:
        rows = await self.database.fetch(
            "select state from payment where merchant_id = $1 and renewal order by id", club.shop.merchant_id
        )
        return [row["state"] for row in rows]

    async def alarms(self) -> list[Any]:
        return list(
            await self.database.fetch(
                "select subject, reason, times from alarm where merchant_id = any($1)",
                [self.bad.shop.merchant_id, self.good.shop.merchant_id],
            )
        )


@pytest.fixture
async def club(desk: Desk, shop: Shop, other_shop: Shop, database: Database) -> Club:
    # What other tests left due is not charged at this test's bank.
    await database.execute("update subscription set date_next = date_next + interval '100 years' where not live")
    found = Club(desk, shop, other_shop)
    await found.open()
    return found


async def test_the_renewals_beside_it_are_recorded(club: Club) -> None:
    await club.charge()
    assert await club.renewals(club.good) == ["captured"] * 5
    assert await club.renewals(club.bad) == ["processing"]
    [alarm] = await club.alarms()
    assert alarm["subject"].startswith("attempt ")
    assert "the money is taken" in alarm["reason"]
    assert NOWHERE in alarm["reason"]


async def test_the_failures_beside_one_that_can_not_be_worked_out_are_recorded(
    club: Club, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd_fails(subscription: Subscription, *, at: datetime) -> Subscription:
        if subscription.id == club.odd.id:
            raise OverflowError("date value out of range")
        return failed(subscription, at=at)

    monkeypatch.setattr(failed_renewals, "failed", odd_fails)
    club.bank.refuse = DeclineReason.INSUFFICIENT_FUNDS
    await club.charge()
    assert await club.renewals(club.good) == ["declined"] * 5
    assert await club.renewals(club.bad) == ["processing"]
    assert [alarm["reason"] for alarm in await club.alarms()] == [
        "its failure can't be recorded: OverflowError: date value out of range"
    ]


async def test_the_janitor_goes_on_and_records_it_once_it_is_mended(club: Club) -> None:
    await club.charge()
    for minutes in (1, 3, 70):
        await settle_due(club.good.desk, now=utc_now() + timedelta(minutes=minutes))
    [alarm] = await club.alarms()
    assert alarm["times"] > 1
    later = await club.database.fetchval(
        "select max(lookup_at) from payment_attempt where merchant_id = $1", club.bad.shop.merchant_id
    )
    assert later > utc_now() + timedelta(hours=1), "it is tried again at a later date"
    await breaking.say(club.database, "subscription", {"id": club.odd.id}, time_zone="UTC")
    await settle_due(club.good.desk, now=later + timedelta(seconds=1))
    assert await club.renewals(club.bad) == ["captured"]
    assert len(club.bank.kept) == 2 * 6, "and nothing was charged twice"


@asynccontextmanager
async def refusing(database: Database, table: str, condition: str) -> AsyncIterator[None]:
    """The database takes no row of a table that meets a condition, for the length of a block."""
    await database.execute(f"alter table {table} add constraint odd check (not ({condition})) not valid")
    try:
        yield
    finally:
        await database.execute(f"alter table {table} drop constraint odd")


async def test_renewals_begin_beside_one_whose_intent_can_not_be_written(club: Club) -> None:
    async with refusing(club.database, "payment", f"coalesce(subscription_id = {club.odd.id}, false) and renewal"):
        await club.charge()
    assert await club.renewals(club.good) == ["captured"] * 5
    assert await club.renewals(club.bad) == []
    [alarm] = await club.alarms()
    assert alarm["subject"] == f"subscription {club.odd.id}"
    assert "its charge can't be begun: CheckViolationError" in alarm["reason"]
    due = await club.database.fetchval("select date_next from subscription where id = $1", club.odd.id)
    assert due > utc_now() + timedelta(minutes=50), "a later date"


async def test_money_becomes_available_beside_a_payment_that_can_not_be_posted(club: Club) -> None:
    database, odd = club.database, club.odd.init_payment_id
    shops = [club.bad.shop.merchant_id, club.good.shop.merchant_id]
    await database.execute("update payment set funds_due_at = null where merchant_id <> all($1)", shops)
    await database.execute("update payment set funds_due_at = now() where merchant_id = any($1)", shops)
    async with refusing(database, "ledger_entry", f"payment_id = {odd} and kind = 'settlement'"):
        assert await settle_funds(database, real_now=utc_now()) == 5
        assert await settle_funds(database, real_now=utc_now()) == 0, "it is not met again at once"
    assert [alarm["subject"] for alarm in await club.alarms()] == [f"payment {odd}"]
    assert await settle_funds(database, real_now=utc_now() + timedelta(hours=2)) == 1


async def test_holds_are_let_go_beside_one_whose_void_can_not_be_begun(
    club: Club, desk: Desk, buy: Any, database: Database, shop: Shop
) -> None:
    await ships(database, shop)
    await database.execute("update payment set shipping_due_at = null where shipping_due_at is not null")
    odd, even = await buy(order="parcel-1"), await buy(order="parcel-2")
    later = utc_now() + timedelta(days=8)
    async with refusing(database, "movement", f"payment_id = {odd}"):
        while await act_on_due(desk, real_now=later):
            pass
    states = [await database.fetchval("select state from payment where id = $1", one) for one in (odd, even)]
    assert states == ["authorized", "voided"]
    assert f"payment {odd}" in [alarm["subject"] for alarm in await club.alarms()]
    while await act_on_due(desk, real_now=later + timedelta(hours=2)):
        pass
    assert await database.fetchval("select state from payment where id = $1", odd) == "voided"


async def test_a_subscription_ends_beside_one_whose_end_can_not_be_written(club: Club) -> None:
    ids = await club.database.fetch(
        "update subscription set date_next = null, date_end = now() - interval '1 hour' where id = any("
        " select id from subscription where merchant_id = any($1)) returning id",
        [club.bad.shop.merchant_id, club.good.shop.merchant_id],
    )
    async with refusing(club.database, "subscription", f"id = {club.odd.id} and state = 'Expired'"):
        while await expire_due(club.database, real_now=utc_now()):
            pass
        assert await expire_due(club.database, real_now=utc_now()) == 0
    left = await club.database.fetch(
        "select id from subscription where state = 'Active' and id = any($1::bigint[])", [row["id"] for row in ids]
    )
    assert [row["id"] for row in left] == [club.odd.id]
    [alarm] = await club.alarms()
    assert (alarm["subject"], alarm["times"]) == (f"subscription {club.odd.id}", 1)
