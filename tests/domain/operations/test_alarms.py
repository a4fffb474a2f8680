"""The operators' list of alarms, and the hand that settles one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.alarms import ListedAlarm, alarms_waiting, list_alarms, settle_alarm

ALL = Page(500)


async def raised(database: Database, shop: Shop, *kinds: AlarmKind) -> None:
    """One alarm of each kind, a second apart."""
    for place, kind in enumerate(kinds):
        now = utc_now() + timedelta(seconds=place)
        await raise_alarms(database, [Alarm(kind, "payment 8", "look at it", shop, {"seen": place})], now=now)


async def listed(database: Database, shop: Shop, **wanted: object) -> list[ListedAlarm]:
    found = await list_alarms(database, ALL, **wanted)  # type: ignore[arg-type]
    return [one for one in found if one.merchant_id == shop.merchant_id]


async def test_open_alarms_are_listed_newest_first_with_whose_they_are(database: Database, shop: Shop) -> None:
    await raised(database, shop, AlarmKind.set_aside, AlarmKind.clock_off)
    found = await listed(database, shop)
    assert [one.kind for one in found] == ["clock_off", "set_aside"]
    assert {(one.merchant_name, one.live, one.subject, one.times) for one in found} == {
        ("Corner Shop", False, "payment 8", 1)
    }
    assert [one.details for one in found] == [{"seen": 1}, {"seen": 0}]
    assert [one.kind for one in await listed(database, shop, kind=AlarmKind.set_aside)] == ["set_aside"]


async def test_who_settles_one_stands_beside_it_and_in_the_log(database: Database, shop: Shop) -> None:
    await raised(database, shop, AlarmKind.set_aside, AlarmKind.clock_off)
    waiting = await alarms_waiting(database, most=1000)
    newest, oldest = await listed(database, shop)
    now = utc_now()
    await settle_alarm(database, COMMAND_LINE, newest.id, now=now, note="the clock is right again")
    assert await listed(database, shop) == [oldest]
    [settled] = await listed(database, shop, settled=True)
    assert (settled.id, settled.settled_at, settled.settled_by) == (newest.id, now, "command line")
    assert await alarms_waiting(database, most=1000) == waiting - 1
    [noted] = await database.fetch(
        "select action, subject, details->>'note' as note from audit_entry where merchant_id = $1", shop.merchant_id
    )
    assert tuple(noted) == ("alarm_settled", f"alarm {newest.id}", "the clock is right again")


async def test_of_two_hands_one_settles(database: Database, shop: Shop) -> None:
    await raised(database, shop, AlarmKind.set_aside)
    [one] = await listed(database, shop)
    await settle_alarm(database, COMMAND_LINE, one.id, now=utc_now())
    with pytest.raises(NotFound, match="settled already"):
        await settle_alarm(database, COMMAND_LINE, one.id, now=utc_now())
    with pytest.raises(NotFound, match="there is no alarm"):
        await settle_alarm(database, COMMAND_LINE, 2**52, now=utc_now())
