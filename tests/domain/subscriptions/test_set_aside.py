"""One row that can't be worked out stops nobody: not the renewals beside it, not the janitor,
not another merchant.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests import breaking, set_back
from tests.banks import ObedientBank
from tests.breaking import refusing
from tests.lengths import long
from tests.shopfront import ships
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.ledger.settling import settle_due as settle_funds
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.subscriptions import failed_renewals
from paydesk.domain.subscriptions.ending import expire_due
from paydesk.domain.subscriptions.failing import failed
from paydesk.domain.subscriptions.lifecycle import Subscription

__all__ = ["database", "database_url"]

AT_THE_END = datetime(9999, 12, 31, tzinfo=UTC)
"""Where no calendar goes on: what comes after the next payment can't be worked out."""


@pytest.fixture
async def bad(desk: Desk, shop: Shop, obedient: ObedientBank, database: Database) -> Till:
    # What other tests left due is not charged at this test's bank.
    await database.execute("update subscription set date_next = date_next + interval '100 years' where not live")
    return Till(desk, shop).at(obedient)


@pytest.fixture
async def good(bad: Till, other_shop: Shop) -> Till:
    """Another merchant, with five subscriptions that can be worked out, all of them due."""
    till = replace(bad, shop=other_shop)
    for number in range(5):
        await set_back.renewal_due(till.database, (await till.subscribe(order=f"even-{number}")).id)
    return till


@pytest.fixture
async def odd(bad: Till) -> Subscription:
    """A subscription that is due and can't be worked out."""
    begun = await bad.subscribe(order="odd")
    await breaking.say(bad.database, "subscription", {"id": begun.id}, anchor=AT_THE_END)
    await set_back.renewal_due(bad.database, begun.id)
    return begun


async def charge(till: Till) -> None:
    """All in one batch, as it happens where many are due."""
    run = BillingRun(till.desk)
    while await run.charge_due():
        pass


async def renewals(till: Till) -> list[str]:
    return [payment["state"] for payment in await till.payments() if payment["renewal"]]


async def test_the_renewals_beside_it_are_recorded(bad: Till, good: Till, odd: Subscription) -> None:
    await charge(good)
    assert await renewals(good) == ["captured"] * 5
    assert await renewals(bad) == ["processing"]
    [alarm] = [*await bad.rows("alarm"), *await good.rows("alarm")]
    assert alarm["subject"].startswith("attempt ")
    assert "the money is taken" in alarm["reason"]
    assert "out of range" in alarm["reason"]


async def test_the_failures_beside_one_that_can_not_be_worked_out_are_recorded(
    bad: Till, good: Till, odd: Subscription, obedient: ObedientBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd_fails(subscription: Subscription, *, at: datetime, reason: str) -> Subscription:
        if subscription.id == odd.id:
            raise OverflowError("date value out of range")
        return failed(subscription, at=at, reason=reason)

    monkeypatch.setattr(failed_renewals, "failed", odd_fails)
    obedient.refuse = DeclineReason.INSUFFICIENT_FUNDS
    await charge(good)
    assert await renewals(good) == ["declined"] * 5
    assert await renewals(bad) == ["processing"]
    assert [alarm["reason"] for alarm in [*await bad.rows("alarm"), *await good.rows("alarm")]] == [
        "its failure can't be recorded: OverflowError: date value out of range"
    ]


@long
async def test_the_janitor_goes_on_and_records_it_once_it_is_mended(
    bad: Till, good: Till, odd: Subscription, obedient: ObedientBank
) -> None:
    await charge(good)
    for minutes in (1, 3, 70):
        await settle_due(good.desk, now=utc_now() + timedelta(minutes=minutes))
    [alarm] = [*await bad.rows("alarm"), *await good.rows("alarm")]
    assert alarm["times"] > 1
    later = await bad.database.fetchval(
        "select max(lookup_at) from payment_attempt where merchant_id = $1", bad.shop.merchant_id
    )
    assert later > utc_now() + timedelta(hours=1), "it is tried again at a later date"
    await breaking.say(bad.database, "subscription", {"id": odd.id}, anchor=odd.anchor)
    await settle_due(good.desk, now=later + timedelta(seconds=1))
    assert await renewals(bad) == ["captured"]
    assert len(obedient.kept) == 2 * 6, "and nothing was charged twice"


async def test_renewals_begin_beside_one_whose_intent_can_not_be_written(
    bad: Till, good: Till, odd: Subscription
) -> None:
    async with refusing(bad.database, "payment", f"coalesce(subscription_id = {odd.id}, false) and renewal"):
        await charge(good)
    assert await renewals(good) == ["captured"] * 5
    assert await renewals(bad) == []
    [alarm] = [*await bad.rows("alarm"), *await good.rows("alarm")]
    assert alarm["subject"] == f"subscription {odd.id}"
    assert "its charge can't be begun: CheckViolationError" in alarm["reason"]
    due = await bad.database.fetchval("select date_next from subscription where id = $1", odd.id)
    assert due > utc_now() + timedelta(minutes=50), "a later date"


async def test_money_becomes_available_beside_a_payment_that_can_not_be_posted(
    bad: Till, good: Till, odd: Subscription
) -> None:
    database, stuck = bad.database, odd.init_payment_id
    shops = [bad.shop.merchant_id, good.shop.merchant_id]
    await database.execute("update payment set funds_due_at = null where merchant_id <> all($1)", shops)
    await database.execute(
        "update payment set funds_due_at = now(), funds_look_at = now() where merchant_id = any($1)", shops
    )
    async with refusing(database, "ledger_posting", f"payment_id = {stuck} and kind = 'settlement'"):
        assert await settle_funds(database, real_now=utc_now()) == 5
        assert await settle_funds(database, real_now=utc_now()) == 0, "it is not met again at once"
    assert [alarm["subject"] for alarm in [*await bad.rows("alarm"), *await good.rows("alarm")]] == [f"payment {stuck}"]
    assert await settle_funds(database, real_now=utc_now() + timedelta(hours=2)) == 1


async def test_holds_are_let_go_beside_one_whose_void_can_not_be_begun(
    bad: Till, good: Till, desk: Desk, buy: Any, database: Database, shop: Shop
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
    assert f"payment {odd}" in [alarm["subject"] for alarm in [*await bad.rows("alarm"), *await good.rows("alarm")]]
    while await act_on_due(desk, real_now=later + timedelta(hours=2)):
        pass
    assert await database.fetchval("select state from payment where id = $1", odd) == "voided"


async def test_a_subscription_ends_beside_one_whose_end_can_not_be_written(
    bad: Till, good: Till, odd: Subscription
) -> None:
    ids = await bad.database.fetch(
        "update subscription set date_next = null, date_end = now() - interval '1 hour' where id = any("
        " select id from subscription where merchant_id = any($1)) returning id",
        [bad.shop.merchant_id, good.shop.merchant_id],
    )
    async with refusing(bad.database, "subscription", f"id = {odd.id} and state = 'Expired'"):
        while await expire_due(bad.database, real_now=utc_now()):
            pass
        assert await expire_due(bad.database, real_now=utc_now()) == 0
    left = await bad.database.fetch(
        "select id from subscription where state = 'Active' and id = any($1::bigint[])", [row["id"] for row in ids]
    )
    assert [row["id"] for row in left] == [odd.id]
    [alarm] = [*await bad.rows("alarm"), *await good.rows("alarm")]
    assert (alarm["subject"], alarm["times"]) == (f"subscription {odd.id}", 1)
