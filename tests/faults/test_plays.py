"""Whatever dies at whichever point: no payment, capture, void or refund is lost or made twice,
and all are told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import psutil
import pytest
from tests.faults.on_pages import OF_PAGES, OF_PAGES_LATER
from tests.faults.plays import EACH_FATE, OF_THE_WEB, OF_THE_WORKERS, PAYS, Fate, perform, play, played, shared_out
from tests.faults.settling import settle
from tests.faults.stage import PAYDESK, Cast, Stage, staged
from tests.faults.supervising import Outage
from tests.faults.verifying import contradictions, hear
from tests.lengths import at_length, long
from tests.processes import Kept, eventually, lives

pytestmark = pytest.mark.faults

FORKS = at_length(8, 4)
"""Processes of the worker."""

WAITS = "a background loop keeps failing: "
TRIES_AGAIN = "a background loop will try again"
"""What a loop may say of a database that was killed: how long that needs to recover depends on the
machine. Of anything else than an outage it also says the place in the source."""


@pytest.mark.parametrize("fates", EACH_FATE)
async def test_nothing_is_lost_or_doubled_whatever_happens_at_a_point(tmp_path: Path, fates: list[Fate]) -> None:
    async with staged(tmp_path, Cast(forks=FORKS)) as stage:
        for plays, fate in shared_out(played(OF_THE_WEB + OF_PAGES), fates):
            await perform(stage, plays, fate)
        await settle(stage)
        async with stage.working():
            for plays, fate in shared_out(played(OF_THE_WORKERS + OF_PAGES_LATER), fates):
                # Each may hold up a janitor, and a process has one.
                for first in range(0, len(plays), FORKS):
                    await perform(stage, plays[first : first + FORKS], fate)
        await settle(stage)
        found = contradictions(await hear(stage))
        assert stage.staff.wrong + stage.staff.failures() == [], found
        assert not found, "\n".join(found)
        assert await check(stage) == ""
        assert [wrong for customer in stage.crowd.customers for wrong in customer.wrong] == []
        assert stage.receiver.forged == 0
        assert unforeseen(stage.web, *stage.workers, outages=stage.outages) == []
        assert await stage.web.stop() == 0


@long
async def test_the_orphans_of_a_web_service_end_by_themselves_and_lose_nothing(tmp_path: Path) -> None:
    async with staged(tmp_path, Cast(web_workers=2)) as stage:
        at_the_bank = play(PAYS, "after bank.authorize")
        customer = stage.expect(at_the_bank.order)
        stage.points.arm(at_the_bank.at)
        visit = asyncio.create_task(customer.visit())
        stop = await stage.points.stopped(at_the_bank.at)
        parent = psutil.Process(stop.pid).parent()
        assert parent is not None
        orphans = parent.children(recursive=True)
        parent.kill()
        stop.go_on()
        await eventually(lambda: not any(map(lives, orphans)), "the orphans end by themselves", stage.web.tail)
        await visit
        await settle(stage)
        assert contradictions(await hear(stage)) == []
        assert customer.wrong == []


async def check(stage: Stage) -> str:
    """What `paydesk check` says if it is not content; a live acquirer's lists are compared, too."""
    checking = await asyncio.create_subprocess_exec(
        *PAYDESK,
        "check",
        "--simulator-record",
        str(stage.record),
        *(["--live"] if stage.live is not None else []),
        env=stage.env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await checking.communicate()
    return said.decode() if checking.returncode else ""


def unforeseen(*processes: Kept, outages: Sequence[Outage] = ()) -> list[str]:
    """What the processes logged as errors: nobody foresaw it, so it is a mistake of ours.

    That a loop waits for the database is foreseen where it began while that was killed, and at no
    other time: a busy machine may take long until its next turn.
    """
    said = []
    for kept in processes:
        since: dict[str, datetime] = {}
        for event in kept.events:
            if event["event"] == TRIES_AGAIN and event["failures"] == 1:
                since[event["loop"]] = datetime.fromisoformat(event["timestamp"])
            if event["level"] != "error":
                continue
            what = f"{event['event']}: {event.get('exception', '')}"
            if what == WAITS:
                if any(began <= since[event["loop"]] <= ended for began, ended in outages):
                    continue
                what = f"{what}{event['loop']}, {event['why']}, from {since[event['loop']]} to {event['timestamp']}"
            said.append(what)
    return said
