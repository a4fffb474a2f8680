"""Whatever dies between the charge of a direct debit and the day on which its bank pays:
each renewal is debited once, told once, and begins no period that nobody has paid for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import asyncpg
import msgspec
import pytest
from tests.faults.plays import Fate
from tests.faults.renewing import Club, club_staged, renewal_contradictions, settle_renewals, until_nothing_is_due
from tests.faults.settling import KEYS_ARE_VOID, hereafter
from tests.faults.stage import Cast, stop_workers
from tests.faults.supervising import Outage, answering, kill, supervised
from tests.faults.test_plays import unforeseen
from tests.faults.test_renewals import EXPECTED
from tests.lengths import WHOLE, at_length, longer
from tests.processes import PATIENCE, Kept

from paydesk.adapters.acquirers.simulator import Record, RemoteSimulator
from paydesk.adapters.acquirers.simulator.own_pages import ACCOUNT
from paydesk.core.clock import utc_now
from paydesk.database.pool import AWAY, connected

pytestmark = pytest.mark.faults

MEMBERS = at_length(400, 20)
SENT_OFF = (
    "before bank.charge_stored",
    "after bank.charge_stored",
    "before hosting.record_pending",
    "after hosting.record_pending",
)
"""Where a worker stands that charges."""
ARRIVING = (
    "before bank.pass_time",
    "after bank.pass_time",
    "after bank.find",
    "before payments.record_approvals",
    "after payments.record_approvals",
)
"""Where it stands once the day has come."""

SHORT = {Fate.DIES: SENT_OFF[2:3]}
"""Where the answer is known and nothing of it is written down; the days are over without a worker
then.
"""

KEEP = """
update card
   set stored_reference = 'kept', acquirer = 'simulator', brand = 'slow_bank', last4 = '', slow = true,
       number_sealed = null
 where merchant_id = $1
"""
THE_DAY_HAS_COME = """
update payment_attempt set sure_by = now() - interval '1 hour', lookup_at = now(), leased_until = null
 where state = 'pending'
"""
GIVEN_UP = "select idempotency_key from payment_attempt where state = 'failed'"
WAITING = "select count(*) from payment_attempt where state = 'pending'"


async def pay_by_debit(club: Club) -> None:
    """All members have left their accounts at the bank, to be debited."""
    record = Record(club.record)
    with record.transaction():
        record.write_instrument("account", msgspec.json.encode(ACCOUNT).decode())
        record.write_kept("kept", "account")
    async with connected(club.settings.database_url, most=1) as database:
        await database.execute(KEEP, club.shop.merchant_id)


async def work(club: Club, worker: Kept, fates: Mapping[Fate, tuple[str, ...]], *, arriving: bool) -> list[Outage]:
    """Let the worker charge all, or hear that all arrive; on the way each fate comes at its points.

    Returns when the database was away.
    """
    outages: list[Outage] = []
    async with supervised(club.postgres), worker.running():
        for fate, points in fates.items():
            for point in points:
                club.points.arm(point)
                if arriving:
                    await _at_the_database(club, THE_DAY_HAS_COME)
                stop = await club.points.stopped(point)
                began = utc_now()
                if fate is Fate.DIES:
                    stop.kill()
                elif fate is Fate.LOSES_THE_DATABASE:
                    kill(club.postgres)
                    await answering(club.postgres)
                else:
                    async with hereafter(club.settings) as others:
                        await others.ask_the_bank(KEYS_ARE_VOID)
                if fate is not Fate.DIES:
                    stop.go_on()
                if fate is Fate.LOSES_THE_DATABASE:
                    outages.append((began, utc_now()))
        if arriving:
            await _until_all_have_arrived(club)
        else:
            await until_nothing_is_due(club)
        await stop_workers([worker], club.points, 1)
    return outages


async def let_strays_arrive(club: Club) -> None:
    """What was sent too late, for attempts that were given up, arrives too: it is given back."""
    async with connected(club.settings.database_url, most=1) as database:
        given_up = await database.fetch(GIVEN_UP)
    bank = RemoteSimulator(club.settings.simulator_url)
    for row in given_up:
        await bank.pass_time(row["idempotency_key"])
    await bank.close()


async def _until_all_have_arrived(club: Club) -> None:
    async with asyncio.timeout(PATIENCE):
        while await _at_the_database(club, WAITING):
            await _at_the_database(club, THE_DAY_HAS_COME)
            await asyncio.sleep(0.2)


async def _at_the_database(club: Club, statement: str) -> int:
    """What a statement says; asked for again while the database is away."""
    while True:
        with suppress(*AWAY, asyncpg.PostgresError):
            connection = await asyncpg.connect(club.settings.database_url)
            try:
                return int(await connection.fetchval(statement) or 0)
            finally:
                await connection.close()
        await asyncio.sleep(0.1)


@longer
async def test_each_debit_is_sent_once_and_counted_once_whatever_happens_at_a_point(tmp_path: Path) -> None:
    async with club_staged(tmp_path, MEMBERS, Cast()) as club:
        await pay_by_debit(club)
        workers = [club.worker]
        outages = await work(club, club.worker, at_length(dict.fromkeys(Fate, SENT_OFF), SHORT), arriving=False)
        assert await _at_the_database(club, "select count(*) from subscription where counter > 0 or failures > 0") == 0
        async with hereafter(club.settings) as others:
            await others.ask_the_bank(KEYS_ARE_VOID)
        if WHOLE:
            workers.append(club.another_worker())
            outages += await work(club, workers[-1], dict.fromkeys(Fate, ARRIVING), arriving=True)
        await let_strays_arrive(club)
        await settle_renewals(club)
        found = await renewal_contradictions(club, MEMBERS)
        assert not found, "\n".join(found)
        assert set(unforeseen(*workers, outages=outages)) <= EXPECTED
