"""Whether a process's clock can be believed: what is due by a wrong one would be charged,
voided and settled too early.

The database's clock is what all processes share. One that differs from it, three readings running,
does no work that is due, nor does one that was set anew until it has been read three times since.
Where all processes agree against the database nobody can say who is
right: that is an alarm, and customers are served meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from prometheus_client import Gauge

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "clocks.sql")
log = structlog.get_logger()

MOST_AHEAD = 2.0
"""Seconds by which clocks may differ, beside half of the time that the question took."""
READINGS = 3
"""So many readings running say that a clock is off; one may have been delayed on its way."""
EVERY = 5.0
LATELY = timedelta(seconds=30)
"""What another process read is of use for so long."""

AHEAD = Gauge(
    "paydesk_clock_ahead_seconds",
    "How far this process's clock is ahead of the database's; negative: behind",
    multiprocess_mode="liveall",
)

ALL = noted("all processes")
"""What an alarm is about where every process differs from the database alike."""


@dataclass(frozen=True, slots=True)
class _Other:
    """How far another process's clock was ahead lately, in seconds."""

    ahead_seconds: float


@dataclass(frozen=True, slots=True)
class ClockReading:
    """How far a clock was ahead of the database's, in seconds, and how far it may be,
    by how long the answer took.
    """

    ahead: float
    most: float

    @property
    def off(self) -> bool:
        """Whether the difference is more than the way to the database explains."""
        return abs(self.ahead) > self.most


class ClockWatch:
    """Compares this process's clock with the database's; `process` names it, `now` is its clock."""

    def __init__(self, database: Database, process: str, *, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._name = f"{process} {socket.gethostname()[:60]} {os.getpid()} {secrets.token_hex(2)}"
        self._subject = noted("clock of %(host)s", host=socket.gethostname()[:60])
        self._now = now
        self._readings: deque[ClockReading] = deque(maxlen=READINGS)
        self._read_at = now(), time.monotonic()
        self._alarmed: str | None = None
        self._is_settled = False
        self.all_agree = False
        """Whether all processes that were heard of lately differ from the database alike."""

    @property
    def is_off(self) -> bool:
        """Whether this clock differs from the database's, three readings running."""
        return len(self._readings) == READINGS and all(reading.off for reading in self._readings)

    @property
    def holds_due_work(self) -> bool:
        """Whether nothing that is due may be done: the clock is off,
        or has not been read often enough yet, since it was set if it was.
        """
        return len(self._readings) < READINGS or self.is_off or self._was_set

    @property
    def _was_set(self) -> bool:
        """Whether it has moved otherwise than time has passed since it was read last."""
        then, began = self._read_at
        passed = time.monotonic() - began
        return abs((self._now() - then).total_seconds() - passed) > MOST_AHEAD

    @property
    def serves_customers(self) -> bool:
        """Whether customers are served: not by a process whose clock alone is off."""
        return not self.is_off or self.all_agree

    async def run(self, stop: asyncio.Event) -> None:
        """Read the clocks until told to stop."""
        await repeat("clock", self.look, stop, rest=EVERY)

    async def look(self) -> bool:
        """Read both clocks once, and say so where they differ;
        true while there are too few readings to judge by.
        """
        if self._was_set:
            self._readings.clear()
        reading, database_now = await self._read()
        self._readings.append(reading)
        AHEAD.set(reading.ahead)
        await queries.say_reading(self._database, process=self._name, ahead_seconds=reading.ahead)
        if self.is_off:
            await self._tell(reading, database_now)
        elif len(self._readings) == READINGS and not reading.off:
            await self._settle(database_now)
        return len(self._readings) < READINGS

    async def _read(self) -> tuple[ClockReading, datetime]:
        """The difference, and the database's time."""
        asked, began = self._now(), time.monotonic()
        database_now: datetime = await queries.database_time(self._database)
        self._read_at = asked, began
        half = (time.monotonic() - began) / 2
        ahead = (asked - database_now).total_seconds() + half
        return ClockReading(ahead, MOST_AHEAD + half), database_now

    async def _tell(self, reading: ClockReading, database_now: datetime) -> None:
        """Raise the alarm, once for what is wrong: of this clock alone, or of the database's."""
        rows = queries.readings_of_others(self._database, process=self._name, lately=LATELY)
        others = [other.ahead_seconds for other in await records_of(_Other, rows)]
        self.all_agree = all(abs(other) > MOST_AHEAD and abs(reading.ahead - other) <= reading.most for other in others)
        subject = ALL if self.all_agree else self._subject
        if subject == self._alarmed:
            return
        seconds = f"{abs(reading.ahead):.1f}"
        how = (
            noted("%(seconds)s s ahead of the database's clock", seconds=seconds)
            if reading.ahead > 0
            else noted("%(seconds)s s behind the database's clock", seconds=seconds)
        )
        reason = (
            noted(
                "the clocks of all processes are %(how)s: one or the other is wrong. Nothing that is due is done "
                "until they agree; customers are served",
                how=how,
            )
            if self.all_agree
            else noted(
                "its clock is %(how)s, the others' are not: it does nothing that is due. Set the machine's time (NTP)",
                how=how,
            )
        )
        await raise_alarms(
            self._database,
            [Alarm(AlarmKind.clock_off, subject, reason, details={"process": self._name})],
            now=database_now,
        )
        log.error("this clock is off; nothing that is due is done", ahead_seconds=round(reading.ahead, 1))
        self._alarmed, self._is_settled = subject, False

    async def _settle(self, database_now: datetime) -> None:
        """Settle the alarms of this clock, also those of a process before this one."""
        if self._is_settled:
            return
        by = noted("the clocks agree again")
        await settle_alarms(
            self._database, AlarmKind.clock_off, [self._subject, ALL], shop=None, by=by, now=database_now
        )
        await queries.forget_readings(self._database, older_than=LATELY)
        if self._alarmed is not None:
            log.warning("this clock is right again; what is due is done")
        self._alarmed, self._is_settled = None, True
