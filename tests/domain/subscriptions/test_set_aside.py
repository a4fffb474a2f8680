"""One row that can't be worked out stops nobody: not the renewals beside it, not the janitor, not another merchant."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.domain.subscriptions.subscriber import ObedientBank, Subscriber

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.paying import Desk
from paydesk.domain.subscriptions import failures
from paydesk.domain.subscriptions.lifecycle import Subscription, failed

NOWHERE = "Nowhere/At All"
"""A time zone that no calendar knows: what comes after the next payment can't be worked out."""


class Club:
    """A subscription that can't be worked out, and five of another merchant's that can, all of them due."""

    def __init__(self, desk: Desk, shop: Shop, other_shop: Shop) -> None:
        self.bank = ObedientBank()
        self.bad = Subscriber(desk, shop).at(self.bank)
        self.good = Subscriber(desk, other_shop).at(self.bank)
        self.database = desk.database

    odd: Subscription

    async def open(self) -> None:
        self.odd = await self.bad.subscribe(order="odd")
        many = [await self.good.subscribe(order=f"even-{number}") for number in range(5)]
        await self.database.execute("update subscription set time_zone = $1 where id = $2", NOWHERE, self.odd.id)
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

    monkeypatch.setattr(failures, "failed", odd_fails)
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
    await club.database.execute("update subscription set time_zone = 'UTC' where id = $1", club.odd.id)
    await settle_due(club.good.desk, now=later + timedelta(seconds=1))
    assert await club.renewals(club.bad) == ["captured"]
    assert len(club.bank.kept) == 2 * 6, "and nothing was charged twice"
