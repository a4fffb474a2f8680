"""The machinery as an operator watches it: queues, workers, acquirers and the operators' log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests import breaking, set_back, shopfront
from tests.databases import until_waiting

from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts.audit import COMMAND_LINE, Action
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.machinery import (
    FEW,
    AcquirerHealth,
    ActFilter,
    acquirer_health,
    database_now,
    list_acts,
    logs,
    queues,
    run_pulse,
    watch_queues,
    workers,
)
from paydesk.domain.operations.merchants import resume_merchant, suspend_merchant
from paydesk.domain.operations.waiting import lags
from paydesk.domain.payments.desk import Desk


def measured(what: str, queue: str) -> float:
    value = REGISTRY.get_sample_value(f"paydesk_queue_{what}", {"queue": queue})
    assert value is not None
    return value


async def test_a_pingback_that_waits_is_measured_with_its_age(
    database: Database, shop: Shop, buy: Callable[[], Awaitable[int]]
) -> None:
    payment_id = await buy()
    await set_back.times(
        database,
        "pingback",
        {"merchant_id": shop.merchant_id, "payment_id": payment_id, "state": "due"},
        due_at=utc_now() - timedelta(hours=2),
    )
    now = utc_now()
    await watch_queues(database, now=now)
    due, oldest = measured("due", "pingbacks"), measured("oldest_seconds", "pingbacks")
    assert due >= 1
    assert oldest >= timedelta(hours=1, minutes=59).total_seconds()
    await database.execute("delete from pingback where merchant_id = $1", shop.merchant_id)
    await watch_queues(database, now=now)
    assert measured("due", "pingbacks") == due - 1


async def test_every_queue_is_measured_also_an_empty_one(database: Database) -> None:
    await watch_queues(database, now=utc_now())
    queues = ("pingbacks", "renewals", "changes", "outcomes", "movements", "shipping", "settlements", "mails")
    assert all(measured("due", queue) >= 0 and measured("in_hand", queue) >= 0 for queue in queues)
    assert (REGISTRY.get_sample_value("paydesk_subscriptions_failing") or 0) >= 0


LastCount = Callable[..., Awaitable[None]]
NOW = utc_now()
LONG_AGO = NOW - timedelta(days=365)


async def due_pingbacks(database: Database) -> int:
    return next(one.due for one in await queues(database, now=NOW) if one.name == "pingbacks")


@pytest.fixture
async def last_count(database: Database) -> AsyncIterator[LastCount]:
    """Say when all queues were counted last: then minus one pingback is said to be due."""

    async def say(*, begun_at: datetime, ended_at: datetime, **more: object) -> None:
        await queues(database, now=NOW)
        await breaking.say(database, "queue_count", {}, begun_at=begun_at, ended_at=ended_at, **more)
        await breaking.say(database, "queue_depth", {"name": "pingbacks"}, due=-1)

    yield say
    await breaking.emptied(database, "queue_count", "queue_depth")


async def test_few_are_counted_whenever_somebody_asks(
    database: Database, shop: Shop, buy: Callable[[], Awaitable[int]]
) -> None:
    await buy()
    await set_back.times(database, "pingback", {"merchant_id": shop.merchant_id, "state": "due"}, due_at=LONG_AGO)
    before = await due_pingbacks(database)
    await breaking.forget(database, shop.merchant_id, "pingback")
    assert await due_pingbacks(database) == before - 1


@pytest.mark.parametrize(
    ("last", "is_counted"),
    [
        ({"ended": timedelta(minutes=6), "counted": FEW + 1}, True),
        ({"ended": timedelta(seconds=10), "counted": FEW + 1}, False),
        ({"ended": timedelta(minutes=6), "counted": FEW * 1000}, False),
        ({"ended": timedelta(seconds=10), "counted": FEW}, True),
        ({"ended": timedelta(minutes=6), "took": timedelta(seconds=3)}, True),
        ({"ended": timedelta(minutes=6), "took": timedelta(seconds=30)}, False),
        ({"ended": timedelta(seconds=10), "took": timedelta(seconds=3)}, False),
    ],
)
async def test_where_much_is_due_it_is_counted_again_after_a_rest(
    database: Database, last_count: LastCount, last: dict[str, Any], is_counted: bool
) -> None:
    at = utc_now() - last.pop("ended")
    await last_count(begun_at=at, ended_at=at, **last)
    assert (await due_pingbacks(database) >= 0) == is_counted


async def test_a_worker_counts_more_often_than_a_page_where_much_is_due(
    database: Database, last_count: LastCount
) -> None:
    at = utc_now() - timedelta(minutes=1)
    await last_count(begun_at=at, ended_at=at, counted=FEW + 1)
    assert await due_pingbacks(database) == -1
    await watch_queues(database, now=NOW)
    assert await due_pingbacks(database) >= 0
    assert measured("due", "pingbacks") >= 0


@pytest.mark.parametrize(("counted", "begun", "is_counted"), [(0, 30, False), (FEW + 1, 0, False), (0, 70, True)])
async def test_while_one_counts_others_read_what_was_counted_last(
    database: Database, last_count: LastCount, counted: int, begun: int, is_counted: bool
) -> None:
    begun_at = utc_now() - timedelta(seconds=begun)
    await last_count(begun_at=begun_at, ended_at=LONG_AGO, counted=counted)
    assert (await due_pingbacks(database) >= 0) == is_counted


async def test_a_clock_that_goes_back_keeps_nobody_from_counting(database: Database, last_count: LastCount) -> None:
    later = utc_now() + timedelta(hours=1)
    await last_count(begun_at=later, ended_at=later, counted=FEW + 1)
    await breaking.say(database, "queue_depth", {}, seen_at=later)
    assert await due_pingbacks(database) >= 0


async def test_a_count_of_an_older_state_is_not_taken_for_a_newer_one(database: Database) -> None:
    await queues(database, now=NOW)
    async with database.acquire() as other, other.transaction():
        await breaking.say(other, "queue_depth", {"name": "pingbacks"}, due=-7)
        asked = asyncio.create_task(due_pingbacks(database))
        await until_waiting(database, asked, query="with hurried%")
        seen_at = await database.fetchval("select clock_timestamp()")
        await breaking.say(other, "queue_depth", {"name": "pingbacks"}, seen_at=seen_at)
    assert await asked == -7


async def test_a_count_that_takes_too_long_leaves_what_was_counted_last(
    database: Database, last_count: LastCount, database_url: str
) -> None:
    await last_count(begun_at=LONG_AGO, ended_at=LONG_AGO)
    async with connected(database_url, patience=2.0) as impatient, database.acquire() as other, other.transaction():
        await other.execute("lock table mail in access exclusive mode")
        assert await due_pingbacks(impatient) == -1


async def test_what_a_crash_has_emptied_is_counted_anew(database: Database, last_count: LastCount) -> None:
    await last_count(begun_at=utc_now(), ended_at=utc_now(), counted=FEW * 1000)
    assert await due_pingbacks(database) == -1
    await breaking.emptied(database, "queue_count", "queue_depth")
    assert await due_pingbacks(database) >= 0


async def test_a_queue_lags_by_what_was_counted_not_by_how_long_ago_that_was(database: Database) -> None:
    await breaking.say(database, "queue_count", {}, counted=0, took=timedelta(0))
    found = {one.name: one for one in await queues(database, now=NOW)}
    old = replace(found["mails"], counted_at=LONG_AGO, oldest_at=LONG_AGO - timedelta(seconds=59))
    assert not lags(old)
    assert lags(replace(old, oldest_at=LONG_AGO - timedelta(seconds=61)))
    assert all(one.counted_at == NOW for one in found.values())


async def test_a_worker_is_seen_while_it_lives_and_says_goodbye(database: Database) -> None:
    before, stop = {one.name for one in await workers(database)}, asyncio.Event()
    pulse = asyncio.create_task(run_pulse(database, stop))
    while not (found := [one for one in await workers(database) if one.name not in before]):  # noqa: ASYNC110 (a row sends no event)
        await asyncio.sleep(0.01)
    assert [one.started_at <= one.seen_at for one in found] == [True]
    stop.set()
    await pulse
    assert found[0].name not in {one.name for one in await workers(database)}


async def test_an_acquirers_health_counts_what_became_of_its_attempts(
    desk: Desk, database: Database, shop: Shop
) -> None:
    async def health() -> AcquirerHealth:
        return (await acquirer_health(database, since=utc_now() - timedelta(hours=1)))["simulator"]

    await shopfront.buy(desk, shop)
    before = await health()
    await shopfront.buy(desk, shop)
    await shopfront.pay(desk, await shopfront.order(database, shop), shopfront.DECLINED)
    after = await health()
    assert (after.attempts, after.approved, after.declined) == (
        before.attempts + 2,
        before.approved + 1,
        before.declined + 1,
    )
    assert (after.unanswered, after.errors) == (before.unanswered, before.errors)
    assert after.last_approval is not None
    assert after.last_approval > utc_now() - timedelta(minutes=5)


def test_an_acquirer_fails_if_one_of_ten_attempts_got_no_answer_or_an_error() -> None:
    def failing(attempts: int, unanswered: int, errors: int) -> bool:
        return AcquirerHealth("bank", attempts, 0, 0, 0, 0, 0, unanswered, errors, None, None).failing

    assert [failing(*told) for told in ((0, 0, 0), (10, 0, 0), (11, 1, 0), (10, 1, 0), (20, 1, 1))] == [
        *(False, False, False),
        *(True, True),
    ]


async def test_the_operators_log_is_read_by_kind_by_merchant_and_by_hand(
    database: Database, shop: Shop, other_shop: Shop
) -> None:
    now = utc_now()
    await suspend_merchant(database, COMMAND_LINE, shop.merchant_id, reason="forged goods", now=now)
    await resume_merchant(database, COMMAND_LINE, shop.merchant_id, now=now + timedelta(seconds=1))
    acts = await list_acts(database, Page(50), ActFilter(merchant_id=shop.merchant_id))
    assert [(one.action, one.merchant_name, one.person_id) for one in acts] == [
        (Action.merchant_resumed, "Corner Shop", None),
        (Action.merchant_suspended, "Corner Shop", None),
    ]
    assert acts[1].details == {"reason": "forged goods"}
    lifted = ActFilter(merchant_id=shop.merchant_id, by_command=True, action=Action.merchant_resumed)
    assert await list_acts(database, Page(50), lifted) == acts[:1]
    assert await list_acts(database, Page(50), ActFilter(merchant_id=other_shop.merchant_id)) == []
    assert await list_acts(database, Page(50), ActFilter(merchant_id=shop.merchant_id, person_id=2**52)) == []


async def test_the_database_and_its_logs_are_measured(database: Database) -> None:
    standing = await database_now(database)
    assert standing.bytes > 0
    assert standing.connections >= 1
    found = await logs(database)
    assert len(found) >= 1
    assert all(one.bytes > 0 and one.first <= one.last for one in found)
