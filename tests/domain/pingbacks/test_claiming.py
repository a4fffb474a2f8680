from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import pairwise
from typing import Any

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.claiming import Claims, ClaimShare
from paydesk.domain.pingbacks.keyring import Keyring

SHARE = ClaimShare(room=100, test=100, owner=100, side=100, endpoint=100, sides=10)
WRITTEN = "select pg_stat_get_xact_tuples_updated(t), pg_stat_get_xact_tuples_hot_updated(t) from to_regclass($1) t"

WALKED = "select pg_stat_get_xact_tuples_returned(i) from to_regclass($1) i"


async def test_taking_pingbacks_writes_to_no_index(database: Database, vault: Vault, shop: Shop, queue: Any) -> None:
    await queue(shop, "https://shop.example/pay", number=100)
    async with database.acquire() as connection, connection.transaction():
        claims = Claims(connection, Keyring(database, vault), timedelta(seconds=40))
        # The server may count what the connection did before with it.
        before = await connection.fetchrow(WRITTEN, "pingback")
        taken = await claims.take(utc_now(), SHARE, [])
        after = await connection.fetchrow(WRITTEN, "pingback")
    written, in_place = (now - then for now, then in zip(after, before, strict=True))
    assert len(taken) == written == 100
    assert in_place >= 95


async def test_senders_that_take_at_the_same_moment_each_get_as_many_as_one_alone(
    database: Database, vault: Vault, shop: Shop, queue: Any
) -> None:
    await queue(shop, "https://shop.example/pay", number=500)
    async with AsyncExitStack() as at_once:
        taken, read = [], []
        for _ in range(4):
            connection = await at_once.enter_async_context(database.acquire())
            await at_once.enter_async_context(connection.transaction())
            before = await connection.fetchval(WALKED, "pingback_due")
            claims = Claims(connection, Keyring(database, vault), timedelta(seconds=40))
            taken.append([one.name for one in await claims.take(utc_now(), SHARE, [])])
            read.append(await connection.fetchval(WALKED, "pingback_due") - before)
    assert [len(names) for names in taken] == [100, 100, 100, 100]
    assert len({name for names in taken for name in names}) == 400
    # Each walks past what those before it are just taking, once.
    assert all(later - earlier <= 100 for earlier, later in pairwise(read)), read


async def test_what_is_taken_shows_neither_key_nor_customer(
    database: Database, vault: Vault, shop: Shop, queue: Any
) -> None:
    await queue(shop, "https://shop.example/pay")
    (taken,) = await Claims(database, Keyring(database, vault), timedelta(seconds=40)).take(utc_now(), SHARE, [])
    assert taken.private_key
    assert taken.private_key not in repr(taken)
    assert "firstname" in taken.payload
    assert "firstname" not in repr(taken)
