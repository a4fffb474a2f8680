from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests import set_back
from tests.banks import ObedientBank, answering
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.interface import Outcome, OutcomeUnknown
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.billing.pacing import FAST, Lane, Pace, Room
from paydesk.domain.payments.desk import KEY_LIFETIME

__all__ = ["database", "database_url"]

SLOW_BANK = 2.0
"""Seconds that a bank may begin to take for each call."""


def test_a_batch_grows_only_while_the_bank_answers_at_once() -> None:
    lane = Lane(Pace(batch=500))
    assert lane.size == 500
    lane.learn(500, FAST, answered=True)
    assert lane.size == 1000
    lane.learn(1000, FAST / 2, answered=True)
    assert lane.size == Pace(batch=500).most == 1000
    lane.learn(1000, FAST * 1.01, answered=True)
    assert lane.size == 500


def test_a_batch_that_was_not_full_says_nothing_of_a_larger_one() -> None:
    lane = Lane(Pace(batch=500))
    lane.learn(499, 0.0, answered=True)
    assert lane.size == 500


def test_a_bank_that_says_nothing_is_not_fast() -> None:
    lane = Lane(Pace(batch=500))
    lane.learn(500, 0.0, answered=True)
    lane.learn(1000, 0.0, answered=False)
    assert lane.size == 500


@pytest.mark.parametrize("in_flight", [100, 250, 1000, 2000])
async def test_a_bank_that_becomes_slow_is_through_before_the_keys_end(in_flight: int) -> None:
    pace = Pace(in_flight=in_flight)
    lanes = [Lane(pace) for _ in range(pace.lanes)]
    for lane in lanes:
        for _ in range(9):
            lane.learn(lane.size, 0.0, answered=True)
    claimed = await claimed_at_once(Room(pace), lanes)
    assert sum(claimed) >= pace.lanes * pace.batch
    assert sum(claimed) / in_flight * SLOW_BANK <= KEY_LIFETIME.total_seconds() * 0.7


async def claimed_at_once(room: Room, lanes: list[Lane]) -> list[int]:
    """What all lanes claim before any of them is answered."""
    claimed: list[int] = []
    answered = asyncio.Event()

    async def claim(lane: Lane) -> None:
        async with room.batch(lane) as most:
            claimed.append(most)
            await answered.wait()

    tasks = [asyncio.create_task(claim(lane)) for lane in lanes]
    for _ in range(5):
        await asyncio.sleep(0)
    before = list(claimed)
    answered.set()
    await asyncio.gather(*tasks)
    assert len(claimed) == len(lanes), "whoever waits for room gets it in the end"
    return before


async def test_what_was_answered_makes_room() -> None:
    pace = Pace(batch=5, in_flight=1)
    grown = Lane(pace)
    grown.size = pace.room
    room = Room(pace)
    async with AsyncExitStack() as stack:
        assert await stack.enter_async_context(room.batch(grown)) == pace.room
        waiting = asyncio.create_task(claimed_at_once(room, [Lane(pace)]))
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_no_lane_waits_for_another_at_its_first_size() -> None:
    pace = Pace(batch=5000, in_flight=100)
    assert await claimed_at_once(Room(pace), [Lane(pace) for _ in range(pace.lanes)]) == [5000] * pace.lanes


async def test_a_run_claims_more_until_the_bank_is_slow(subscriber: Till, database: Database) -> None:
    bank, now = ObedientBank(), 0.0
    takes = 0.0

    async def charge(*asked: Any, **named: Any) -> Any:
        nonlocal now
        now += takes
        if takes > SLOW_BANK:
            raise OutcomeUnknown("it is away")
        return await bank.charge_stored(*asked, **named)

    club = subscriber.at(answering(bank, charge_stored=charge))
    await set_back.no_renewal_due(database)
    for number in range(15):
        subscription = await club.subscribe(order=f"club-{number}")
        await set_back.renewal_due(database, subscription.id, utc_now())
    run, lane = BillingRun(club.desk, Pace(batch=1), clock=lambda: now), Lane(Pace(batch=1))
    assert [await run.charge_due(lane=lane) for _ in range(3)] == [1, 2, 4]
    takes = SLOW_BANK
    assert [await run.charge_due(lane=lane) for _ in range(2)] == [4, 1]
    takes = 0.0
    assert await run.charge_due(lane=lane) == 1
    assert await run.charge_due(lane=lane) == 2


class CountingBank(ObedientBank):
    """Takes a while, and counts how many it is asked for meanwhile."""

    asked_now = 0
    most = 0

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        self.asked_now += 1
        self.most = max(self.most, self.asked_now)
        for _ in range(10):
            await asyncio.sleep(0)
        self.asked_now -= 1
        return await super().charge_stored(purchase)


async def test_as_many_are_asked_for_at_once_as_may_be_in_flight(subscriber: Till) -> None:
    bank = CountingBank()
    club = subscriber.at(bank)
    subscriptions = [await club.subscribe(order=f"club-{number}") for number in range(5)]
    at = max(one.date_next for one in subscriptions if one.date_next)
    run = BillingRun(club.desk, Pace(batch=10, in_flight=2))
    assert await run.charge_due(merchant_id=club.shop.merchant_id, at=at) == 5
    assert bank.most == 2
    assert [(await club.now(one)).counter for one in subscriptions] == [2] * 5
