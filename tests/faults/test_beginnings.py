"""Whatever dies while another period begins at once: it is paid once and counted once, and the plan
is the one that was paid for.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest
from tests.faults.clerk import Clerk
from tests.faults.renewing import club_staged, settle_renewals, until_nothing_is_due
from tests.faults.stage import STOPPABLE, Cast, stop_workers
from tests.faults.supervising import supervised
from tests.faults.test_differences import NEVER_ASKED, TAKEN, prices, settle, taken
from tests.lengths import at_length, longer
from tests.proving import check

from paydesk.adapters.acquirers.simulator import Record
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected

pytestmark = pytest.mark.faults

COUNTING = ("before charging.begin_renewals", "after charging.begin_renewals")
"""Where the order is paid, and the period that it is for is not counted yet."""
POINTS = at_length((*NEVER_ASKED, *TAKEN, *COUNTING), (NEVER_ASKED[2], *COUNTING))


async def begin(clerk: Clerk, subscription_id: int) -> int:
    """An operator has a year begin now, and charged; the command's exit status."""
    wish = f"subscription change {subscription_id} --price 100.00 --period 1y --now --charge"
    return await clerk.command(*wish.split())


async def counters(database: Database) -> dict[int, int]:
    return {row["id"]: row["counter"] for row in await database.fetch("select id, counter from subscription")}


@longer
async def test_a_period_that_begins_at_once_is_paid_and_counted_once_whatever_dies(tmp_path: Path) -> None:
    async with club_staged(tmp_path, len(POINTS), Cast()) as club, Clerk(STOPPABLE, club.env).working() as clerk:
        async with supervised(club.postgres), club.worker.running():
            await until_nothing_is_due(club)
            await stop_workers([club.worker], club.points, 1)
        await settle(club)
        async with connected(club.settings.database_url, most=2) as database:
            members, before = list(await prices(database)), await counters(database)
        for point, member in zip(POINTS, members, strict=True):
            club.points.arm(point)
            dying = asyncio.create_task(begin(clerk, member))
            (await club.points.stopped(point)).kill()
            dying.cancel()
        async with connected(club.settings.database_url, most=2) as database:
            # Asked for again before anybody knows: what may have been taken is not taken again.
            for member in members:
                await begin(clerk, member)
            again = await taken(club, database)
            assert len(again) == len(set(again))
            await settle(club)
            for member in members:
                await begin(clerk, member)
            await settle_renewals(club)
            assert set((await prices(database)).values()) == {Decimal(100)}
            assert await counters(database) == {member: before[member] + 1 for member in members}
            assert await taken(club, database) == members
            found = await check(database, now=utc_now(), record=Record(club.record))
            assert [f"{one.rule.statement}: {one.differences}" for one in found if one.found] == []
