"""Processes die at random, and no payment, capture, void or refund is lost or made twice, no renewal skipped."""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path

import pytest
from tests.faults.keeping import Wish
from tests.faults.killing import Kills, pay_under_fire
from tests.faults.renewing import charge_under_fire, club_staged, renewal_contradictions, settle_renewals
from tests.faults.settling import settle
from tests.faults.stage import PAYDESK, WITH_BUG, Cast, Stage, staged
from tests.faults.verifying import contradictions, hear
from tests.processes import Kept

pytestmark = pytest.mark.faults


@pytest.fixture
def seed() -> int:
    """Printed when a test fails; PAYDESK_FAULT_SEED plays the same game again (as far as processes let it)."""
    chosen = int(os.environ.get("PAYDESK_FAULT_SEED", secrets.randbelow(10**6)))
    print(f"PAYDESK_FAULT_SEED={chosen}")
    return chosen


async def play(stage: Stage, kills: Kills) -> list[str]:
    """Pay while processes die, stop in good order, let time pass, and compare what all say."""
    await pay_under_fire(stage, kills)
    assert [await worker.stop() for worker in stage.workers] == [0, 0]
    await settle(stage)
    return contradictions(await hear(stage))


async def test_nothing_is_lost_or_doubled_whatever_dies(tmp_path: Path, seed: int) -> None:
    kills = Kills({"web": 30, "work": 30, "postgres": 30})
    async with staged(tmp_path, Cast(customers=500), seed) as stage:
        found = await play(stage, kills)
        assert stage.staff.wrong + stage.staff.failures() == [], found
        assert not found, "\n".join(found)
        assert await check(stage) == ""
        assert min(kills.done.values()) >= 30
        assert [wrong for customer in stage.crowd.customers for wrong in customer.wrong] == []
        assert stage.receiver.forged == 0
        assert unforeseen(stage.web, *stage.workers) == []
        assert await stage.web.stop() == 0


async def test_the_fault_test_finds_a_call_made_before_the_intent(tmp_path: Path, seed: int) -> None:
    kills = Kills({"web": 4, "work": 1, "postgres": 4})
    cast = Cast(customers=80, web=WITH_BUG, patient=True, wishes=[("socks", [Wish.GIVE_BACK_ALL])])
    found: list[str] = []
    # Whether a kill comes between call and commit is chance: what one play does not show, another does.
    for number in range(3):
        async with staged(tmp_path / str(number), cast, seed + number) as stage:
            found += await play(stage, kills)
            assert await check(stage)
        if _both_bugs(found):
            return
    raise AssertionError(found)


def _both_bugs(found: list[str]) -> bool:
    """Whether a payment and a refund were found that the bank made and nobody wrote down."""
    payment = any(one.startswith(("lost: ", "doubled: ")) for one in found)
    return payment and any(one.startswith("lost movement: ") for one in found)


async def test_each_of_2000_renewals_is_charged_once_whatever_dies(tmp_path: Path, seed: int) -> None:
    members = 2000
    async with club_staged(tmp_path, members, seed) as club:
        await charge_under_fire(club, {"work": 12, "postgres": 6})
        await settle_renewals(club)
        found = await renewal_contradictions(club, members)
        assert not found, "\n".join(found)
        assert unforeseen(*club.workers) == []


async def check(stage: Stage) -> str:
    """What `paydesk check` says if it is not content."""
    checking = await asyncio.create_subprocess_exec(
        *PAYDESK,
        "check",
        "--simulator-record",
        str(stage.record),
        env=stage.env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await checking.communicate()
    return said.decode() if checking.returncode else ""


def unforeseen(*processes: Kept) -> list[str]:
    """What the processes logged as errors: nobody foresaw it, so it is a mistake of ours."""
    events = [event for kept in processes for event in kept.events]
    return [f"{event['event']}: {event.get('exception', '')}" for event in events if event["level"] == "error"]
