from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests import breaking
from tests.sweeping import database, database_url

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.health import ArrivedShare, read_health
from paydesk.domain.pingbacks.reasons import Why
from paydesk.domain.pingbacks.sending import PingbackSender

__all__ = ["database", "database_url"]


async def test_a_side_without_pingbacks_has_nothing_to_tell(database: Database, shop: Shop) -> None:
    health = await read_health(database, shop, now=utc_now())
    assert (health.day, health.week, health.due, health.waiting) == (ArrivedShare(0, 0), ArrivedShare(0, 0), 0, 0)
    assert not health.endpoints


async def test_shares_are_of_what_was_sent_in_a_day_and_in_a_week(
    database: Database, shop: Shop, other_shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    receiver.answers["/bad"] = [(500, b"")]
    now = utc_now()
    for age, path in ((1, "/good"), (1, "/bad"), (48, "/good"), (48, "/good"), (24 * 8, "/bad")):
        await queue(shop, f"{receiver.base}{path}", due_at=now - timedelta(hours=age))
    await queue(other_shop, f"{receiver.base}/bad")
    await sender.send_due_once(utc_now())
    await queue(shop, f"{receiver.base}/good", due_at=now + timedelta(minutes=5))
    await queue(shop, None)
    health = await read_health(database, shop, now=utc_now())
    assert (health.day, health.week) == (ArrivedShare(2, 1), ArrivedShare(4, 3))
    assert health.failed == 0
    await database.execute("update pingback set state = 'exhausted' where state = 'due' and attempts > 0")
    assert (await read_health(database, shop, now=utc_now())).failed == 1
    assert (health.due, health.retried, health.soon, health.waiting) == (3, 2, 0, 1)


async def test_an_endpoint_fails_since_the_first_that_it_did_not_take_after_its_last_success(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    receiver.answers |= {"/a": [(200, b"ok"), (500, b""), (503, b"")], "/b": [(404, b""), (200, b"ok")]}
    now = utc_now()
    for age, path in ((5, "/a"), (4, "/a"), (3, "/a"), (4, "/b"), (3, "/b")):
        await queue(shop, f"{receiver.base}{path}", due_at=now - timedelta(hours=age))
        await sender.send_due_once(utc_now())
    failing, fine = (await read_health(database, shop, now=utc_now())).endpoints
    assert (failing.url, failing.failing, failing.why, failing.status) == (
        f"{receiver.base}/a",
        2,
        Why.SERVER_ERROR,
        503,
    )
    assert failing.failing_since == now - timedelta(hours=4)
    assert failing.last_success is not None
    assert (fine.url, fine.failing, fine.failing_since, fine.why) == (f"{receiver.base}/b", 0, None, None)


async def test_a_busy_side_is_counted_no_further_than_its_newest(
    database: Database, shop: Shop, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paydesk.domain.pingbacks.health.MOST_COUNTED", 3)
    now = utc_now()
    for hours in range(6):
        await queue(shop, "https://shop.example/", due_at=now - timedelta(hours=hours))
    await breaking.say(database, "pingback", {}, state="acknowledged", attempts=1)
    health = await read_health(database, shop, now=now)
    assert health.week == ArrivedShare(3, 3)
    assert health.counted_since == now - timedelta(hours=2)
