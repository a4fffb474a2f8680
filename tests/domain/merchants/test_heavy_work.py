"""Nobody has so much heavy work under way that others go short."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress

import pytest
from tests import set_back

from paydesk.core.clock import utc_now
from paydesk.core.errors import TooMany
from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.team import add_member
from paydesk.domain.merchants.heavy_work import MOST, Asker, Work, WorkShare, take_share
from paydesk.domain.merchants.shop import Shop


def anywhere() -> str:
    return f"2001:db8::{secrets.token_hex(2)}:{secrets.token_hex(2)}"


@pytest.fixture
async def owner_id(database: Database, shop: Shop, other_shop: Shop) -> int:
    """Somebody who owns both shops."""
    person_id = await set_back.somebody(database)
    for owned in (shop, other_shop):
        await add_member(database, owned.merchant_id, person_id, Role.owner, now=utc_now())
    return int(person_id)


async def taken(database: Database, work: Work, *askers: Asker) -> list[WorkShare | BaseException]:
    """What came of asking for all of them at once."""
    return await asyncio.gather(*(take_share(database, work, one) for one in askers), return_exceptions=True)


def count(answers: list[WorkShare | BaseException]) -> int:
    refused = [one for one in answers if isinstance(one, BaseException)]
    assert all(isinstance(one, TooMany) for one in refused), refused
    return len(answers) - len(refused)


async def test_however_many_ask_at_once_a_person_gets_two(database: Database, shop: Shop) -> None:
    mine = [Asker(anywhere(), None, -shop.merchant_id) for _ in range(10)]
    assert count(await taken(database, Work.EXPORT, *mine)) == MOST[Work.EXPORT].person == 2


async def test_a_side_an_owner_and_an_address_have_their_share_whoever_asks(
    database: Database, shop: Shop, other_shop: Shop, owner_id: int
) -> None:
    test, live = shop, Shop(shop.merchant_id, live=True)
    of_side = [Asker(anywhere(), test) for _ in range(6)]
    assert count(await taken(database, Work.EXPORT, *of_side)) == MOST[Work.EXPORT].side
    assert count(await taken(database, Work.EXPORT, Asker(anywhere(), live), Asker(anywhere(), other_shop))) == 0, (
        f"person {owner_id} owns the other side and the other shop, too"
    )
    assert count(await taken(database, Work.TEST_CLOCK, Asker(anywhere(), other_shop))) == 1, "this is other work"
    address = anywhere()
    strangers = [Asker(address, None, -owner_id * 100 - n) for n in range(20)]
    assert count(await taken(database, Work.EXPORT, *strangers)) == MOST[Work.EXPORT].address


async def test_a_share_is_free_again_when_its_work_is_done_or_its_process_has_died(
    database: Database, shop: Shop
) -> None:
    mine = Asker(anywhere(), None, -shop.merchant_id)
    first, dead = await take_share(database, Work.EXPORT, mine), await take_share(database, Work.EXPORT, mine)
    with suppress(ZeroDivisionError):
        async with first.held():
            assert count(await taken(database, Work.EXPORT, mine)) == 0
            raise ZeroDivisionError
    assert count(await taken(database, Work.EXPORT, mine)) == 1
    await database.execute(
        "update share_of_work set held_until = clock_timestamp() - interval '1 second' where id = $1", dead.id
    )
    assert count(await taken(database, Work.EXPORT, mine)) == 1
