"""Many dead shops at once, with more due than a sender may have in hand:
a living one is served all along.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from tests.lengths import at_length, long
from tests.shopfront import open_page, press_pay

from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop

DEAD, SLOW, FAILING = at_length((30, 10, 10), (15, 4, 4))
DUE = at_length(50, 20)
"""Pingbacks of each; of the dead shops 1,500, in the short form 300."""

IN_HAND, PER_ENDPOINT = at_length(192, 96), 8
"""Part of the defaults, so that the dead shops alone could hold all: 240, in the short form 120."""

WAVES, CUSTOMERS = 3, 3
"""So often the living shop has something new to be told,
each time with so many customers who pay meanwhile."""


@pytest.fixture
async def patient() -> AsyncIterator[OutboundClient]:
    """Waits so long for an answer that none of those that never come is given up during
    the test.
    """
    client = OutboundClient([ip_network("127.0.0.0/8")], timeout=600.0)
    yield client
    await client.close()


async def count(database: Database, merchants: list[int], condition: str) -> int:
    """How many pingbacks of these fulfil a condition."""
    asked = f"select count(*) from pingback where merchant_id = any($1) and {condition}"
    return int(await database.fetchval(asked, merchants))


@pytest.fixture
async def crowd(database: Database, vault: Vault, receiver: Any, queue: Any) -> dict[str, list[int]]:
    """Shops by how their servers are, each with pingbacks due."""
    found: dict[str, list[int]] = {}
    for kind, number in (("dead", DEAD), ("slow", SLOW), ("failing", FAILING)):
        found[kind] = []
        for _ in range(number):
            merchant = await create_merchant(database, vault, name=kind, email="a@b.example", now=utc_now())
            found[kind].append(merchant.id)
            await queue(Shop(merchant.id, False), f"{receiver.base}/{kind}/{merchant.id}", number=DUE)
    receiver.held.update(f"/dead/{each}" for each in found["dead"])
    receiver.slow.update(f"/slow/{each}" for each in found["slow"])
    receiver.answers.update({f"/failing/{each}": [(500, b"broken")] for each in found["failing"]})
    return found


async def buy(web: httpx.AsyncClient, form: dict[str, Any]) -> None:
    """A customer pays on the page, in the very event loop that the sender works on."""
    paid = await press_pay(web, await open_page(web, form))
    assert paid.headers["location"].startswith("https://shop.example/"), paid.text


@long
async def test_a_living_shop_and_its_customers_are_served_throughout_beside_many_dead_ones(
    patient: OutboundClient,
    run_sender: Any,
    make_sender: Any,
    database: Database,
    merchant: Merchant,
    crowd: dict[str, list[int]],
    receiver: Any,
    queue: Any,
    web: httpx.AsyncClient,
    signed_form: Callable[..., dict[str, Any]],
    eventually: Any,
) -> None:
    shop = shop_of(merchant, live=False)
    crowd["living"] = [merchant.id]
    sender = make_sender(patient, in_hand=IN_HAND, per_endpoint=PER_ENDPOINT, lease=1210.0, grace=0.0)
    run_sender(sender)

    def at_the_dead() -> int:
        return sum(number for path, number in receiver.under_way.items() if path.startswith("/dead/"))

    await eventually(lambda: at_the_dead() >= IN_HAND - SLOW * PER_ENDPOINT)
    for wave in range(1, WAVES + 1):
        await queue(shop, f"{receiver.base}/living", number=DUE)
        for customer in range(CUSTOMERS):
            await buy(
                web,
                signed_form(merchant_order_id=f"{wave}-{customer}", pingback_url=f"{receiver.base}/living/customers"),
            )

        async def all_told(wave: int = wave) -> bool:
            return await count(database, crowd["living"], "state = 'acknowledged'") == wave * (DUE + CUSTOMERS)

        await eventually(all_told)

    async def slow_ones_are_told() -> bool:
        return await count(database, crowd["slow"], "state = 'acknowledged'") == SLOW * DUE

    async def failing_ones_were_tried() -> bool:
        return (
            await count(database, crowd["failing"], "attempts = 1 and state = 'due' and due_at > now()")
            == FAILING * DUE
        )

    await eventually(slow_ones_are_told)
    await eventually(failing_ones_were_tried)
    await eventually(lambda: at_the_dead() >= IN_HAND)
    paid = "select count(*) from payment where merchant_id = $1 and state = 'captured'"
    assert await database.fetchval(paid, merchant.id) == WAVES * CUSTOMERS
    # Whoever fails was tried once, and is due again later; whoever is dead has taken nothing and
    # still waits.
    assert await count(database, crowd["dead"], "attempts = 0 and state = 'due'") == DEAD * DUE
    assert at_the_dead() <= IN_HAND + IN_HAND // 4
    assert max(receiver.most_under_way.values()) <= PER_ENDPOINT
