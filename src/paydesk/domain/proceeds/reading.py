"""Reading the balances that acquirers keep for the operator, by one worker at a time each.

Lists are read again from some days before where the last reading ended, since a line may come late;
the place moves in the transaction that enters the last page, so that nothing is passed over
whenever a worker dies. Each transaction that writes holds the reading's lease first: whoever took
longer than it, while another began, or the account went to another cell, writes nothing any more.
Moves no money.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from paydesk.adapters.acquirers.balance import Balance, LinePage
from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.acquirers.accounts import tags_of
from paydesk.domain.acquirers.leases import Lease
from paydesk.domain.alarms.setting_aside import reason_of
from paydesk.domain.payments.desk import Desk
from paydesk.domain.proceeds import entering, metrics
from paydesk.domain.proceeds.entering import enter_lines, enter_payouts, new_lines
from paydesk.domain.proceeds.findings import Finding
from paydesk.domain.proceeds.matching import examine_lines, examine_payouts, keep_findings, look_for_missing
from paydesk.loops.hanging import LONG_READING
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "reading.sql")
log = structlog.get_logger()

EVERY = timedelta(hours=1)
OF_TESTS = timedelta(minutes=5)
"""The same of the bank for test payments, which costs nothing to ask: who tries Paydesk sees it."""
LEASE = timedelta(minutes=10)
PAUSE = 60.0
"""Seconds between two looks whether it is time to read."""

FIRST = timedelta(days=30)
"""How far the first reading of a balance goes back."""
BACK = timedelta(days=3)
"""How far each reading goes back before the last one: lines may come late, or be corrected. One
that comes later still is entered with the payout that has it."""
PAYOUTS_BACK = timedelta(days=14)
"""The same of payouts, which may fail days after they have arrived."""
SETTLED = timedelta(minutes=5)
"""What is younger may still be being written down at the acquirer."""


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A balance that is this worker's to read until then; up to `read_to` it was read before."""

    began_at: datetime
    read_to: datetime | None
    leased_until: datetime


@dataclass(frozen=True, slots=True)
class _Stand:
    """How many seconds old what was read of a balance is, and how much differs."""

    acquirer: str
    age: float
    findings: int


@dataclass(frozen=True, slots=True)
class _Named:
    reference: str


async def run_proceeds(desk: Desk, stop: asyncio.Event, patience: timedelta) -> None:
    """Read each acquirer's balance every hour until told to stop; any number of workers share it.

    A payment that is not paid out after `patience` is named.
    """

    async def read() -> None:
        for name in desk.acquirers:
            await _read_when_due(desk, name, patience)
        await watch(desk, now=utc_now())

    await repeat("proceeds", read, stop, rest=PAUSE, patience=LONG_READING)


async def watch(desk: Desk, *, now: datetime) -> None:
    """Measure up to when each balance was read, and how much differs, for the operator."""
    for one in await records_of(_Stand, queries.stands(desk.database, acquirers=list(desk.acquirers), now=now)):
        metrics.READ_AGE.labels(one.acquirer).set(one.age)
        metrics.FINDINGS.labels(one.acquirer).set(one.findings)


async def _read_when_due(desk: Desk, name: str, patience: timedelta) -> None:
    try:
        every = OF_TESTS if name == desk.test_acquirer else EVERY
        await read_proceeds(desk, name, patience=patience, now=utc_now(), every=every)
    except AWAY:
        raise
    except Exception as error:
        # A balance that can't be read keeps nobody from the others; its age will raise the alarm.
        log.warning("an acquirer's balance can't be read", acquirer=name, why=reason_of(error))


