"""Alarms: one line per thing, raised by many, settled once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import MEANINGS, AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms, watch_alarms
from paydesk.domain.merchants.shop import Shop

NOW = datetime(2027, 3, 1, tzinfo=UTC)


def alarm(shop: Shop | None, subject: str = "payment 8", reason: str = "it can't be worked out") -> Alarm:
    return Alarm(AlarmKind.set_aside, subject, reason, shop)


async def alarms_of(database: Database, shop: Shop) -> list[Any]:
    return list(
        await database.fetch(
            "select * from alarm where merchant_id = $1 and live = $2 order by id", shop.merchant_id, shop.live
        )
    )


async def test_what_happens_again_is_one_line_that_counts(database: Database, shop: Shop) -> None:
    await raise_alarms(database, [alarm(shop)], now=NOW)
    await raise_alarms(database, [alarm(shop, reason="now for another reason")], now=NOW + timedelta(hours=1))
    [one] = await alarms_of(database, shop)
    assert (one["times"], one["raised_at"], one["last_at"]) == (2, NOW, NOW + timedelta(hours=1))
    assert one["reason"] == "now for another reason"


async def test_the_same_thing_twice_in_one_call_is_one_alarm(database: Database, shop: Shop) -> None:
    await raise_alarms(database, [alarm(shop), alarm(shop, reason="the last word")], now=NOW)
    assert [(one["times"], one["reason"]) for one in await alarms_of(database, shop)] == [(1, "the last word")]


async def test_what_was_settled_is_raised_anew(database: Database, shop: Shop) -> None:
    await raise_alarms(database, [alarm(shop)], now=NOW)
    assert await settle_alarms(database, AlarmKind.set_aside, ["payment 8"], shop=shop, by="it went well", now=NOW) == 1
    assert await settle_alarms(database, AlarmKind.set_aside, ["payment 8"], shop=shop, by="again", now=NOW) == 0
    await raise_alarms(database, [alarm(shop)], now=NOW)
    assert [one["settled_by"] for one in await alarms_of(database, shop)] == ["it went well", None]


async def test_settling_leaves_other_shops_kinds_and_things(database: Database, shop: Shop, other_shop: Shop) -> None:
    live = Shop(shop.merchant_id, live=True)
    other_kind = Alarm(AlarmKind.clock_off, "payment 8", "another kind", shop)
    await raise_alarms(
        database, [alarm(shop), alarm(shop, "payment 18"), alarm(live), alarm(other_shop), other_kind], now=NOW
    )
    await settle_alarms(database, AlarmKind.set_aside, ["payment 8"], shop=shop, by="me", now=NOW)
    still_open = [
        (one["kind"], one["subject"])
        for side in (shop, live, other_shop)
        for one in await alarms_of(database, side)
        if one["settled_at"] is None
    ]
    assert sorted(still_open) == [
        ("clock_off", "payment 8"),
        ("set_aside", "payment 18"),
        ("set_aside", "payment 8"),
        ("set_aside", "payment 8"),
    ]


async def test_each_is_logged_as_an_error_once(database: Database, shop: Shop) -> None:
    with capture_logs() as logs:
        for _ in range(3):
            await raise_alarms(database, [alarm(shop)], now=NOW)
    errors = [entry for entry in logs if entry["log_level"] == "error"]
    assert [(entry["subject"], entry["why"]) for entry in errors] == [("payment 8", "it can't be worked out")]


async def test_raisers_of_the_same_alarms_in_any_order_get_through(database: Database, shop: Shop) -> None:
    many = [alarm(shop, f"payment {number}8") for number in range(50)]
    await asyncio.gather(*(raise_alarms(database, batch, now=NOW) for batch in (many, many[::-1]) * 4))
    assert [one["times"] for one in await alarms_of(database, shop)] == [8] * 50


async def test_hostile_text_is_stored(database: Database, shop: Shop) -> None:
    hostile = Alarm(AlarmKind.set_aside, "x\x00" * 500, "y\x00" * 5000, shop, {"bytes": "\x00"})
    await raise_alarms(database, [hostile, hostile], now=NOW)
    [one] = await alarms_of(database, shop)
    assert (len(one["subject"]), len(one["reason"])) == (200, 1000)


async def test_one_without_a_merchant_stands_at_nobody(database: Database) -> None:
    await raise_alarms(database, [alarm(None, "worker nobody's")], now=NOW)
    assert await database.fetchval("select merchant_id from alarm where subject = 'worker nobody''s'") == 0
    assert await settle_alarms(database, AlarmKind.set_aside, ["worker nobody's"], shop=None, by="me", now=NOW) == 1


async def test_the_metric_counts_what_is_open(database: Database, shop: Shop) -> None:
    def measured() -> float:
        return REGISTRY.get_sample_value("paydesk_alarms_open", {"kind": "set_aside"}) or 0

    await watch_alarms(database, now=NOW)
    before = measured()
    await raise_alarms(database, [alarm(shop), alarm(shop, "payment 18")], now=NOW)
    await watch_alarms(database, now=NOW)
    assert measured() == before + 2
    await settle_alarms(database, AlarmKind.set_aside, ["payment 8", "payment 18"], shop=shop, by="me", now=NOW)
    await watch_alarms(database, now=NOW)
    assert measured() == before


async def test_what_was_set_aside_and_is_quiet_since_has_mended_itself(database: Database, shop: Shop) -> None:
    await raise_alarms(database, [alarm(shop)], now=NOW)
    await raise_alarms(database, [alarm(shop, "payment 18"), Alarm(AlarmKind.clock_off, "worker", "x", shop)], now=NOW)
    await raise_alarms(database, [alarm(shop, "payment 18")], now=NOW + timedelta(hours=2))
    await watch_alarms(database, now=NOW + timedelta(hours=3, seconds=1))
    still_open = {one["subject"] for one in await alarms_of(database, shop) if one["settled_at"] is None}
    assert still_open == {"payment 18", "worker"}


def test_every_kind_says_what_it_means() -> None:
    assert set(MEANINGS) == set(AlarmKind)
