"""What waits for an endpoint without room is walked past once; nothing is forgotten behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.domain.pingbacks.test_claiming import SHARE, WALKED

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks import full_sides
from paydesk.domain.pingbacks.claiming import Claims, Load
from paydesk.domain.pingbacks.keyring import Keyring

DEAD, FINE = "https://dead.example/pay", "https://fine.example/pay"
LONG_AGO = timedelta(hours=1)

Look = Callable[..., Awaitable[tuple[list[str], int]]]


@pytest.fixture
def look(database: Database, vault: Vault, shop: Shop) -> Look:
    """Claims for a sender whose lanes at these URLs are full; returns the URLs of what was taken,
    and how many due ones it read.
    """
    claims = Claims(database, Keyring(database, vault), timedelta(seconds=40))

    async def claim(full: Sequence[str] = (DEAD,)) -> tuple[list[str], int]:
        lanes = [Load((shop.merchant_id, shop.live, url), 2, 0) for url in full]
        async with database.acquire() as connection, connection.transaction():
            claims._database = connection
            before = await connection.fetchval(WALKED, "pingback_due")
            taken = await claims.take(utc_now(), SHARE, lanes)
            return [one.url for one in taken], await connection.fetchval(WALKED, "pingback_due") - before

    return claim


async def test_thousands_due_at_a_full_endpoint_are_walked_past_once(shop: Shop, queue: Any, look: Look) -> None:
    await queue(shop, DEAD, number=1000, due_at=utc_now() - LONG_AGO)
    assert (await look())[1] >= 1000
    for _ in range(3):
        taken, read = await look()
        assert taken == []
        assert read <= 10


async def test_what_another_endpoint_of_the_side_is_owed_meanwhile_is_taken_at_once(
    shop: Shop, queue: Any, look: Look
) -> None:
    await queue(shop, DEAD, number=10, due_at=utc_now() - LONG_AGO)
    await look()
    await queue(shop, FINE)
    assert (await look())[0] == [FINE]


async def test_the_full_endpoints_own_are_taken_once_it_has_room(shop: Shop, queue: Any, look: Look) -> None:
    await queue(shop, DEAD, number=10, due_at=utc_now() - LONG_AGO)
    await look()
    assert (await look(full=()))[0] == [DEAD] * 10


async def test_when_one_of_two_full_endpoints_has_room_its_old_ones_are_taken(
    shop: Shop, queue: Any, look: Look
) -> None:
    await queue(shop, DEAD, number=10, due_at=utc_now() - LONG_AGO)
    await queue(shop, FINE, number=3, due_at=utc_now() - LONG_AGO)
    assert (await look(full=[DEAD, FINE]))[0] == []
    assert (await look(full=[DEAD]))[0] == [FINE] * 3


async def test_what_becomes_due_with_an_old_date_is_found_by_the_next_whole_look(
    shop: Shop, queue: Any, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue(shop, DEAD, number=10, due_at=utc_now() - LONG_AGO)
    monkeypatch.setattr(full_sides, "_WHOLE_SECONDS", 0.0)
    await look()
    await queue(shop, FINE, due_at=utc_now() - LONG_AGO)
    assert (await look())[0] == [FINE]
