from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests import breaking
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk import database
from paydesk.core.periods import Period
from paydesk.database.piecemeal import batches_of, run_in_batches
from paydesk.domain.subscriptions.changing import carry_out_due, pause, resume
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.folding import fold_movements
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Trial

DAY = timedelta(days=1)
TRIAL = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))


async def told(till: Till) -> list[tuple[str, object]]:
    """The movements of the subscription, and that what is stored of it tells the same."""
    rows = await till.database.fetch(
        "select * from mrr_movement where merchant_id = $1 order by number", till.shop.merchant_id
    )
    past = await till.database.fetch(
        "select p.* from subscription s cross join lateral mrr_past(s.merchant_id, s.id) p where s.merchant_id = $1",
        till.shop.merchant_id,
    )
    assert [(row["kind"], row["amount"], row["at"]) for row in rows] == [
        (row["kind"], row["amount"], row["at"]) for row in past
    ]
    assert await till.problems() == []
    return [(row["kind"], row["amount"]) for row in rows]


async def lives(till: Till, begun: Subscription) -> None:
    """It is renewed, becomes dearer, is paused, resumed, and cancelled."""
    begun = await till.charge_due(begun)
    at = begun.date_start + 40 * DAY
    await change_plan(till.database, till.shop, begun.id, Plan(price="30.00"), by="merchant", now=at)
    due = (await till.now(begun)).date_next
    assert due is not None
    await carry_out_due(till.database, real_now=at, merchant_id=till.shop.merchant_id, at=due)
    begun = await till.charge_due(begun)
    await pause(till.database, till.shop, begun.id, until=None, by="customer", now=due + DAY)
    await resume(till.database, till.shop, begun.id, now=due + 5 * DAY)
    await cancel(till.database, till.shop, begun.id, by="customer", now=due + 9 * DAY)


async def test_each_movement_is_written_once_and_renewals_write_none(subscriber: Till) -> None:
    await lives(subscriber, await subscriber.subscribe())
    assert await told(subscriber) == [
        ("new", 10), ("expansion", 20), ("churn", -30), ("reactivation", 30), ("churn", -30),
    ]  # fmt: skip


async def test_a_trial_counts_once_it_is_paid(subscriber: Till) -> None:
    begun = await subscriber.subscribe(TRIAL)
    assert await told(subscriber) == [("trial", 0)]
    await subscriber.charge_due(begun)
    assert await told(subscriber) == [("trial", 0), ("converted", 10)]


async def test_a_trial_that_is_cancelled_is_lost(subscriber: Till) -> None:
    begun = await subscriber.subscribe(TRIAL)
    await cancel(subscriber.database, subscriber.shop, begun.id, by="customer", now=begun.date_start + DAY)
    assert await told(subscriber) == [("trial", 0), ("trial_lost", 0)]


@pytest.mark.parametrize(
    ("price", "period", "monthly"),
    [("100", Period(1, "year"), "8.3333"), ("7", Period(1, "week"), "30.4369"), ("1", Period(10, "day"), "3.0437")],
)
async def test_a_price_is_brought_to_a_month(subscriber: Till, price: str, period: Period, monthly: str) -> None:
    await subscriber.subscribe(replace(MONTHLY, price=Decimal(price), period=period))
    assert await told(subscriber) == [("new", Decimal(monthly))]


async def test_what_moves_after_a_past_that_nobody_told_tells_it_too(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    await breaking.forget(subscriber.database, subscriber.shop.merchant_id, "mrr_movement")
    await cancel(subscriber.database, subscriber.shop, begun.id, by="customer", now=begun.date_start + DAY)
    assert await told(subscriber) == [("new", 10), ("churn", -10)]


async def test_a_movement_is_folded_once(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    assert await fold_movements(subscriber.database, most=1) >= 1
    await cancel(subscriber.database, subscriber.shop, begun.id, by="customer", now=begun.date_start + DAY)
    await fold_movements(subscriber.database)
    sums = await subscriber.database.fetch(
        "select kind, amount, movements from mrr_day where merchant_id = $1 order by kind", subscriber.shop.merchant_id
    )
    assert [tuple(row.values()) for row in sums] == [("churn", -10, 1), ("new", 10, 1)]
    assert await fold_movements(subscriber.database) == 0
    await told(subscriber)


async def test_an_upgrade_writes_down_what_moved_before(subscriber: Till) -> None:
    await lives(subscriber, await subscriber.subscribe())
    of = f"from mrr_movement m where merchant_id = {subscriber.shop.merchant_id}"
    before = [row[0] for row in await subscriber.database.fetch(f"select to_jsonb(m) {of} order by number")]
    sql = (Path(database.__file__).parent / "migrations" / "0301_mrr_movements_of_before.sql").read_text()
    batches = batches_of(sql)
    assert batches is not None
    async with subscriber.database.acquire() as connection:
        await connection.execute(f"delete {of}")
        for _ in range(2):
            await run_in_batches(connection, sql, batches, "1s", lambda _: None)
    assert [row[0] for row in await subscriber.database.fetch(f"select to_jsonb(m) {of} order by number")] == before
    assert len(before) == 5
