"""Customers hear twice that the card of a subscription expires, each time once,
while they will be charged by it.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests import set_back
from tests.breaking import refusing
from tests.links import newest_portal
from tests.shopfront import choose_mails
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.domain.mail.expiring import FIRST_NOTICE, LAST_NOTICE, tell_expiring
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.changing import cancel_later, pause
from paydesk.domain.subscriptions.ending import cancel

END = datetime(2041, 1, 1, tzinfo=UTC)
"""Of the last month of the card by which the tests pay."""

FIRST, LAST = END - timedelta(days=FIRST_NOTICE), END - timedelta(days=LAST_NOTICE)
MOMENT = timedelta(seconds=1)


async def tell(till: Till, at: datetime, **options: Any) -> list[str]:
    """Look at a time; the names of all notices that this shop's customers have had so far."""
    await tell_expiring(till.database, real_now=at, **{"keep_test": True, **options})
    rows = await till.database.fetch(
        "select once from mail where merchant_id = $1 and kind = 'card_expires' order by id", till.shop.merchant_id
    )
    return [row["once"] for row in rows]


async def test_a_card_that_expires_is_told_of_a_month_and_a_week_before(subscriber: Till, shop: Shop) -> None:
    subscription = await subscriber.subscribe()
    assert await tell(subscriber, FIRST - MOMENT) == []
    for at in (FIRST, FIRST + MOMENT, LAST - MOMENT):
        assert len(await tell(subscriber, at)) == 1
    for at in (LAST, LAST + MOMENT, END, END + timedelta(days=400)):
        assert len(await tell(subscriber, at)) == 2
    mail = await subscriber.database.fetchrow(
        "select * from mail where merchant_id = $1 and kind = 'card_expires' order by id", shop.merchant_id
    )
    assert (mail["recipient"], mail["language"]) == ("ada@example.com", "en")
    facts = json.loads(mail["facts"])
    assert (facts["package"], facts["brand"], facts["last4"], facts["expires"]) == (
        "Coffee club", "visa", "4242", "2040-12-01",
    )  # fmt: skip
    assert datetime.fromisoformat(facts["date_next"]) == subscription.date_next
    assert facts["portal"] == {
        "id": subscription.id, "seed": (await newest_portal(subscriber.database, shop.merchant_id)).seed,
    }  # fmt: skip


async def test_late_looks_tell_the_last_notice_alone_and_none_of_a_card_that_has_expired(subscriber: Till) -> None:
    await subscriber.subscribe()
    (told,) = await tell(subscriber, LAST)
    assert told.endswith(f" {LAST_NOTICE}")
    await subscriber.subscribe(order="another")
    assert await tell(subscriber, END) == [told]


async def test_a_test_clock_brings_the_notice(subscriber: Till, shop: Shop) -> None:
    await subscriber.subscribe()
    now = utc_now()
    assert await tell(subscriber, now) == []
    await set_back.clock_runs_ahead(subscriber.database, shop.merchant_id, FIRST - now)
    assert len(await tell(subscriber, now)) == 1


@pytest.mark.parametrize("how", ["cancelled", "to end", "paused for good"])
async def test_who_is_charged_no_more_hears_nothing(subscriber: Till, shop: Shop, how: str) -> None:
    subscription, now = await subscriber.subscribe(), utc_now()
    if how == "cancelled":
        await cancel(subscriber.database, shop, subscription.id, by="customer", now=now)
    elif how == "to end":
        await cancel_later(subscriber.database, shop, subscription.id, by="customer", now=now)
    else:
        await pause(subscriber.database, shop, subscription.id, until=None, by="customer", now=now)
    for at in (FIRST, LAST):
        assert await tell(subscriber, at) == []


async def test_who_goes_on_after_a_pause_hears_of_it(subscriber: Till, shop: Shop) -> None:
    subscription, now = await subscriber.subscribe(), utc_now()
    await pause(subscriber.database, shop, subscription.id, until=now + timedelta(days=20), by="customer", now=now)
    assert len(await tell(subscriber, FIRST)) == 1


async def test_another_card_is_told_of_when_it_expires_itself(subscriber: Till) -> None:
    subscription = await subscriber.subscribe()
    await set_back.card_replaced(subscriber.desk, subscription)
    assert await tell(subscriber, FIRST) == []
    # It is good for a year more.
    assert len(await tell(subscriber, datetime(2042, 1, 1, tzinfo=UTC) - timedelta(days=FIRST_NOTICE))) == 1


async def test_a_merchant_that_writes_its_own_mails_sends_none_of_ours(subscriber: Till, shop: Shop) -> None:
    await subscriber.subscribe()
    await choose_mails(subscriber.database, shop, customer_mails=False, test_mails=True)
    assert await tell(subscriber, FIRST) == []
    await choose_mails(subscriber.database, shop, customer_mails=True, test_mails=True)
    assert await tell(subscriber, FIRST) == [], "what was not wanted when it was due is not told later"


async def test_many_workers_at_once_tell_each_customer_once(subscriber: Till) -> None:
    for number in range(5):
        await subscriber.subscribe(order=f"club {number}")
    await asyncio.gather(*(tell(subscriber, FIRST, most=2) for _ in range(4)))
    assert len(await tell(subscriber, FIRST)) == 5


async def test_one_that_can_not_be_told_holds_back_no_other(subscriber: Till, shop: Shop) -> None:
    first, second = [(await subscriber.subscribe(order=f"club {number}")).id for number in (1, 2)]
    odd = f"merchant_id = {shop.merchant_id} and once like 'card_expires {first} %'"
    async with refusing(subscriber.database, "mail", odd):
        assert [name.split()[1] for name in await tell(subscriber, FIRST)] == [str(second)]
    told = await tell(subscriber, FIRST + timedelta(hours=2))
    assert [name.split()[1] for name in told] == [str(second), str(first)]
