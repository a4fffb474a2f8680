"""Whatever becomes of the primary's machine: no payment that anybody was told of is lost,
none is made twice.

It is no part of `make test`, since it needs root and a cluster of Debian's; `make test-ha` runs it.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.settling import settle
from tests.faults.stage import PAYDESK, Cast, Stage, staged
from tests.faults.test_plays import check, unforeseen
from tests.faults.verifying import contradictions, hear
from tests.ha.blows import blows
from tests.ha.cluster import Cluster, clustered
from tests.ha.machines import Machine, machines
from tests.ha.paying import order, pay_through
from tests.processes import eventually

pytestmark = [pytest.mark.faults, pytest.mark.ha]

PAYMENTS = int(os.environ.get("HA_PAYMENTS", "2000"))
OF_EACH = int(os.environ.get("HA_OF_EACH", "5"))
"""How often the primary is killed, how often cut off, how often it stands still."""
EXPECTED = "a background loop keeps failing"
"""While nobody leads, the workers say that they wait."""
CAST = Cast(command=PAYDESK, web_workers=2)


@pytest.fixture
def chance() -> random.Random:
    """HA_SEED plays the same blows at the same sort of moments again."""
    seed = int(os.environ.get("HA_SEED", secrets.randbelow(10**6)))
    print(f"\nHA_SEED={seed}", flush=True)
    return random.Random(seed)


@pytest.fixture
def three() -> Iterator[list[Machine]]:
    with machines() as made:
        yield made


async def played(stage: Stage, cluster: Cluster, of_each: int, payments: int, chance: random.Random) -> None:
    """Let customers pay through the blows, and ask all witnesses what became of their orders."""
    stage.receiver.tell = stage.staff.hear
    for number in range(payments):
        stage.expect(order(number, chance))
    async with stage.working():
        await eventually(lambda: all(one.ready for one in stage.workers), "the workers work", stage.web.tail)
        outages = await pay_through(stage, cluster, blows(of_each, chance), chance)
    longest = max(one.seconds for one in outages)
    print(f"{payments} payments, {len(outages)} interruptions, {longest:.1f} s at the longest", flush=True)
    await settle(stage)
    found = contradictions(await hear(stage))
    assert stage.staff.wrong + stage.staff.failures() == [], found
    assert not found, "\n".join(found)
    assert await check(stage) == ""
    assert [wrong for customer in stage.crowd.customers for wrong in customer.wrong] == []
    assert stage.receiver.forged == 0
    errors = unforeseen(stage.web, *stage.workers)
    assert [error for error in errors if not error.startswith(EXPECTED)] == []
    assert [kept.starts for kept in (stage.web, *stage.workers)] == [1, 1]
    assert await stage.web.stop() == 0


async def test_no_payment_is_lost_or_doubled_behind_haproxy(
    three: list[Machine], tmp_path: Path, chance: random.Random
) -> None:
    async with (
        clustered(three, tmp_path) as cluster,
        staged(tmp_path, CAST, database_url=cluster.url(through_proxy=True)) as stage,
    ):
        await played(stage, cluster, OF_EACH, PAYMENTS, chance)


async def test_no_payment_is_lost_or_doubled_with_all_servers_named(
    three: list[Machine], tmp_path: Path, chance: random.Random
) -> None:
    async with (
        clustered(three, tmp_path) as cluster,
        staged(tmp_path, CAST, database_url=cluster.url(through_proxy=False)) as stage,
    ):
        await played(stage, cluster, 1, min(PAYMENTS, 200), chance)
