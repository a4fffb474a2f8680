"""One merchant's dead or slow endpoint does not stand in another's way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests import set_back
from tests.lengths import long

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.team import add_member
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop


async def acknowledged(database: Database, shop: Shop) -> int:
    return int(
        await database.fetchval(
            "select count(*) from pingback where merchant_id = $1 and state = 'acknowledged'", shop.merchant_id
        )
    )


async def test_a_hanging_endpoint_with_thousands_due_does_not_delay_another_merchant(
    database: Database,
    shop: Shop,
    other_shop: Shop,
    make_sender: Any,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Any,
) -> None:
    receiver.held.add("/dead")
    await queue(shop, f"{receiver.base}/dead", number=3000)
    run_sender(make_sender())
    await eventually(lambda: receiver.under_way.get("/dead", 0) == 32)
    await queue(other_shop, f"{receiver.base}/fine", number=100)

    async def all_of_the_other() -> bool:
        return await acknowledged(database, other_shop) == 100

    await eventually(all_of_the_other)
    assert receiver.most_under_way["/dead"] == 32
    assert await acknowledged(database, shop) == 0


async def test_a_merchants_own_other_endpoint_is_not_delayed_either(
    database: Database, shop: Shop, make_sender: Any, run_sender: Any, receiver: Any, queue: Any, eventually: Any
) -> None:
    receiver.held.add("/dead")
    await queue(shop, f"{receiver.base}/dead", number=1000)
    run_sender(make_sender())
    await eventually(lambda: receiver.under_way.get("/dead", 0) == 32)
    await queue(shop, f"{receiver.base}/fine", number=10)

    async def all_of_the_other() -> bool:
        return await acknowledged(database, shop) == 10

    await eventually(all_of_the_other)


async def test_a_merchant_with_a_url_for_each_order_has_one_share_all_the_same(
    database: Database,
    shop: Shop,
    other_shop: Shop,
    make_sender: Any,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Any,
) -> None:
    receiver.held.update(f"/dead/{number}" for number in range(300))
    for number in range(300):
        await queue(shop, f"{receiver.base}/dead/{number}")
    run_sender(make_sender(in_hand=200, per_merchant=50))
    await eventually(lambda: len(receiver.received) == 50)
    await queue(other_shop, f"{receiver.base}/fine", number=50)

    async def all_of_the_other() -> bool:
        return await acknowledged(database, other_shop) == 50

    await eventually(all_of_the_other)
    assert sum(receiver.under_way.values()) == 50


async def test_no_merchant_is_forgotten_when_there_are_more_than_one_claim_looks_at(
    database: Database, vault: Vault, make_sender: Any, receiver: Any, queue: Any
) -> None:
    shops = [
        Shop((await create_merchant(database, vault, name=f"Shop {n}", email="a@b.example", now=utc_now())).id, False)
        for n in range(25)
    ]
    for shop in shops:
        await queue(shop, f"{receiver.base}/{shop.merchant_id}", number=3)
    assert await make_sender(sides_per_claim=4, in_hand=10).send_due_once(utc_now()) == 75
    assert {one.path for one in receiver.received} == {f"/{shop.merchant_id}" for shop in shops}


async def test_when_all_slots_are_scarce_merchants_take_turns(
    shop: Shop, other_shop: Shop, make_sender: Any, run_sender: Any, receiver: Any, queue: Any, eventually: Any
) -> None:
    receiver.held.update({"/one", "/two"})
    await queue(shop, f"{receiver.base}/one", number=100)
    await queue(other_shop, f"{receiver.base}/two", number=100)
    run_sender(make_sender(in_hand=10))
    await eventually(lambda: len(receiver.received) == 10)
    await asyncio.sleep(0)
    assert {path: receiver.under_way[path] for path in ("/one", "/two")} == {"/one": 5, "/two": 5}


async def test_an_endpoint_has_a_limit_of_requests_at_once(
    database: Database, shop: Shop, make_sender: Any, receiver: Any, queue: Any
) -> None:
    await queue(shop, f"{receiver.base}/pay", number=200)
    assert await make_sender(per_endpoint=4).send_due_once(utc_now()) == 200
    assert receiver.most_under_way["/pay"] <= 4


async def test_a_sender_whose_hands_are_full_in_the_middle_of_a_round_rests(
    shop: Shop, other_shop: Shop, make_sender: Any, run_sender: Any, receiver: Any, queue: Any, eventually: Any
) -> None:
    shop, other_shop = replace(shop, live=True), replace(other_shop, live=True)
    receiver.held.update({"/one", "/two"})
    await queue(shop, f"{receiver.base}/one", number=20)
    await queue(other_shop, f"{receiver.base}/two", number=20)
    sender = make_sender(in_hand=10, sides_per_claim=1)
    while await sender._claim_once():
        assert len(sender._in_hand) <= 12
    await eventually(lambda: len(receiver.received) == 12)
    assert not await sender._claim_once(), "there is more to do, but no room for it: it must not come back at once"
    receiver.let_go.set()
    run_sender(sender)
    await eventually(lambda: len(receiver.received) == 40)


async def test_what_only_waits_to_be_recorded_takes_nobodys_place_up_to_a_bound(
    shop: Shop,
    make_sender: Any,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await queue(shop, f"{receiver.base}/pay", number=100)
    sender, may_record = make_sender(in_hand=10), asyncio.Event()
    record = sender._recorder._record

    async def held(batch: Any) -> Any:
        await may_record.wait()
        return await record(batch)

    monkeypatch.setattr(sender._recorder, "_record", held)
    run_sender(sender)
    await eventually(lambda: sender._spare_room == 0 and not sender._unanswered)
    assert 30 <= len(receiver.received) <= 48
    may_record.set()
    await eventually(lambda: not sender._in_hand and len(receiver.received) == 100)


@pytest.fixture
async def people(database: Database) -> Callable[[Shop], Awaitable[int]]:
    """Gives a shop an owner of its own."""

    async def owned(shop: Shop) -> int:
        person_id = await set_back.somebody(database)
        await add_member(database, shop.merchant_id, person_id, Role.owner, now=utc_now())
        return int(person_id)

    return owned


async def test_one_person_with_many_dead_shops_holds_no_more_than_a_share(
    database: Database,
    vault: Vault,
    other_shop: Shop,
    people: Callable[[Shop], Awaitable[int]],
    make_sender: Any,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Any,
) -> None:
    person_id = None
    for number in range(12):
        merchant = await create_merchant(database, vault, name="Dead", email="a@b.example", now=utc_now())
        shop = Shop(merchant.id, live=number % 2 == 0)
        if person_id is None:
            person_id = await people(shop)
        else:
            await add_member(database, merchant.id, person_id, Role.owner, now=utc_now())
        receiver.held.add(f"/dead/{number}")
        await queue(shop, f"{receiver.base}/dead/{number}", number=20)
    run_sender(make_sender(in_hand=64, per_endpoint=8))
    await eventually(lambda: sum(receiver.under_way.values()) >= 16)
    await queue(other_shop, f"{receiver.base}/fine", number=100)

    async def all_of_the_other() -> bool:
        return await acknowledged(database, other_shop) == 100

    await eventually(all_of_the_other)
    hanging = sum(number for path, number in receiver.under_way.items() if path.startswith("/dead/"))
    assert hanging == 16, "a quarter of what may be in hand, and none of what is spare"


@long
async def test_however_many_test_shops_are_dead_a_live_one_is_told(
    database: Database,
    vault: Vault,
    make_sender: Any,
    run_sender: Any,
    receiver: Any,
    queue: Any,
    eventually: Any,
) -> None:
    for number in range(90):
        merchant = await create_merchant(database, vault, name="Dead", email="a@b.example", now=utc_now())
        receiver.held.add(f"/dead/{number}")
        await queue(Shop(merchant.id, live=False), f"{receiver.base}/dead/{number}", number=2)
    run_sender(make_sender(in_hand=64, per_endpoint=8))
    await eventually(lambda: sum(receiver.under_way.values()) >= 72)
    merchant = await create_merchant(database, vault, name="Living", email="a@b.example", now=utc_now())
    living = Shop(merchant.id, live=True)
    await queue(living, f"{receiver.base}/fine", number=50)

    async def all_of_the_living() -> bool:
        return await acknowledged(database, living) == 50

    await eventually(all_of_the_living)
    hanging = sum(number for path, number in receiver.under_way.items() if path.startswith("/dead/"))
    assert hanging == 72, "all that may be in hand and half of what is spare"
