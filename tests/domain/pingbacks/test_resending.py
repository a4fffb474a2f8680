from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.database.pool import Database
from paydesk.domain.merchants.accounts import Merchant, Shop, change_merchant
from paydesk.domain.pingbacks.resending import list_pingbacks, resend, send_all_waiting, send_waiting, show_pingback
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.pingbacks.states import PingbackState


async def test_an_acknowledged_pingback_can_be_sent_again(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    await sender.send_due_once(utc_now())
    again = await resend(database, shop, pingback_id, now=utc_now())
    assert (again.state, again.finished_at) == (PingbackState.DUE, None)
    assert await sender.send_due_once(utc_now()) == 1
    pingback, attempts = await show_pingback(database, shop, pingback_id)
    assert (pingback.state, pingback.attempts) == (PingbackState.ACKNOWLEDGED, 2)
    assert [attempt.number for attempt in attempts] == [1, 2]
    assert attempts[0].request_headers["X-Service-Signature-Version"] == "v2"


async def test_an_exhausted_pingback_gets_one_attempt_more(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    receiver.answers["/pay"] = [(500, b""), (500, b""), (200, b"ok")]
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    await database.execute("update pingback set attempts = 10 where id = $1", pingback_id)
    await sender.send_due_once(utc_now())
    for expected in (PingbackState.EXHAUSTED, PingbackState.ACKNOWLEDGED):
        await resend(database, shop, pingback_id, now=utc_now())
        assert await sender.send_due_once(utc_now()) == 1
        assert (await show_pingback(database, shop, pingback_id))[0].state == expected


async def test_a_pingback_that_waits_for_its_next_attempt_can_be_sent_at_once(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/pay", due_at=utc_now() + timedelta(minutes=30))
    assert await sender.send_due_once(utc_now()) == 0
    await resend(database, shop, pingback_id, now=utc_now())
    assert await sender.send_due_once(utc_now()) == 1


async def test_a_pingback_without_url_can_not_be_sent(database: Database, shop: Shop, queue: Any) -> None:
    pingback_id = await queue(shop, None)
    with pytest.raises(Conflict, match="has no URL"):
        await resend(database, shop, pingback_id, now=utc_now())


async def test_once_live_a_test_pingback_is_sent_again_to_the_test_url_only(
    database: Database, shop: Shop, merchant: Merchant, queue: Any
) -> None:
    pingback_id = await queue(shop, "https://form.example/")
    await database.execute("update merchant set went_live_at = now() where id = $1", merchant.id)
    with pytest.raises(Conflict, match="test pingback URL"):
        await resend(database, shop, pingback_id, now=utc_now())
    await change_merchant(database, merchant.id, test_pingback_url="https://test.example/")
    assert (await resend(database, shop, pingback_id, now=utc_now())).url == "https://test.example/"


async def test_another_merchants_pingback_is_not_found(
    database: Database, shop: Shop, other_shop: Shop, queue: Any
) -> None:
    pingback_id = await queue(shop, "https://shop.example/")
    for stranger in (other_shop, Shop(shop.merchant_id, True)):
        with pytest.raises(NotFound):
            await show_pingback(database, stranger, pingback_id)
        with pytest.raises(NotFound):
            await resend(database, stranger, pingback_id, now=utc_now())
        assert await list_pingbacks(database, stranger) == []


async def test_a_list_is_newest_first_and_can_be_of_one_state(database: Database, shop: Shop, queue: Any) -> None:
    ids = [await queue(shop, url) for url in ("https://a.example/", None, "https://b.example/")]
    assert [pingback.id for pingback in await list_pingbacks(database, shop)] == ids[::-1]
    assert [pingback.id for pingback in await list_pingbacks(database, shop, PingbackState.WAITING)] == [ids[1]]
    assert len(await list_pingbacks(database, shop, most=2)) == 2


async def test_what_waited_is_sent_once_a_url_is_set(
    database: Database, shop: Shop, merchant: Merchant, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    pingback_id = await queue(shop, None, due_at=utc_now() - timedelta(days=3))
    assert await send_waiting(database, merchant, now=utc_now()) == 0
    changed = await change_merchant(database, merchant.id, pingback_url=f"{receiver.base}/account")
    assert await send_waiting(database, changed, now=utc_now()) == 1
    assert await sender.send_due_once(utc_now()) == 1
    assert [one.path for one in receiver.received] == ["/account"]
    assert (await show_pingback(database, shop, pingback_id))[0].state == PingbackState.ACKNOWLEDGED


async def test_what_waited_on_the_test_side_of_a_live_merchant_goes_to_the_test_url(
    database: Database, shop: Shop, merchant: Merchant, queue: Any
) -> None:
    test, live = await queue(shop, None), await queue(Shop(merchant.id, True), None)
    await database.execute("update merchant set went_live_at = now() where id = $1", merchant.id)
    changed = await change_merchant(database, merchant.id, pingback_url="https://account.example/")
    assert await send_waiting(database, changed, now=utc_now()) == 1
    assert (await show_pingback(database, Shop(merchant.id, True), live))[0].url == "https://account.example/"
    changed = await change_merchant(database, merchant.id, test_pingback_url="https://test.example/")
    assert await send_waiting(database, changed, now=utc_now()) == 1
    assert (await show_pingback(database, shop, test))[0].url == "https://test.example/"


async def test_what_raced_the_setting_of_a_url_is_sent_by_housekeeping(
    database: Database, shop: Shop, merchant: Merchant, queue: Any
) -> None:
    pingback_id = await queue(shop, None)
    await send_all_waiting(database, now=utc_now())
    assert (await show_pingback(database, shop, pingback_id))[0].state == PingbackState.WAITING
    await change_merchant(database, merchant.id, pingback_url="https://shop.example/pingback")
    await send_all_waiting(database, now=utc_now())
    pingback, _ = await show_pingback(database, shop, pingback_id)
    assert (pingback.state, pingback.url) == (PingbackState.DUE, "https://shop.example/pingback")
