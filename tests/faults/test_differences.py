"""Whatever dies while a change of plan is charged at once: the difference is taken once, and the
plan is the one that was paid for.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest
from tests.faults.clerk import Clerk
from tests.faults.renewing import Club, club_staged, until_nothing_is_due
from tests.faults.settling import KEYS_ARE_VOID, hereafter
from tests.faults.stage import STOPPABLE, Cast, stop_workers
from tests.faults.supervising import answering, kill, supervised
from tests.lengths import at_length, longer
from tests.proving import check
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Record
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected

pytestmark = pytest.mark.faults

NEVER_ASKED = (
    "before charging_differences.begin_difference",
    "after charging_differences.begin_difference",
    "before bank.charge_stored",
)
"""Where the bank has heard nothing of it."""
TAKEN = (
    "after bank.charge_stored",
    "before payments.record_approvals",
    "after payments.record_approvals",
)
POINTS = at_length(NEVER_ASKED + TAKEN, (NEVER_ASKED[2], TAKEN[1]))


async def upgrade(clerk: Clerk, subscription_id: int) -> int:
    """An operator changes a plan, every other one's to three of the same, and has the difference
    charged; the command's exit status.
    """
    wish = "--quantity 3" if subscription_id % 2 else "--price 30.00"
    return await clerk.command(*f"subscription change {subscription_id} {wish} --now --charge".split())


async def prices(database: Database) -> dict[int, Decimal]:
    rows = await database.fetch(
        "select s.id, v.price from subscription s"
        " join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id order by s.id"
    )
    return {row["id"]: row["price"] for row in rows}


async def quantities(database: Database) -> dict[int, int]:
    rows = await database.fetch(
        "select s.id, coalesce(v.quantity, 1) as quantity from subscription s"
        " join package_version v on v.merchant_id = s.merchant_id and v.id = s.package_version_id"
    )
    return {row["id"]: row["quantity"] for row in rows}


async def taken(club: Club, database: Database) -> list[int]:
    """Of which subscriptions the bank has a difference by its own record, as often as it has."""
    rows = await database.fetch(
        "select d.subscription_id, a.idempotency_key from subscription_difference d"
        " join payment_attempt a on a.merchant_id = d.merchant_id and a.id = d.attempt_id"
    )
    kept = standings(Record(club.record).operations())
    return sorted(row["subscription_id"] for row in rows if (one := kept.get(row["idempotency_key"])) and one.net)


@longer
async def test_a_difference_is_charged_once_whatever_dies(tmp_path: Path) -> None:
    async with club_staged(tmp_path, len(POINTS) + 1, Cast()) as club, Clerk(STOPPABLE, club.env).working() as clerk:
        async with supervised(club.postgres), club.worker.running():
            await until_nothing_is_due(club)
            await stop_workers([club.worker], club.points, 1)
        await settle(club)
        async with connected(club.settings.database_url, most=2) as database:
            *members, last = await prices(database)
        for point, member in zip(POINTS, members, strict=True):
            club.points.arm(point)
            dying = asyncio.create_task(upgrade(clerk, member))
            (await club.points.stopped(point)).kill()
            dying.cancel()
        async with supervised(club.postgres):
            club.points.arm(TAKEN[1])
            alone = asyncio.create_task(upgrade(clerk, last))
            stop = await club.points.stopped(TAKEN[1])
            kill(club.postgres)
            await answering(club.postgres)
            stop.go_on()
            await alone
        async with connected(club.settings.database_url, most=2) as database:
            first = await taken(club, database)
            assert first == [*(one for point, one in zip(POINTS, members, strict=True) if point in TAKEN), last]
            # Asked for again before anybody knows: what may have been taken is not taken again.
            for member in [*members, last]:
                await upgrade(clerk, member)
            again = await taken(club, database)
            assert len(again) == len(set(again))
            await settle(club)
            assert [await upgrade(clerk, member) for member in [*members, last]] == [0] * (len(members) + 1)
            assert set((await prices(database)).values()) == {Decimal(30)}
            assert await quantities(database) == {one: 3 if one % 2 else 1 for one in (*members, last)}
            assert await taken(club, database) == [*members, last]
            found = await check(database, now=utc_now(), record=Record(club.record))
            assert [f"{one.rule.statement}: {one.differences}" for one in found if one.found] == []


async def settle(club: Club) -> None:
    """Let the time pass that settling needs."""
    async with hereafter(club.settings) as later:
        await later.ask_the_bank(KEYS_ARE_VOID)
