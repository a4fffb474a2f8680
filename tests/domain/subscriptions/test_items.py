"""One-off items: what the next charge of a subscription has besides its price, once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.domain.subscriptions.test_changing_plans import DAY, PRO, Charges, amounts, due, renewed, to
from tests.domain.subscriptions.test_machine import begin
from tests.domain.subscriptions.test_prorating import THIRTY_DAYS
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.core.errors import Busy, Conflict, NotFound
from paydesk.core.money import LARGEST
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.changing import cancel_later, pause, resume
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.items import (
    MOST_SHOWN,
    MOST_WAITING,
    ItemDone,
    ItemState,
    WantedItem,
    add_item,
    key_of_repeats,
    list_items,
    take_back_item,
)
from paydesk.domain.subscriptions.lifecycle import Subscription

SETUP = WantedItem(Decimal("5.00"), "Set-up")
FAILS_LATER = "4000000000000341"


async def added(till: Till, begun: Subscription, wanted: WantedItem = SETUP, **how: Any) -> ItemDone:
    now = how.pop("now", begun.date_start + DAY)
    return await add_item(till.database, till.shop, begun.id, wanted, by="api", now=now, **how)


async def taken_back(till: Till, begun: Subscription, item_id: int, **how: Any) -> ItemDone:
    return await take_back_item(till.database, till.shop, begun.id, item_id, now=begun.date_start + 2 * DAY, **how)


async def states(till: Till, begun: Subscription) -> list[tuple[str, ItemState]]:
    """What each item is called, and what became of it, the newest first."""
    return [(one.description, one.state) for one in await list_items(till.database, till.shop, begun.id)]


def number(done: ItemDone) -> int:
    assert done.item is not None
    return done.item.id


async def test_no_charge_becomes_larger_than_a_payment_may_be(subscriber: Till) -> None:
    """What is larger could be charged, and neither be charged back nor given back in part."""
    begun = await subscriber.subscribe()
    largest = WantedItem(LARGEST.quantize(Decimal("0.01"), ROUND_DOWN) - 10, "Everything")
    done = await added(subscriber, begun, largest)
    assert done.next_amount == largest.amount + 10
    for how in ({"preview": True}, {}):
        with pytest.raises(Conflict, match="no payment is larger"):
            await added(subscriber, begun, WantedItem(Decimal("0.01"), "And a bit"), **how)
    assert await states(subscriber, begun) == [("Everything", ItemState.WAITING)]


async def test_it_comes_with_the_next_charge_and_with_no_other(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe()
    seen = await added(subscriber, begun, preview=True)
    assert (seen.next_amount, seen.next_at, seen.item) == (Decimal("15.00"), begun.date_next, None)
    assert (await subscriber.now(begun), await states(subscriber, begun)) == (begun, [])
    done = await added(subscriber, begun)
    assert (done.next_amount, done.next_at, done.balance) == (seen.next_amount, seen.next_at, Decimal(5))
    assert await subscriber.problems() == []
    current = await renewed(subscriber, done.subscription)
    assert amounts(charges) == [Decimal(10), Decimal(15)]
    assert await states(subscriber, begun) == [("Set-up", ItemState.CHARGED)]
    await renewed(subscriber, current)
    assert amounts(charges) == [Decimal(10), Decimal(15), Decimal(10)]
    (item,) = await list_items(subscriber.database, subscriber.shop, begun.id)
    assert item.payment_id == (await subscriber.payments())[1]["id"]
    assert await subscriber.problems() == []


EXAMPLES = (Path(__file__).parents[3] / "docs" / "integrate.md").read_text().split("| item | next charges |")[1]


@pytest.mark.parametrize("row", EXAMPLES.split("\n\n")[0].splitlines()[2:])
async def test_the_examples_of_the_docs_are_charged_so(subscriber: Till, row: str) -> None:
    begun_on, price, added_on, item, later = [cell.strip() for cell in row.strip("|").split("|")]
    day = {f"{at:%-d %B}": at for at in (datetime(2027, 1, 1, tzinfo=UTC) + n * DAY for n in range(365))}
    begun = await subscriber.subscribe(replace(MONTHLY, price=Decimal(price)), now=day[begun_on])
    await added(subscriber, begun, WantedItem(Decimal(item), "Extra"), now=day[added_on])
    current = await subscriber.now(begun)
    for said in later.split(", "):
        amount, _, on = said.partition(" on ")
        assert f"{due(current):%-d %B}" == on
        current = await renewed(subscriber, current)
        assert (await subscriber.payments())[-1]["amount"] == Decimal(amount)
    assert await subscriber.problems() == []


async def test_taken_back_before_it_is_never_charged(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe()
    first, second = await added(subscriber, begun), await added(subscriber, begun, WantedItem(Decimal(2), "Sticker"))
    foreseen = await taken_back(subscriber, begun, number(first), preview=True)
    assert (foreseen.next_amount, foreseen.moved) == (Decimal("12.00"), False)
    for moved in (True, False):
        done = await taken_back(subscriber, begun, number(first))
        assert (done.moved, done.balance, done.next_amount) == (moved, Decimal(2), Decimal("12.00"))
    await renewed(subscriber, done.subscription)
    assert amounts(charges) == [Decimal(10), Decimal(12)]
    assert await states(subscriber, begun) == [("Sticker", ItemState.CHARGED), ("Set-up", ItemState.TAKEN_BACK)]
    with pytest.raises(Conflict, match="was charged with payment"):
        await taken_back(subscriber, begun, number(second))
    assert await subscriber.problems() == []


async def test_under_a_callers_key_there_is_one_however_often_it_comes(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    done = await asyncio.gather(*(added(subscriber, begun, request_key="once") for _ in range(4)))
    assert {number(one) for one in done} == {number(done[0])}
    assert sum(one.moved for one in done) == 1
    assert await find_balance(subscriber.database, subscriber.shop, begun.id) == Decimal(5)
    with pytest.raises(Conflict, match="another request before"):
        await added(subscriber, begun, WantedItem(Decimal(6), "Set-up"), request_key="once")
    assert await subscriber.problems() == []


async def test_many_at_once_are_all_charged_with_the_next(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe()
    wanted = [WantedItem(Decimal(value), f"item {value}") for value in range(1, 5)]
    await asyncio.gather(*(added(subscriber, begun, one) for one in wanted))
    await renewed(subscriber, begun)
    assert amounts(charges) == [Decimal(10), Decimal(20)]
    assert await subscriber.problems() == []


async def test_while_a_charge_fails_it_waits_for_the_one_after(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe(number=FAILS_LATER)
    failing = await subscriber.charge_due(begun)
    assert failing.failures == 1
    done = await added(subscriber, failing)
    await subscriber.charge_due(failing)
    assert [row["amount"] for row in await subscriber.payments()] == [Decimal(10), Decimal(10)]
    assert await states(subscriber, begun) == [("Set-up", ItemState.WAITING)]
    back = await taken_back(subscriber, begun, number(done))
    assert (back.moved, back.balance) == (True, Decimal(0))
    assert await subscriber.problems() == []


async def test_what_was_tried_with_it_keeps_it_and_drops_it_with_the_subscription(subscriber: Till) -> None:
    begun = await subscriber.subscribe(number=FAILS_LATER)
    done = await added(subscriber, begun)
    await subscriber.charge_due(begun)
    with pytest.raises(Conflict, match="was tried with item"):
        await taken_back(subscriber, begun, number(done))
    ended = (await subscriber.now(begun)).date_next
    assert ended is not None
    await cancel(subscriber.database, subscriber.shop, begun.id, by="api", now=ended)
    assert await states(subscriber, begun) == [("Set-up", ItemState.DROPPED)]
    with pytest.raises(Conflict, match="has ended"):
        await added(subscriber, begun)
    assert await subscriber.problems() == []


async def test_a_change_of_plan_gives_none_of_it_back(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await added(subscriber, begun)
    current = await renewed(subscriber, begun)
    began = current.period_began_at
    how = {"at_once": True, "prorating": Prorating.NEXT_CHARGE}
    changed = await to(subscriber, current, Plan(price="30.00"), began + 10 * DAY, **how)
    assert changed.proration is not None
    assert (changed.proration.old_price, changed.proration.amount) == (Decimal(10), Decimal("13.3333"))
    await renewed(subscriber, await subscriber.now(begun))
    assert amounts(charges) == [Decimal(10), Decimal(15), Decimal("43.33")]
    assert await subscriber.problems() == []


async def test_charged_with_a_change_at_once_it_is_not_taken_back_any_more(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    done = await added(subscriber, begun)
    wish = AtOnce(begun.id, PRO, "api", begun.date_start + 10 * DAY)
    difference = (await change_and_charge(subscriber.desk, subscriber.shop, wish)).difference
    assert difference.amount == Decimal("18.33")
    (item,) = await list_items(subscriber.database, subscriber.shop, begun.id)
    assert (item.state, item.payment_id) == (ItemState.CHARGED, difference.payment_id)
    with pytest.raises(Conflict, match="was charged with payment"):
        await taken_back(subscriber, begun, number(done))
    await renewed(subscriber, await subscriber.now(begun))
    assert amounts(charges) == [Decimal(10), Decimal("18.33"), Decimal(30)]
    assert await subscriber.problems() == []


async def test_of_a_paused_one_it_comes_with_the_charge_after_the_pause(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe()
    at = begun.date_start + DAY
    await pause(subscriber.database, subscriber.shop, begun.id, until=None, by="api", now=at)
    done = await added(subscriber, begun)
    assert (done.next_at, done.next_amount) == (None, Decimal("15.00"))
    later = await resume(subscriber.database, subscriber.shop, begun.id, now=at + 5 * DAY)
    await renewed(subscriber, later.subscription)
    assert amounts(charges) == [Decimal(10), Decimal(15)]
    assert await subscriber.problems() == []


async def test_where_no_charge_comes_there_is_none(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start + DAY)
    with pytest.raises(Conflict, match="is not charged any more"):
        await added(subscriber, begun)
    with pytest.raises(NotFound):
        await add_item(
            subscriber.database, Shop(subscriber.shop.merchant_id, live=True), begun.id, SETUP, by="api",
            now=begun.date_start,
        )  # fmt: skip


async def test_after_the_last_of_its_payments_there_is_none(subscriber: Till) -> None:
    once = await subscriber.subscribe(replace(MONTHLY, limit=1))
    with pytest.raises(Conflict, match="is not charged any more"):
        await added(subscriber, once)


async def test_while_it_is_charged_nobody_adds_or_takes_back(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    done = await added(subscriber, begun)
    await subscriber.die_after_claim(due(begun))
    with pytest.raises(Busy):
        await added(subscriber, begun)
    with pytest.raises(Busy):
        await taken_back(subscriber, begun, number(done))
    await subscriber.act(minutes=30)
    assert await subscriber.problems() == []


async def test_a_charge_and_a_taking_back_at_once_agree(subscriber: Till, charges: Charges) -> None:
    begun = await subscriber.subscribe()
    done = await added(subscriber, begun)

    async def take_back() -> bool:
        try:
            return (await taken_back(subscriber, begun, number(done))).moved
        except (Busy, Conflict):
            return False

    moved, _ = await asyncio.gather(take_back(), subscriber.charge(due(begun)))
    # Who is just being changed is passed over, and charged by the next look.
    await subscriber.charge(due(begun))
    assert amounts(charges)[1:] == [Decimal(10) if moved else Decimal(15)]
    await renewed(subscriber, await subscriber.now(begun))
    assert amounts(charges)[2:] == [Decimal(10)]
    assert await subscriber.problems() == []


async def test_no_more_wait_than_somebody_reads(subscriber: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paydesk.domain.subscriptions.items.MOST_WAITING", 3)
    assert MOST_WAITING == 100
    begun = await subscriber.subscribe()
    for _ in range(3):
        await added(subscriber, begun)
    with pytest.raises(Conflict, match=r"3 items .* wait already"):
        await added(subscriber, begun)
    await renewed(subscriber, begun)
    await added(subscriber, begun, now=begun.date_start + timedelta(days=40))


async def test_what_is_wanted_once_more_has_a_key_of_its_own_however_much_went_before(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    for count in range(MOST_SHOWN):
        await added(subscriber, begun, now=begun.date_start + count * timedelta(seconds=1))
        if (count + 1) % MOST_WAITING == 0:
            begun = await renewed(subscriber, await subscriber.now(begun))
    keys = set()
    for _ in range(3):
        key = await key_of_repeats(subscriber.database, subscriber.shop, begun.id, SETUP)
        done = await added(subscriber, begun, request_key=key)
        await taken_back(subscriber, begun, number(done))
        keys.add(key)
    assert len(keys) == 3


@pytest.mark.parametrize("coupon", [{"percent": "50"}, {"percent": "100", "periods": "1"}])
async def test_a_coupon_makes_none_of_it_cheaper(subscriber: Till, coupon: dict[str, str]) -> None:
    begun = await begin(subscriber, MONTHLY, "club-1", coupon)
    await added(subscriber, begun)
    current = await renewed(subscriber, await subscriber.now(begun))
    left = Decimal(5) if "periods" not in coupon else Decimal(10)
    assert [row["amount"] for row in await subscriber.payments()][1:] == [left + SETUP.amount]
    await renewed(subscriber, current)
    assert [row["amount"] for row in await subscriber.payments()][2:] == [left]
    assert await subscriber.problems() == []
