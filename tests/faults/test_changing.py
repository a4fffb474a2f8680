"""Whatever dies at whichever point while changes of subscriptions are carried out:
each ends once, or goes on once, and none is charged that must not be.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.faults.renewing import Club, club_staged, settle_renewals, until_nothing_is_due
from tests.faults.stage import Cast, stop_workers
from tests.faults.supervising import answering, kill, supervised
from tests.lengths import long
from tests.proving import check
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Record
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.subscriptions.changing import cancel_later, pause

MEMBERS = 60
CHARGE = "before bank.charge_stored"
CARRY_OUT, CARRIED_OUT = "before changing.change_subscriptions", "after changing.change_subscriptions"
POINTS = ("before changing.due_to_change", CARRY_OUT)


async def leave_and_pause(club: Club, database: Database) -> tuple[set[int], set[int]]:
    """A third was to end with its trial, which is over, a third was paused in it for half an hour;
    the ids of both.
    """
    rows = await database.fetch("select id, date_start from subscription order by id")
    third, leaving, pausing = len(rows) // 3, set[int](), set[int]()
    for place, row in enumerate(rows[: 2 * third]):
        at = row["date_start"] + timedelta(days=1)
        if place % 2:
            await cancel_later(database, club.shop, row["id"], by="customer", now=at)
            leaving.add(row["id"])
        else:
            await pause(database, club.shop, row["id"], until=at + timedelta(minutes=30), by="customer", now=at)
            pausing.add(row["id"])
    return leaving, pausing


async def carry_out(club: Club) -> None:
    """Let workers do all that is due, which is one statement, killed at each point,
    and the database once.
    """
    async with supervised(club.postgres), club.worker.running():
        for point in POINTS:
            club.points.arm(point)
            (await club.points.stopped(point)).kill()
        club.points.arm(CARRY_OUT)
        stop = await club.points.stopped(CARRY_OUT)
        kill(club.postgres)
        await answering(club.postgres)
        club.points.arm(CARRIED_OUT)
        stop.go_on()
        stop = await club.points.stopped(CARRIED_OUT)
        # What was paused is charged once the changes are done: who comes to that is killed, too.
        club.points.arm(CHARGE)
        stop.kill()
        (await club.points.stopped(CHARGE)).kill()
        await until_nothing_is_due(club)
        await stop_workers([club.worker], club.points, 1)


async def of_each(database: Database) -> dict[int, tuple[str, int, list[str]]]:
    """Where each subscription stands: its state, its payments, and its events besides these."""
    rows = await database.fetch(
        "select s.id, s.state, s.counter, array(select event from pingback g where g.merchant_id = s.merchant_id"
        " and g.subscription_id = s.id) as events from subscription s"
    )
    return {row["id"]: (row["state"], row["counter"], list(row["events"])) for row in rows}


@long
async def test_each_change_is_carried_out_once_whatever_dies(tmp_path: Path) -> None:
    async with club_staged(tmp_path, MEMBERS, Cast()) as club:
        async with connected(club.settings.database_url, most=2) as database:
            leaving, pausing = await leave_and_pause(club, database)
        await carry_out(club)
        await settle_renewals(club)
        async with connected(club.settings.database_url, most=2) as database:
            found = await of_each(database)
            ended = [one for one in leaving if found[one] != ("Cancelled", 0, ["subscription_cancelled"])]
            going = [one for one in found.keys() - leaving if found[one] != ("Active", 1, [])]
            assert (ended, going) == ([], [])
            record = Record(club.record)
            taken = [key for key, purchase in standings(record.operations()).items() if purchase.net]
            assert len(taken) == MEMBERS - len(leaving)
            broken = await check(database, now=utc_now(), record=record)
            assert [one.detail for finding in broken for one in finding.differences] == []
            assert len(pausing) == MEMBERS // 3
