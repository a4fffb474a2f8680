"""Whose trial began without a card is asked for one before its end, once."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.domain.mail.test_expiring import MOMENT
from tests.domain.payments.test_free_trials import begun, end_of, give_card
from tests.till import Till

from paydesk.domain.mail.asking_cards import USUAL_DAYS, ask_for_cards
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.changing import cancel_later, pause, resume
from paydesk.domain.subscriptions.ending import cancel

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
async def _needs_no_card(subscriber: Till) -> None:
    await change_merchant(subscriber.database, subscriber.shop.merchant_id, trials_without_card=True)


async def ask(till: Till, at: datetime, **options: Any) -> list[dict[str, Any]]:
    """Look at a time; the facts of all mails that have asked this shop's customers so far."""
    await ask_for_cards(till.database, real_now=at, **{"keep_test": True, **options})
    rows = await till.database.fetch(
        "select facts from mail where merchant_id = $1 and kind = 'card_wanted' order by id", till.shop.merchant_id
    )
    return [json.loads(row["facts"]) for row in rows]


async def test_a_card_is_asked_for_some_days_before_the_end_and_once(subscriber: Till) -> None:
    trial = await begun(subscriber)
    end = end_of(trial)
    first = end - USUAL_DAYS * DAY
    assert await ask(subscriber, first - MOMENT) == []
    for at in (first, first + MOMENT, end - MOMENT):
        (facts,) = await ask(subscriber, at)
    assert (facts["package"], facts["amount"], facts["currency"]) == ("Coffee club", "10", "USD")
    assert datetime.fromisoformat(facts["ends_at"]) == end
    assert facts["portal"]["id"] == trial.id


@pytest.mark.parametrize(("days", "asked"), [(5, 5), (90, 7)], ids=["as many", "not before the middle"])
async def test_the_merchants_own_days_count(subscriber: Till, shop: Shop, days: int, asked: int) -> None:
    await change_merchant(subscriber.database, shop.merchant_id, charge_notice_days=days)
    end = end_of(await begun(subscriber))
    assert await ask(subscriber, end - asked * DAY - MOMENT) == []
    assert len(await ask(subscriber, end - asked * DAY + MOMENT)) == 1


@pytest.mark.parametrize("how", ["a card", "to end", "ended", "paused", "over"])
async def test_who_needs_not_be_asked_is_not(subscriber: Till, shop: Shop, how: str) -> None:
    trial = await begun(subscriber)
    now, late = trial.date_start + DAY, end_of(trial) - DAY
    if how == "a card":
        await give_card(subscriber, trial)
    elif how == "to end":
        await cancel_later(subscriber.database, shop, trial.id, by="customer", now=now)
    elif how == "ended":
        await cancel(subscriber.database, shop, trial.id, by="customer", now=now)
    elif how == "paused":
        await pause(subscriber.database, shop, trial.id, until=None, by="customer", now=now)
    else:
        late = end_of(trial) + MOMENT
    assert await ask(subscriber, late) == []


async def test_after_a_pause_it_is_asked_for_before_the_new_end(subscriber: Till, shop: Shop) -> None:
    trial = await begun(subscriber)
    at = trial.date_start + DAY
    await pause(subscriber.database, shop, trial.id, until=None, by="customer", now=at)
    await resume(subscriber.database, shop, trial.id, now=at + 30 * DAY)
    end = end_of(await subscriber.now(trial))
    assert await ask(subscriber, end_of(trial) - DAY) == []
    assert len(await ask(subscriber, end - DAY)) == 1


async def test_many_workers_at_once_ask_each_customer_once(subscriber: Till) -> None:
    trials = [await begun(subscriber, f"club {number}") for number in range(4)]
    at = end_of(trials[0]) - DAY
    await asyncio.gather(*(ask(subscriber, at, most=2) for _ in range(3)))
    assert len(await ask(subscriber, at)) == 4


async def test_nobody_is_asked_where_customers_get_no_mails(subscriber: Till) -> None:
    trial = await begun(subscriber)
    assert await ask(subscriber, end_of(trial) - DAY, keep_test=False) == []
