"""The standby that commits wait for stands still while customers pay;
then the primary dies, and the standby serves.

What was committed without it is forgotten. Nobody is charged twice for that, and nobody was told
what is not true.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from tests.faults import supervising
from tests.faults.settling import settle
from tests.faults.stage import PAYDESK, Cast, Stage, staged
from tests.faults.test_plays import check, unforeseen
from tests.faults.test_soak import order
from tests.faults.verifying import contradictions, hear
from tests.lengths import at_length, long
from tests.processes import eventually
from tests.standing_by import processes, promoted_without_what_it_had_not_written

from paydesk.database.pool import Database, connected

pytestmark = pytest.mark.faults

AT_ONCE = 12
WORDS = "taking a short break"
MOST_CONNECTIONS = 2 * (16 + 4) + 2 * 6 + 20
"""Those of two web processes and two workers, and of those who watch."""

EXPECTED = {
    # Once of each loop, without its place in the source.
    "a background loop keeps failing: ",
    # A beat that was broken off can be seen, too: once a failover has forgotten it, acquirers'
    # lists are read first.
    "everything that moves money is held: ",
    "alarm: held: ",
}
"""What a process may say as an error."""

CHECKOUTS = "select count(*) from checkout"
HANGING = "select pid from pg_stat_activity where wait_event = 'SyncRep' order by random() limit $1"


@dataclass(slots=True)
class Seen:
    """What was seen of a database that does not commit:
    how often who answered what, and how many connections.

    `forgotten` is how many checkouts could be seen before the failover and not after it.
    """

    ready: Counter[int] = field(default_factory=Counter)
    forms: Counter[int] = field(default_factory=Counter)
    without_words: list[str] = field(default_factory=list)
    hung: int = 0
    most: int = 0
    checkouts: int = 0
    forgotten: int = 0
    seconds: float = 0.0


@long
async def test_a_standby_that_stands_still_for_seconds_loses_and_doubles_nothing(tmp_path: Path) -> None:
    seconds = os.environ.get("PAYDESK_FROZEN_SECONDS", at_length("8", "2"))
    customers, each = at_length((60, 2), (12, 1))
    await _stand_still(tmp_path, seconds=float(seconds), customers=customers, of_each=each)


@pytest.mark.soak
async def test_a_standby_that_stands_still_for_minutes_loses_and_doubles_nothing(tmp_path: Path) -> None:
    await _stand_still(tmp_path, seconds=float(os.environ.get("PAYDESK_FROZEN_SECONDS", "300")), customers=400)


async def _stand_still(folder: Path, *, seconds: float, customers: int, of_each: int = 2) -> None:
    """Let customers pay before, while and after the standby stands still;
    at its end the primary dies.
    """
    chance = random.Random(int(os.environ.get("PAYDESK_FAULT_SEED", "1")))
    async with staged(folder, Cast(command=PAYDESK, web_workers=of_each, workers=of_each, stands_by=True)) as stage:
        stage.receiver.tell = stage.staff.hear
        for number in range(customers):
            stage.expect(order(number, chance))
        async with stage.working():
            await eventually(lambda: all(one.ready for one in stage.workers), "the workers work", stage.web.tail)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(stage.crowd.shop(AT_ONCE))
                stage.crowd.let_in = customers // 3
                await eventually(lambda: stage.crowd.paid > customers // 6, "customers pay", stage.web.tail)
                seen = await _frozen(stage, seconds)
                await _fail_over(stage, seen)
                stage.crowd.let_in, stage.crowd.closing = customers, True
        await settle(stage)
        print(f"{seen}, {stage.crowd.paid} of {customers} paid")
        found = contradictions(await hear(stage))
        assert stage.staff.wrong + stage.staff.failures() == [], found
        assert not found, "\n".join(found)
        assert await check(stage) == ""
        assert [wrong for customer in stage.crowd.customers for wrong in customer.wrong] == []
        assert set(unforeseen(stage.web, *stage.workers)) <= EXPECTED
        assert stage.web.starts == 1, "nothing had to be started again"
        assert all(one.starts == 1 for one in stage.workers)
        assert await stage.web.stop() == 0
    assert seen.hung, "commits waited for the standby"
    assert set(seen.ready) == {503}
    assert set(seen.forms) == {503}
    assert not seen.without_words
    assert seen.most <= MOST_CONNECTIONS


async def _frozen(stage: Stage, seconds: float) -> Seen:
    """Let the standby stand still so long under load, with an operator who cancels and ends some
    of what waits.
    """
    assert stage.standby is not None
    for process in processes(stage.standby):
        process.send_signal(signal.SIGSTOP)
    seen, began = Seen(), time.monotonic()
    until, admitted = began + seconds, stage.crowd.let_in
    async with connected(stage.postgres.dsn(role="postgres"), most=1) as admin:
        while (now := time.monotonic()) < until:
            rest = len(stage.crowd.customers) - admitted
            stage.crowd.let_in = admitted + round(rest * 0.7 * (now - began) / seconds)
            await _look(stage, admin, seen)
            await _meddle(admin)
            await asyncio.sleep(min(seconds / 10, 5.0))
        seen.seconds, seen.checkouts = time.monotonic() - began, await admin.fetchval(CHECKOUTS)
    return seen


async def _look(stage: Stage, admin: Database, seen: Seen) -> None:
    """What a load balancer and a customer see, and how many connections there are."""
    address, gateway = stage.settings.address, stage.receiver.gateways["socks"]
    async with stage.browser.get(f"{address}/readyz") as answer:
        seen.ready[answer.status] += 1
    form, nobodys = gateway.payment_form(), {"merchant_order_id": "nobody's", "amount": "1.00"}
    fields = form.build_parameters(nobodys | {"currency": "USD", "description": "-"})
    patient = aiohttp.ClientTimeout(total=60)
    async with stage.browser.post(form.action, data=fields, allow_redirects=False, timeout=patient) as answer:
        seen.forms[answer.status] += 1
        if WORDS not in (said := await answer.text()) or "Retry-After" not in answer.headers:
            seen.without_words.append(said)
    seen.hung += await admin.fetchval("select count(*) from pg_stat_activity where wait_event = 'SyncRep'")
    counted = await admin.fetchval("select count(*) from pg_stat_activity where usename = 'paydesk'")
    seen.most = max(seen.most, counted)


async def _meddle(admin: Database) -> None:
    """Cancel one of the commits that wait, and end the process of another."""
    await admin.execute(f"select pg_cancel_backend(pid) from ({HANGING.replace('$1', '1')}) as one")
    await admin.execute(f"select pg_terminate_backend(pid) from ({HANGING.replace('$1', '1')}) as one")


async def _fail_over(stage: Stage, seen: Seen) -> None:
    """The primary dies as by a power cut, then the standby goes on in its place."""
    assert stage.standby is not None
    supervising.kill(stage.postgres)
    await promoted_without_what_it_had_not_written(stage.standby)
    await supervising.answering(stage.standby)
    async with connected(stage.standby.dsn(role="postgres"), most=1) as admin:
        seen.forgotten = seen.checkouts - await admin.fetchval(CHECKOUTS)
