"""Whatever dies at whichever point of a billing run:
each renewal is charged once, and none is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest
from tests.faults.fail_points import Stop
from tests.faults.plays import Fate
from tests.faults.renewing import (
    Club,
    club_staged,
    renewal_contradictions,
    settle_renewals,
    until_nothing_is_due,
)
from tests.faults.settling import KEYS_ARE_VOID, hereafter
from tests.faults.stage import Cast, stop_workers
from tests.faults.supervising import Outage, answering, kill, supervised
from tests.faults.test_plays import unforeseen
from tests.lengths import at_length, long, longer

from paydesk.core.clock import utc_now

pytestmark = pytest.mark.faults

MEMBERS = at_length(400, 80)
"""More than are in hand whenever a process is killed:
somebody must be left to come to the next point."""
EXPECTED = {"an approval turned up for an attempt that was given up; voiding it: "}
"""What goes on too late is approved for an attempt that others have given up, and found soon enough
to be seen here."""
POINTS = (
    "before charging.begin_renewals",
    "before bank.charge_stored",
    "after bank.charge_stored",
    "after payments.record_approvals",
)


SHORT = {Fate.DIES: POINTS[1:3], Fate.LOSES_THE_DATABASE: POINTS[:1], Fate.IS_TOO_LATE: POINTS[3:]}
"""Each point once."""


async def charge(club: Club, fates: Mapping[Fate, tuple[str, ...]]) -> list[Outage]:
    """Charge everybody; on the way each fate comes at its points.

    Returns the outages: each lasts until others have come to their points again.
    """
    reached: dict[Fate, datetime] = {}
    async with supervised(club.postgres), club.worker.running():
        for fate, points in fates.items():
            stops = []
            for point in points:
                club.points.arm(point)
                stops.append(await club.points.stopped(point))
                if fate is Fate.DIES:
                    stops[-1].kill()
            reached[fate] = utc_now()
            if fate is not Fate.DIES:
                await _befall(club, fate, stops)
        await until_nothing_is_due(club)
        await stop_workers([club.worker], club.points, 1)
    ends = [*reached.values(), utc_now()][1:]
    kills = zip(reached.items(), ends, strict=True)
    return [(began, ended) for (fate, began), ended in kills if fate is Fate.LOSES_THE_DATABASE]


async def _befall(club: Club, fate: Fate, stops: list[Stop]) -> None:
    """Let the fate come while some batches stand still, and let them go on."""
    if fate is Fate.LOSES_THE_DATABASE:
        kill(club.postgres)
        await answering(club.postgres)
    else:
        async with hereafter(club.settings) as others:
            await others.ask_the_bank(KEYS_ARE_VOID)
    for stop in stops:
        stop.go_on()


@longer
async def test_each_renewal_is_charged_once_whatever_happens_at_a_point(tmp_path: Path) -> None:
    async with club_staged(tmp_path, MEMBERS, Cast()) as club:
        outages = await charge(club, at_length(dict.fromkeys(Fate, POINTS), SHORT))
        await settle_renewals(club)
        found = await renewal_contradictions(club, MEMBERS)
        assert not found, "\n".join(found)
        assert set(unforeseen(club.worker, outages=outages)) <= EXPECTED


@long
async def test_a_renewal_that_is_charged_before_its_intent_is_found(tmp_path: Path) -> None:
    # Of a batch, the first to be answered would commit the intents of all.
    async with club_staged(tmp_path, 1, Cast(bugs=["charging.begin_renewals"])) as club:
        await charge(club, {Fate.DIES: ("after bank.charge_stored",)})
        await settle_renewals(club)
        found = await renewal_contradictions(club, 1)
        assert any(said.startswith("lost: ") for said in found), found
