"""What was taken, or waits for an endpoint without room, is walked past once;
nothing is forgotten behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests import set_back
from tests.breaking import say
from tests.domain.pingbacks.test_claiming import SHARE, WALKED

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks import passed_sides
from paydesk.domain.pingbacks.claiming import Claims, ClaimShare, Load
from paydesk.domain.pingbacks.keyring import Keyring

DEAD, FINE = "https://dead.example/pay", "https://fine.example/pay"
LONG_AGO, SECOND = timedelta(hours=1), timedelta(seconds=1)
BATCH = 100
"""What `SHARE` lets one claim take."""

PAGES = """
select sum(pg_stat_get_xact_blocks_fetched(indexrelid))::bigint from pg_index where indrelid = to_regclass('pingback')
"""

Look = Callable[..., Awaitable[tuple[list[str], int]]]
MakeClaims = Callable[..., Claims]


@pytest.fixture
def claims_of(database: Database, vault: Vault) -> MakeClaims:
    """Makes the claims of one worker more."""
    return lambda: Claims(database, Keyring(database, vault), timedelta(seconds=40))


@pytest.fixture
def look(database: Database, claims_of: MakeClaims, shop: Shop) -> Look:
    """Claims for a sender whose lanes at these URLs are full; returns the URLs of what was taken,
    and how many due ones it read.
    """
    claims = claims_of()

    async def claim(full: Sequence[str] = (DEAD,), share: ClaimShare = SHARE) -> tuple[list[str], int]:
        lanes = [Load((shop.merchant_id, shop.live, url), 0, 0) for url in full]
        async with database.acquire() as connection, connection.transaction():
            claims._database = connection
            before = await connection.fetchval(WALKED, "pingback_due")
            taken = await claims.take(utc_now(), share, lanes)
            return [one.url for one in taken], await connection.fetchval(WALKED, "pingback_due") - before

    return claim


@pytest.fixture
async def snapshot(database: Database) -> AsyncIterator[None]:
    """Somebody reads the database as it was, so that no index forgets what has been."""
    async with database.acquire() as connection, connection.transaction(isolation="repeatable_read"):
        await connection.fetchval("select 1 from merchant limit 1")
        yield


@pytest.fixture
def whole_looks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passed_sides, "_WHOLE_SECONDS", 0.0)
    monkeypatch.setattr(passed_sides, "_WHOLE_SECONDS_IF_FULL", 0.0)


async def put_by(queue: Any, shop: Shop, number: int) -> list[datetime]:
    """As many batches are due, each a second after the one before; returns when."""
    first = utc_now() - LONG_AGO
    moments = [first + place * SECOND for place in range(number)]
    for due_at in moments:
        await queue(shop, FINE, number=BATCH, due_at=due_at)
    return moments


async def taken_by(claims: Claims, share: ClaimShare = SHARE, lanes: Sequence[Load] = ()) -> list[int]:
    """What one claim more takes, by ids, for a sender with these lanes."""
    return [one.name[2] for one in await claims.take(utc_now(), share, lanes)]


async def due_of(database: Database, shop: Shop) -> list[int]:
    """All that is due, oldest first."""
    rows = await database.fetch(
        "select id from pingback where merchant_id = $1 and state = 'due' order by due_at, id", shop.merchant_id
    )
    return [row["id"] for row in rows]


async def test_thousands_due_at_a_full_endpoint_are_walked_past_once(shop: Shop, queue: Any, look: Look) -> None:
    await queue(shop, DEAD, number=1000, due_at=utc_now() - LONG_AGO)
    assert (await look())[1] >= 1000
    for _ in range(3):
        taken, read = await look()
        assert taken == []
        assert read <= 10


async def test_they_are_walked_past_once_beside_a_backlog_of_another_endpoint(
    shop: Shop, queue: Any, look: Look
) -> None:
    await queue(shop, DEAD, number=1000, due_at=utc_now() - LONG_AGO - SECOND)
    await put_by(queue, shop, 4)
    assert (await look())[1] >= 1000
    for _ in range(3):
        taken, read = await look()
        assert taken == [FINE] * BATCH
        assert read <= 4 * BATCH


@pytest.mark.usefixtures("snapshot")
async def test_a_claim_does_not_walk_past_what_was_sent_before(
    database: Database, shop: Shop, queue: Any, look: Look
) -> None:
    for due_at in await put_by(queue, shop, 10):
        taken, read = await look(full=())
        assert taken == [FINE] * BATCH
        await say(database, "pingback", {"due_at": due_at}, state="acknowledged")
    # Its own and the last one's twice, when they are counted and when they are locked.
    assert read <= 4 * BATCH + 10


async def test_a_claim_reads_few_pages_of_a_long_backlogs_indexes(
    database: Database, claims_of: MakeClaims, shop: Shop, queue: Any
) -> None:
    await put_by(queue, shop, 2)
    await queue(shop, FINE, number=40_000)
    await database.execute("analyze pingback")
    claims = claims_of()
    await taken_by(claims)
    async with database.acquire() as connection, connection.transaction():
        claims._database = connection
        before = await connection.fetchval(PAGES)
        await taken_by(claims)
        # All of its index is more than thirty.
        assert await connection.fetchval(PAGES) - before <= 20


async def test_the_next_side_is_found_without_walking_what_was_ever_sent(
    database: Database, vault: Vault, claims_of: MakeClaims, queue: Any
) -> None:
    """Also by a planner that knows that a good part of all is due, to many merchants."""
    shops = [
        Shop((await create_merchant(database, vault, name="Shop", email="a@b.example", now=utc_now())).id, False)
        for _ in range(60)
    ]
    for busy in shops[:2]:
        await queue(busy, FINE, number=2000)
    await say(database, "pingback", {}, state="acknowledged")
    for one in shops:
        await queue(one, FINE, number=20, due_at=utc_now() - LONG_AGO)
    await database.execute("analyze pingback")
    claims = claims_of()
    async with database.acquire() as connection, connection.transaction():
        claims._database = connection
        before = await connection.fetchval(WALKED, "pingback_pkey")
        assert len(await taken_by(claims)) == BATCH
        assert await connection.fetchval(WALKED, "pingback_pkey") - before <= BATCH


@pytest.mark.usefixtures("snapshot")
async def test_what_becomes_due_after_all_was_sent_is_found_without_walking_past_that(
    database: Database, shop: Shop, queue: Any, look: Look
) -> None:
    await put_by(queue, shop, 5)
    for _ in range(6):
        await look(full=())
    await queue(shop, FINE)
    taken, read = await look(full=())
    assert taken == [FINE]
    assert read <= 10


async def test_workers_share_out_a_backlog_and_take_nothing_twice(
    database: Database, claims_of: MakeClaims, shop: Shop, queue: Any
) -> None:
    await put_by(queue, shop, 12)
    workers = [claims_of() for _ in range(3)]
    taken = [await asyncio.gather(*(taken_by(worker) for worker in workers)) for _ in range(4)]
    assert [len(ids) for at_once in taken for ids in at_once] == [BATCH] * 12
    ids = sorted(one for at_once in taken for mine in at_once for one in mine)
    assert ids == sorted(await due_of(database, shop))
    assert await asyncio.gather(*(taken_by(worker) for worker in workers)) == [[], [], []]


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("neighbour", [0, 1])
async def test_another_side_has_its_share_of_the_next_claim(
    live: bool, neighbour: int, claims_of: MakeClaims, shop: Shop, other_shop: Shop, queue: Any
) -> None:
    """Whichever of the two comes first when they are visited in order."""
    busy, other = ((shop, other_shop), (other_shop, shop))[neighbour]
    await put_by(queue, busy, 3)
    claims = claims_of()
    await taken_by(claims)
    id_of_other = await queue(replace(other, live=live), FINE)
    assert id_of_other in await taken_by(claims)


async def test_a_backlog_is_taken_oldest_first_where_an_endpoint_has_room_for_a_part(
    database: Database, claims_of: MakeClaims, shop: Shop, queue: Any
) -> None:
    await put_by(queue, shop, 2)
    claims, due = claims_of(), await due_of(database, shop)
    some = [Load((shop.merchant_id, shop.live, FINE), 0, 30)]
    taken = [one for _ in range(5) for one in await taken_by(claims, lanes=some)]
    assert taken == due[:150]


async def test_what_there_was_no_room_for_in_all_is_taken_next(
    database: Database, claims_of: MakeClaims, shop: Shop, other_shop: Shop, queue: Any
) -> None:
    for one in (shop, other_shop):
        await put_by(queue, one, 1)
    claims, few = claims_of(), replace(SHARE, room=10)
    taken = [one for _ in range(6) for one in await taken_by(claims, few)]
    for one in (shop, other_shop):
        due = await due_of(database, one)
        assert [id_ for id_ in taken if id_ in due] == due[:30]


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


async def test_they_are_taken_also_if_a_backlog_of_another_endpoint_was_begun_meanwhile(
    shop: Shop, queue: Any, look: Look
) -> None:
    await queue(shop, DEAD, number=10, due_at=utc_now() - LONG_AGO - SECOND)
    await put_by(queue, shop, 3)
    for _ in range(2):
        assert (await look())[0] == [FINE] * BATCH
    assert (await look(full=()))[0] == [DEAD] * 10 + [FINE] * (BATCH - 10)


async def test_when_one_of_two_full_endpoints_has_room_its_old_ones_are_taken(
    shop: Shop, queue: Any, look: Look
) -> None:
    await queue(shop, DEAD, number=10, due_at=utc_now() - LONG_AGO)
    await queue(shop, FINE, number=3, due_at=utc_now() - LONG_AGO)
    assert (await look(full=[DEAD, FINE]))[0] == []
    assert (await look(full=[DEAD]))[0] == [FINE] * 3


@pytest.mark.usefixtures("whole_looks_only")
async def test_what_becomes_due_with_an_old_date_is_found_by_the_next_whole_look(
    shop: Shop, queue: Any, look: Look
) -> None:
    await queue(shop, DEAD, number=10, due_at=utc_now() - LONG_AGO)
    await look()
    await queue(shop, FINE, due_at=utc_now() - LONG_AGO)
    assert (await look())[0] == [FINE]


async def test_what_becomes_due_with_an_older_date_than_a_backlogs_is_taken_after_a_second(
    claims_of: MakeClaims, shop: Shop, queue: Any
) -> None:
    await put_by(queue, shop, 3)
    claims = claims_of()
    await taken_by(claims)
    older = await queue(shop, FINE, due_at=utc_now() - 2 * LONG_AGO)
    await asyncio.sleep(0.6)
    at_first = await taken_by(claims)
    await asyncio.sleep(0.5)
    assert older in at_first + await taken_by(claims)


async def test_what_a_clock_that_is_behind_made_due_is_taken_after_a_second(
    claims_of: MakeClaims, shop: Shop, queue: Any
) -> None:
    claims = claims_of()
    await queue(shop, FINE)
    assert len(await taken_by(claims)) == 1
    behind = await queue(shop, FINE, due_at=utc_now() - 5 * SECOND)
    await asyncio.sleep(1.05)
    assert await taken_by(claims) == [behind]


async def test_what_a_worker_took_that_died_is_taken_by_another_that_has_gone_past(
    database: Database, claims_of: MakeClaims, shop: Shop, queue: Any
) -> None:
    await put_by(queue, shop, 5)
    dead, other = claims_of(), claims_of()
    lost = await taken_by(dead)
    assert not set(lost) & set(await taken_by(other) + await taken_by(other))
    await set_back.times(database, "pingback", {}, leased_until=utc_now() - SECOND)
    await asyncio.sleep(1.05)
    assert await taken_by(other) == lost


async def test_what_a_worker_gives_back_is_taken_by_another_that_has_gone_past(
    claims_of: MakeClaims, shop: Shop, queue: Any
) -> None:
    await put_by(queue, shop, 5)
    ending, other = claims_of(), claims_of()
    given = await ending.take(utc_now(), SHARE, [])
    await taken_by(other)
    await ending.give_back([one.name for one in given])
    await asyncio.sleep(1.05)
    assert await taken_by(other) == [one.name[2] for one in given]


async def test_only_so_many_sides_are_remembered() -> None:
    passed, now = passed_sides.PassedSides(), utc_now()
    for merchant_id in range(1000):
        passed.note((merchant_id, False), frozenset(), None, at=now, is_whole=True)
    known: dict[tuple[int, bool], datetime | None] = passed.known({})
    assert list(known) == [(merchant_id, False) for merchant_id in range(936, 1000)]