async def read_proceeds(
    desk: Desk, acquirer: str, *, patience: timedelta, now: datetime, every: timedelta = EVERY
) -> bool:
    """Read one acquirer's balance, enter what is news, and compare it; false if it is not time, or
    it tells nothing of a balance. Moves no money.

    `now` is real time, UTC. Raises: Unavailable if it can't be read, one of AWAY.
    """
    balance = desk.acquirers[acquirer].balance
    if balance is None:
        return False
    row = await queries.claim(desk.database, acquirer=acquirer, lease=LEASE, every=every, now=now)
    claimed = record_if_any(_Claimed, row)
    if claimed is None:
        return False
    lease = Lease(desk.database, acquirer, queries.hold, LEASE, claimed.leased_until)
    one = _Reading(desk.database, acquirer, balance, now, lease)
    try:
        await one.whole(claimed, patience)
    except (AcquirerRefused, OutcomeUnknown) as error:
        raise Unavailable(f"the balance of {acquirer} can't be read: {error}") from error
    finally:
        await queries.end(desk.database, acquirer=acquirer, held=lease.held)
    return True


@dataclass(slots=True)
class _Reading:
    """One reading of a balance, by the worker who has the lease on it."""

    database: Database
    acquirer: str
    balance: Balance
    now: datetime
    lease: Lease

    async def whole(self, claimed: _Claimed, patience: timedelta) -> None:
        """Lines, payouts and the lines of each payout, then what differs."""
        tags = await tags_of(self.database, self.acquirer)
        begun = claimed.read_to or claimed.began_at - FIRST
        await self._lines(begun - BACK, tags)
        await self._payouts(begun - PAYOUTS_BACK)
        for one in await records_of(_Named, entering.queries.to_trace(self.database, acquirer=self.acquirer)):
            await self._lines_of(one.reference, tags)
        await examine_lines(self.database, self.acquirer, within=self.lease.holding, now=self.now)
        await examine_payouts(self.database, self.acquirer, within=self.lease.holding, now=self.now)
        await look_for_missing(
            self.database,
            self.acquirer,
            within=self.lease.holding,
            began_at=claimed.began_at,
            read_to=claimed.read_to or claimed.began_at,
            patience=patience,
            now=self.now,
        )

    async def _lines(self, since: datetime, tags: frozenset[str]) -> None:
        """All movements since a time; with the last page the place moves."""
        after, is_over = "", False
        while not is_over:
            page = await self.balance.lines(since, after)
            after, is_over = page.next, not page.next
            await self._enter(page, tags, read_to=self.now - SETTLED if is_over else None)

    async def _payouts(self, since: datetime) -> None:
        after, is_over = "", False
        while not is_over:
            page = await self.balance.payouts(since, after)
            async with self.lease.holding() as connection:
                corrected = await enter_payouts(connection, self.acquirer, page.payouts)
            await self._told(corrected)
            after, is_over = page.next, not page.next

    async def _lines_of(self, payout: str, tags: frozenset[str]) -> None:
        """All movements that a payout is of; with the last page it is whole."""
        after, is_over = "", False
        while not is_over:
            page = await self.balance.lines_of(payout, after)
            after, is_over = page.next, not page.next
            await self._enter(page, tags, payout=payout, is_whole=is_over)

    async def _enter(
        self,
        page: LinePage,
        tags: frozenset[str],
        *,
        read_to: datetime | None = None,
        payout: str | None = None,
        is_whole: bool = False,
    ) -> None:
        """Enter a page, and what is known by it, in one transaction."""
        news, corrected = await new_lines(self.database, self.acquirer, page.lines, self.balance, tags=tags)
        named = {"acquirer": self.acquirer}
        async with self.lease.holding() as connection:
            metrics.ENTERED.labels(self.acquirer).inc(await enter_lines(connection, self.acquirer, news))
            if payout is not None:
                lines = [one.id for one in page.lines]
                await entering.queries.place_lines(connection, **named, payout=payout, lines=lines)
            if is_whole:
                await entering.queries.all_placed(connection, **named, payout=payout)
            if read_to is not None:
                await queries.read_up_to(connection, **named, read_to=read_to)
        await self._told(corrected)

    async def _told(self, corrected: list[Finding]) -> None:
        await keep_findings(self.lease.holding, self.acquirer, corrected, [], frozenset(), now=self.now)
