"""A database that forgets asks for the same thing under the same key,
and the bank does nothing twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import random
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.domain.conftest import OpenCopy
from tests.shopfront import buy, ship, ships
from tests.standings import standings
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.idempotency_keys import pads_of
from paydesk.domain.payments.refunding import refund
from paydesk.domain.payments.results import Paid
from paydesk.domain.test_clock.resetting import reset_test_side

VISA, DECLINED = "4242424242424242", "4000000000000002"


Twice = Callable[..., Awaitable[tuple[list[str], list[str]]]]
Taken = Callable[[], list[Standing]]


async def _keys(database: Database) -> set[str]:
    rows = await database.fetch(
        "select idempotency_key as key from payment_attempt union all select idempotency_key from movement"
    )
    return {row["key"] for row in rows}


@pytest.fixture
def twice(copies: OpenCopy, desk: Desk) -> Twice:
    """Play something with a database that is put back to what it was after `begin`,
    and goes on as if nothing had been; the keys of each time.
    """

    async def play(
        begin: Callable[[Till], Awaitable[Any]], go_on: Callable[[Till, Any], Awaitable[None]]
    ) -> tuple[list[str], list[str]]:
        async with copies() as (name, database):
            made = await create_merchant(database, desk.vault, name="Shop", email="o@shop.example", now=utc_now())
            shop = shop_of(made, live=False)
            known = await begin(Till(replace(desk, database=database), shop))
        played = []
        for _ in range(2):
            async with copies(name) as (_, database):
                till = Till(replace(desk, database=database), shop)
                before = await _keys(database)
                await go_on(till, known)
                played.append(sorted(await _keys(database) - before))
        return played[0], played[1]

    return play


@pytest.fixture
def taken(bank: Bank) -> Taken:
    """What took money at the bank."""
    return lambda: [one for one in standings(bank.record.operations()).values() if one.captured]


async def _paid(till: Till) -> int:
    return await buy(till.desk, till.shop, "mug")


async def test_an_order_that_was_forgotten_is_not_charged_again(twice: Twice, taken: Taken) -> None:
    async def begin(till: Till) -> Link:
        return await till.order("mug")

    async def pay(till: Till, token: Link) -> None:
        assert await till.pay(token, VISA) == Paid()

    first, second = await twice(begin, pay)
    assert first == second
    assert len(taken()) == 1


async def test_an_order_that_the_shop_asks_for_anew_is_not_charged_again(twice: Twice, taken: Taken) -> None:
    async def begin(till: Till) -> None:
        """The order itself is forgotten too, and other orders come first: ids go to others."""

    async def pay(till: Till, _: None) -> None:
        if taken():
            await till.order("other")
        assert await till.pay(await till.order("mug"), VISA) == Paid()

    first, second = await twice(begin, pay)
    assert first == second
    assert len(taken()) == 1


async def test_each_attempt_of_an_order_has_its_number(twice: Twice, taken: Taken) -> None:
    async def begin(till: Till) -> Link:
        return await till.order("mug")

    async def pay(till: Till, token: Link) -> None:
        for card in (DECLINED, DECLINED, DECLINED, VISA):
            if await till.pay(token, card) == Paid():
                break
        numbers = [row["number"] for row in await till.attempts()]
        assert numbers in ([1, 2, 3, 4], [4]), "what was forgotten is passed over at once"

    first, second = await twice(begin, pay)
    assert len(set(first)) == 4
    assert set(second) < set(first)
    assert len(taken()) == 1


async def test_a_renewal_that_was_forgotten_is_not_charged_again(twice: Twice, taken: Taken) -> None:
    async def begin(till: Till) -> Any:
        return await till.subscribe()

    async def renew(till: Till, subscription: Any) -> None:
        await till.charge_due(subscription)

    first, second = await twice(begin, renew)
    assert first == second
    assert len(first) == 1
    assert len(taken()) == 2


@pytest.mark.parametrize("request_key", ["K1", None])
async def test_a_refund_that_was_forgotten_is_not_made_again(
    twice: Twice, taken: Taken, request_key: str | None
) -> None:
    async def give_back(till: Till, payment_id: int) -> None:
        four = Decimal("4.00")
        await refund(till.desk, till.shop, payment_id, four, requested_by="api", request_key=request_key, now=utc_now())

    first, second = await twice(_paid, give_back)
    assert first == second
    assert [one.refunded for one in taken()] == [Decimal("4.00")]


async def test_a_void_and_a_capture_that_were_forgotten_have_the_same_keys(twice: Twice) -> None:
    async def begin(till: Till) -> list[int]:
        await ships(till.desk.database, till.shop)
        return [await buy(till.desk, till.shop, order) for order in ("kept", "left")]

    async def ship_and_void(till: Till, payments: list[int]) -> None:
        await ship(till.desk, till.shop, payments[0])
        await refund(till.desk, till.shop, payments[1], None, requested_by="api", now=utc_now())

    first, second = await twice(begin, ship_and_void)
    assert first == second
    assert len(first) == 2


async def test_another_secret_makes_other_keys(till: Till) -> None:
    till = replace(till, desk=replace(till.desk, pads=pads_of(b"one" * 20)))
    await till.pay(await till.order("mug"), DECLINED)
    (row,) = await till.attempts()
    other = pads_of(b"two" * 20)
    tag = await till.desk.database.fetchval("select key_tag from merchant where id = $1", till.shop.merchant_id)
    wish = f"order {tag} test 0 1 mug"
    made = [
        await till.desk.database.fetchval("select derived_key($1, $2)", pads, wish) for pads in (till.desk.pads, other)
    ]
    assert made[0] == row["idempotency_key"]
    assert made[1] != made[0]


async def test_keys_are_hmacs_in_the_form_of_a_uuid_of_version_4(database: Database) -> None:
    secret, wish = b"s" * 40, "order 0a live 1 Größe 💶"
    key = hashlib.sha256(b"paydesk keys of acquirers: " + secret).digest()
    digest = hmac.digest(key, wish.encode(), "sha256").hex()
    made = uuid.UUID(await database.fetchval("select derived_key($1, $2)", pads_of(secret), wish))
    assert (made.version, made.variant) == (4, uuid.RFC_4122)
    assert made.hex[:12] == digest[:12]
    assert (made.hex[13:16], made.hex[17:]) == (digest[13:16], digest[17:32])


async def test_keys_are_those_that_were_made_when_they_were_first_derived(database: Database) -> None:
    texts = random.Random(7)
    wishes = [f"order 0a live {number} {'ß注🧾 -'[: number % 6]}{texts.getrandbits(64)}" for number in range(5000)]
    differing = await database.fetchval(
        r"""
        select count(*)
          from unnest($2::text[]) wish
         where derived_key($1, wish) is distinct from regexp_replace(
                   encode(sha256(substr($1, 65, 64) || sha256(substr($1, 1, 64) || convert_to(wish, 'UTF8'))), 'hex'),
                   '^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$', '\1-\2-4\3-8\4-\5')
        """,
        pads_of(b"s" * 40),
        wishes,
    )
    assert differing == 0


async def test_two_shops_with_the_same_order_have_different_keys(till: Till, other_shop: Shop) -> None:
    other = replace(till, shop=other_shop)
    for one in (till, other):
        await one.pay(await one.order("mug"), VISA)
    keys = {row["idempotency_key"] for one in (till, other) for row in await one.attempts()}
    assert len(keys) == 2


async def test_an_order_of_before_a_reset_has_another_key_than_one_after(till: Till, bank: Bank) -> None:
    database = till.desk.database
    await till.pay(await till.order("mug"), VISA)
    (before,) = await till.attempts()
    await reset_test_side(database, till.shop.merchant_id)
    assert await till.pay(await till.order("mug"), VISA) == Paid()
    (after,) = await till.attempts()
    assert after["idempotency_key"] != before["idempotency_key"]
    assert len([one for one in standings(bank.record.operations()).values() if one.captured]) == 2


async def test_of_attempts_that_race_one_is_counted(till: Till) -> None:
    token = await till.order("mug")
    await till.pay(token, DECLINED)
    raced = await asyncio.gather(*(till.pay(token, DECLINED) for _ in range(6)), return_exceptions=True)
    assert {type(one) for one in raced if isinstance(one, Exception)} <= {Conflict}
    numbers = [row["number"] for row in await till.attempts()]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_refunds_that_race_have_a_number_each(till: Till, bank: Bank) -> None:
    payment_id = await _paid_here(till)
    await asyncio.gather(
        *(
            refund(till.desk, till.shop, payment_id, Decimal("1.00"), requested_by="api", now=utc_now())
            for _ in range(6)
        )
    )
    (one,) = [one for one in standings(bank.record.operations()).values() if one.captured]
    assert one.refunded == Decimal("6.00")


async def _paid_here(till: Till) -> int:
    await till.pay(await till.order(), VISA)
    of = till.shop.merchant_id
    return int(await till.desk.database.fetchval("select id from payment where merchant_id = $1", of))


async def test_a_key_that_was_drawn_before_stays_and_counts(till: Till) -> None:
    token = await till.order("mug")
    await till.pay(token, DECLINED)
    await breaking.say(
        till.desk.database,
        "payment_attempt",
        {"merchant_id": till.shop.merchant_id},
        idempotency_key="7-drawn",
        number=None,
    )
    await till.pay(token, VISA)
    assert [(row["idempotency_key"] == "7-drawn", row["number"]) for row in await till.attempts()] == [
        (True, None),
        (False, 2),
    ]


def test_a_desk_without_a_secret_of_its_own_still_derives(desk: Desk, vault: Vault) -> None:
    assert replace(desk, pads=b"").pads == replace(desk, pads=b"", vault=vault).pads
    assert len(desk.pads) == 128
