"""A shop's PHP accepts every pingback of an account that has asked for no new event, whatever is
done to its subscriptions.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests import breaking, set_back
from tests.docs.shops import running_shop
from tests.domain.coupons.test_coupons import coupon, with_coupon
from tests.domain.pingbacks.conftest import MakeSender
from tests.shopfront import MONTHLY, subscription_of
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.merchants.merchant import Merchant, change_merchant, shop_of
from paydesk.domain.payments.desk import Desk
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.subscriptions.changing import carry_out_due, pause, resume
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating, change_plan
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import several

pytestmark = pytest.mark.skipif(shutil.which("php") is None, reason="php is not installed")

WAYS = (("v1", "json"), ("v1", "form"), ("v2", "json"))
OF_SEVERAL = {"quantity", "unit_price"}
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Club:
    """A shop whose plugin is real PHP, and its till; `kept` is what the plugin made of them."""

    till: Till
    url: str
    version: str
    sender: PingbackSender
    kept: Path

    async def join(self, order: str, **asked: Any) -> Subscription:
        return await self.till.subscribe(order=order, pingback_url=self.url, sign_version=self.version, **asked)

    async def charge(self, subscription: Subscription) -> Subscription:
        """A change that is due is carried out, and the next period charged."""
        known = await self.till.now(subscription)
        at = known.date_next or known.paid_until
        await carry_out_due(self.till.database, real_now=utc_now(), merchant_id=self.till.shop.merchant_id, at=at)
        await self.till.charge(at)
        return await self.till.now(subscription)

    async def told(self) -> list[dict[str, Any]]:
        """What the plugin made of all that was sent, in the order in which it happened."""
        rows = await self.till.rows("pingback")
        await set_back.all_due_now(self.till.database, self.till.shop.merchant_id)
        for _ in rows:
            await self.sender.send_due_once(utc_now())
        assert {row["state"] for row in await self.till.rows("pingback")} == {"acknowledged"}, self.kept.read_text()
        return [json.loads(line) for line in self.kept.read_text().splitlines()]


@pytest.fixture(params=WAYS, ids="-".join)
async def club(
    request: pytest.FixtureRequest,
    desk: Desk,
    database: Database,
    merchant: Merchant,
    make_sender: MakeSender,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Club]:
    version, body_format = request.param
    await change_merchant(database, merchant.id, pingback_format=body_format)
    folder = tmp_path_factory.mktemp("shop")
    shutil.copy(Path(__file__).parent / "shop_plugin.php", folder)
    kept = folder / "kept"
    with running_shop(
        ["php", "-S", "{address}", "shop_plugin.php"], folder, KEY=merchant.private_key, KEPT=str(kept)
    ) as plugin:
        till, one_by_one = Till(desk, shop_of(merchant, live=False)), make_sender(per_endpoint=1)
        yield Club(till, f"{plugin.url}/pingback", version, one_by_one, kept)


def events(told: list[dict[str, Any]]) -> list[str]:
    return [one["event"] for one in told]


async def test_it_accepts_what_a_changed_and_paused_subscription_tells(club: Club) -> None:
    till = club.till
    begun = await club.join("club-1")
    known = (till.database, till.shop, begun.id)
    await change_plan(*known, Plan(sku_id="pro", name="Pro", price="30.00"), by="api", now=utc_now())
    begun = await club.charge(begun)
    half = half_through(begun)
    await pause(*known, by="customer", now=half)
    assert (await till.now(begun)).paused
    await resume(*known, now=half + 10 * DAY)
    begun = await club.charge(begun)
    # A credit covers the next period: a payment of 0.00, which asks no bank.
    await change_plan(
        *known, Plan(price="1.00"), by="api", at_once=True, prorating=Prorating.NEXT_CHARGE, now=half_through(begun)
    )
    begun = await club.charge(begun)
    await change_and_charge(
        till.desk, till.shop, AtOnce(begun.id, Plan(price="90.00"), by="api", now=half_through(begun))
    )
    payment = begun.init_payment_id
    await till.give_back(payment, "4.00")
    await till.give_back(payment)
    await cancel(*known, by="api", now=utc_now())
    told = await club.told()
    paid = [Decimal(one["paid"]) for one in told if one["event"] == "payment"]
    assert paid[:4] == [10, 30, 30, 0]
    assert len(paid) == 5
    assert events(told)[5:] == ["partial_refund", "refund", "subscription_cancelled"]
    assert {one["order"] for one in told if one["event"] == "payment"} == {"club-1"}
    assert {one["recurring_id"] for one in told if one["fields"]} <= {payment, str(payment)}
    assert all(OF_SEVERAL.isdisjoint(one["fields"]) for one in told), "who sells one of a thing sees no new field"


async def test_it_accepts_what_coupons_and_quantities_tell(club: Club) -> None:
    till = club.till
    await coupon(till, percent="50", periods="1", code="FIRST")
    link = await with_coupon(till, "first", order="club-1", pingback_url=club.url, sign_version=club.version)
    await till.pay(link)
    begun = await subscription_of(till.database, till.shop, "club-1")
    await club.charge(begun)
    three = await club.join("club-2", terms=several(replace(MONTHLY, sku_id="seats"), "3", "quantity"))
    await change_plan(till.database, till.shop, three.id, Plan(quantity="2"), by="customer", now=utc_now())
    await club.charge(three)
    told = await club.told()
    assert events(told) == ["payment"] * 4
    assert [f"{one['order']} {one['paid']}" for one in told] == [
        "club-1 5.00", "club-1 10.00", "club-2 30.00", "club-2 20.00",
    ]  # fmt: skip
    assert [OF_SEVERAL.issubset(one["fields"]) for one in told] == [False, False, True, True]


def half_through(subscription: Subscription) -> datetime:
    """Half of the period that is paid is over."""
    return subscription.paid_until - 15 * DAY


async def test_it_would_not_accept_an_event_that_it_does_not_know(club: Club) -> None:
    """So it sees what the tests above are there to see."""
    till = club.till
    await breaking.say(till.database, "merchant", {"id": till.shop.merchant_id}, extra_events=["subscription_paused"])
    begun = await club.join("club-1")
    await pause(till.database, till.shop, begun.id, by="customer", now=utc_now())
    with pytest.raises(AssertionError, match="subscription_paused is no event"):
        await club.told()
