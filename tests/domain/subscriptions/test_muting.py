"""An account can do without the two pingbacks that shop plugins can't answer:
they stay in its log, unsent.
"""

from __future__ import annotations

import pytest
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.mail.telling import tell_events
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.pingbacks.for_api import PingbackFilter, list_pingbacks
from paydesk.domain.pingbacks.health import read_health
from paydesk.domain.pingbacks.resending_by_hand import resend
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.domain.subscriptions.ending import cancel

CANCELLED, STOPPED = "subscription_cancelled", "subscription_stopped"
FAILS_LATER = "4000000000000341"


@pytest.fixture
async def muting(database: Database, shop: Shop) -> None:
    await change_merchant(database, shop.merchant_id, muted=[CANCELLED, STOPPED])


async def states(database: Database, shop: Shop) -> list[tuple[str, str]]:
    rows = await database.fetch(
        "select event, state from pingback where merchant_id = $1 order by id", shop.merchant_id
    )
    return [(row["event"], row["state"]) for row in rows]


async def stop(subscriber: Till) -> None:
    """A subscription ends because its card fails too often."""
    subscription = await subscriber.subscribe(MONTHLY, FAILS_LATER)
    for _ in range(4):
        await subscriber.charge_due(subscription)


async def test_both_are_sent_unless_they_are_muted(subscriber: Till, database: Database, shop: Shop) -> None:
    await cancel(database, shop, (await subscriber.subscribe()).id, by="api", now=utc_now())
    assert dict(await states(database, shop))[CANCELLED] != "muted"


@pytest.mark.usefixtures("muting")
async def test_a_muted_cancellation_is_kept_and_not_sent(subscriber: Till, database: Database, shop: Shop) -> None:
    ended = await cancel(database, shop, (await subscriber.subscribe()).id, by="api", now=utc_now())
    assert ended.state == "Cancelled"
    payment, cancelled = await states(database, shop)
    assert payment[1] != "muted"
    assert cancelled == (CANCELLED, "muted")


@pytest.mark.usefixtures("muting")
async def test_a_muted_stop_is_kept_and_not_sent(subscriber: Till, database: Database, shop: Shop) -> None:
    await stop(subscriber)
    assert (await states(database, shop))[-1] == (STOPPED, "muted")
    for event in (None, STOPPED):
        (found,) = await list_pingbacks(database, shop, PingbackFilter(PingbackState.MUTED, event=event), Page(5))
        assert found.event == STOPPED


async def test_one_of_the_two_may_be_muted_alone(subscriber: Till, database: Database, shop: Shop) -> None:
    await change_merchant(database, shop.merchant_id, muted=[CANCELLED])
    await stop(subscriber)
    assert dict(await states(database, shop))[STOPPED] != "muted"


@pytest.mark.usefixtures("muting")
async def test_the_customer_hears_of_it_all_the_same(subscriber: Till, desk: Desk, shop: Shop) -> None:
    await cancel(desk.database, shop, (await subscriber.subscribe()).id, by="api", now=utc_now())
    await tell_events(desk.database, real_now=utc_now(), keep_test=True)
    kinds = await desk.database.fetch("select kind from mail where merchant_id = $1 order by id", shop.merchant_id)
    assert CANCELLED in {row["kind"] for row in kinds}


@pytest.mark.usefixtures("muting")
async def test_what_is_muted_counts_for_nothing_in_how_an_endpoint_stands(
    subscriber: Till, database: Database, shop: Shop
) -> None:
    await cancel(database, shop, (await subscriber.subscribe()).id, by="api", now=utc_now())
    await database.execute(
        "update pingback set state = 'acknowledged', attempts = 1, finished_at = now(),"
        " url = coalesce(url, 'https://shop.example/') where merchant_id = $1 and event = 'payment'",
        shop.merchant_id,
    )
    health = await read_health(database, shop, now=utc_now())
    assert (health.day.sent, health.day.acknowledged, health.failed, health.due) == (1, 1, 0, 0)


@pytest.mark.usefixtures("muting")
async def test_the_merchant_may_have_it_sent_by_hand(subscriber: Till, database: Database, shop: Shop) -> None:
    await change_merchant(database, shop.merchant_id, pingback_url="https://shop.example/pingback")
    await cancel(database, shop, (await subscriber.subscribe()).id, by="api", now=utc_now())
    muted = await database.fetchval(
        "select id from pingback where merchant_id = $1 and state = 'muted'", shop.merchant_id
    )
    assert (await resend(database, shop, muted, now=utc_now())).state is PingbackState.DUE
