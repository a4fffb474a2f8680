"""A synchronous standby that is lost while the service runs: an alarm, and no new payments,
where that is wanted.

Where commits wait for it, nobody can pay anyway. Where the database goes on alone (as under
Patroni, unless strict), a failover would forget what is paid from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import AWAY, Database
from paydesk.database.standbys import Standbys, watch_standbys
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.payments.hold_gate import MoneyGate
from paydesk.loops.repeating import repeat

log = structlog.get_logger()

EVERY, SELDOM = 1.0, 10.0
"""Seconds between two looks; the second where only a metric hangs on them."""

SUBJECT = "synchronous standby"
"""What the alarm is about, and what shuts the gate."""

UNSEEN = "it is not known yet whether the database's synchronous standby is there"


class StandbyWatch:
    """Looks whether a second server has what is committed; `gate` is shut while none has,
    `tells` raises the alarm.
    """

    def __init__(self, database: Database, *, gate: MoneyGate | None = None, tells: bool = False) -> None:
        self._database = database
        self._gate = gate
        self._tells = tells
        self._was_kept: bool | None = None
        if gate is not None:
            gate.shut(SUBJECT, UNSEEN)

    async def run(self, stop: asyncio.Event) -> None:
        """Look each second, or where nothing hangs on it each tenth, until told to stop."""
        await repeat("standbys", self.look, stop, rest=EVERY if self._gate or self._tells else SELDOM)

    async def look(self) -> None:
        """Look once; what is said of a change is said again until it is committed.
        Moves no money.
        """
        found = await watch_standbys(self._database)
        if self._gate is not None:
            self._pass(self._gate, found)
        if self._tells and found.keep_all is not self._was_kept:
            await self._tell(found)
            self._was_kept = found.keep_all

    @staticmethod
    def _pass(gate: MoneyGate, found: Standbys) -> None:
        """Shut or open the gate."""
        if found.keep_all:
            gate.reopen(SUBJECT)
        else:
            gate.shut(SUBJECT, f"a failover would forget what is paid now, since {found.lack}")

    async def _tell(self, found: Standbys) -> None:
        """Raise the alarm, or settle it, also that of a process before this one."""
        now = utc_now()
        if found.keep_all:
            by = noted("a synchronous standby has what is committed")
            settled = await settle_alarms(self._database, AlarmKind.standby_lost, [SUBJECT], shop=None, by=by, now=now)
            if settled:
                log.warning("a synchronous standby is there again")
            return
        held = (
            noted("No payment is begun")
            if self._gate is not None
            else noted("Customers go on paying where commits go through")
        )
        reason = noted("live payments need a synchronous standby, and %(lack)s. %(held)s", lack=found.lack, held=held)
        await raise_alarms(self._database, [Alarm(AlarmKind.standby_lost, SUBJECT, reason)], now=now)


@asynccontextmanager
async def standby_watched(database: Database, gate: MoneyGate) -> AsyncIterator[None]:
    """Shut the gate of this process, for the length of a block,
    while no second server has what is committed.

    It is looked once before the block begins; if the database is away then, the gate is shut until
    it is back.
    """
    stop, watch = asyncio.Event(), StandbyWatch(database, gate=gate)
    with suppress(*AWAY):
        await watch.look()
    watching = asyncio.create_task(watch.run(stop), name="standbys")
    try:
        yield
    finally:
        stop.set()
        await watching
