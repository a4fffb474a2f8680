"""A soak for hours when nobody waits: everything dies at random,
in whatever combination nobody thought of.

It is no part of `make test`, since what it sees is chance; `make soak` runs it. What it finds
becomes a play.
"""

from __future__ import annotations

import os
import random
import secrets
from pathlib import Path

import pytest
from tests.faults.customers import plan
from tests.faults.keeping import CAPTURED_AT_ONCE, SHIPPED
from tests.faults.killing import Kills, pay_under_fire
from tests.faults.settling import settle
from tests.faults.stage import PAYDESK, Cast, Order, staged
from tests.faults.test_plays import check, unforeseen
from tests.faults.verifying import contradictions, hear
from tests.processes import eventually

pytestmark = [pytest.mark.faults, pytest.mark.soak]

CUSTOMERS = 500
KILLS = {"web": 30, "work": 30, "postgres": 30}


@pytest.fixture
def seed() -> int:
    """Printed when a test fails; PAYDESK_FAULT_SEED plays the same game again
    (as far as processes let it).
    """
    chosen = int(os.environ.get("PAYDESK_FAULT_SEED", secrets.randbelow(10**6)))
    print(f"PAYDESK_FAULT_SEED={chosen}")
    return chosen


def order(number: int, chance: random.Random) -> Order:
    """One customer's order: the two shops take turns, and their wishes too."""
    shop, wishes = (("socks", CAPTURED_AT_ONCE), ("mugs", SHIPPED))[number % 2]
    return Order(f"order-{number:03}", plan(chance), wishes[number // 2 % len(wishes)], shop)


async def test_nothing_is_lost_or_doubled_whatever_dies_at_random(tmp_path: Path, seed: int) -> None:
    kills, chance = Kills(KILLS, random.Random(seed)), random.Random(seed + 2)
    cast = Cast(command=PAYDESK, web_workers=2, workers=2, unreliable=True, hides_for=1.0)
    async with staged(tmp_path, cast, seed) as stage:
        stage.receiver.tell = stage.staff.hear
        for number in range(CUSTOMERS):
            stage.expect(order(number, chance))
        async with stage.working():
            await eventually(lambda: all(one.ready for one in stage.workers), "the workers work", stage.web.tail)
            await pay_under_fire(stage, kills)
        await settle(stage)
        found = contradictions(await hear(stage))
        assert stage.staff.wrong + stage.staff.failures() == [], found
        assert not found, "\n".join(found)
        assert await check(stage) == ""
        assert [wrong for customer in stage.crowd.customers for wrong in customer.wrong] == []
        assert stage.receiver.forged == 0
        assert unforeseen(stage.web, *stage.workers) == []
        assert await stage.web.stop() == 0
