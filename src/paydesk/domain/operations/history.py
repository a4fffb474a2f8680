"""Whether the database still knows all that it once said was committed:
each connection is asked before it works.

A worker commits a beat each second, and every process remembers the highest that it saw. A lower
one, or a server of the past, means that history went back, by a failover that lost commits or a
restore: then everything that moves money is held, at once and by the connection that noticed it.
Another server, no memory, or a start long after the last beat means that acquirers' lists are
looked through first. Numbers decide that something is lost, never a clock.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import structlog

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.records import record_if_any, record_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.operations import metrics
from paydesk.domain.operations.restoring import GAP, Begun
from paydesk.domain.payments.hold_gate import LOOKING, MoneyGate, Standing

queries = load_statements(__package__ or "", "history.sql")
log = structlog.get_logger()

BACK = timedelta(minutes=10)
"""How far before the last beat acquirers' lists are read:
clocks differ, and calls take their time."""

STOPPED = timedelta(minutes=10)
"""A start so long after the last beat looks first:
what is remembered may have been put back with the whole machine."""

GAP_OF_ARRIVAL = 1_000_000
"""How many ids of each kind are left out on another server:
more than a standby can be behind by."""

SUBJECT = "this deployment"
"""What the alarm of a hold is about."""

WENT_BACK = noted(
    "the database has forgotten what it once said was committed, by a failover that lost something, or a restore"
)
RESTORED = noted("the database was restored, and may have forgotten what acquirers did since")


@dataclass(frozen=True, slots=True, order=True)
class Beat:
    """How far history has come: beats are numbered, and an epoch begins each time
    that it went back.
    """

    epoch: int
    number: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What was seen committed: the deployment's tag, the highest beat, and the server's identifier
    and timeline.
    """

    deployment: str
    beat: Beat
    place: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a database says of itself; times are its own, UTC.

    `arrived` is the server for which ids were last raised, `whole` the one on which nothing was
    missing; `held_because` is empty if nothing is held.
    """

    deployment: str
    beat: Beat
    place: str
    arrived: str
    whole: str
    beaten_at: datetime
    judged_at: datetime | None
    held_at: datetime | None
    held_because: str
    held_since: datetime | None

    @property
    def memory(self) -> Memory:
        """What is remembered of it."""
        return Memory(self.deployment, self.beat, self.place)

    @property
    def look_since(self) -> datetime:
        """Back to when acquirers' lists have to be read for what may be forgotten here."""
        since = min(self.beaten_at, self.held_since or self.beaten_at, utc_now()) - BACK
        return max(since, self.judged_at or since)


@dataclass(frozen=True, slots=True)
class _Row:
    """A reading as the database gives it."""

    deployment: str
    epoch: int
    number: int
    place: str
    arrived: str
    whole: str
    beaten_at: datetime
    judged_at: datetime | None
    held_at: datetime | None
    held_because: str
    held_since: datetime | None


class HistoryVerdict(StrEnum):
    """What a reading says beside a memory."""

    SAME = "same"
    ELSEWHERE = "elsewhere"
    """Another server: whether something is missing, only acquirers know."""
    UNKNOWN = "unknown"
    """Nothing is remembered of this deployment on this cluster."""
    WENT_BACK = "went back"


def compare(memory: Memory | None, reading: Reading) -> HistoryVerdict:
    """What a database's word means to who remembers this (None: nothing)."""
    if memory is None or memory.deployment != reading.deployment:
        return HistoryVerdict.UNKNOWN
    if reading.beat < memory.beat:
        return HistoryVerdict.WENT_BACK
    cluster, timeline = reading.place.split("/")
    known_cluster, known_timeline = memory.place.split("/")
    if cluster != known_cluster:
        return HistoryVerdict.UNKNOWN
    if timeline < known_timeline:
        return HistoryVerdict.WENT_BACK
    return HistoryVerdict.SAME if reading.place == reading.whole else HistoryVerdict.ELSEWHERE


async def read(database: Connection) -> Reading:
    """What a database, or one connection to it, says of itself."""
    row = record_of(_Row, await queries.read_history(database))
    return Reading(
        deployment=row.deployment,
        beat=Beat(row.epoch, row.number),
        place=row.place,
        arrived=row.arrived,
        whole=row.whole,
        beaten_at=row.beaten_at,
        judged_at=row.judged_at,
        held_at=row.held_at,
        held_because=row.held_because,
        held_since=row.held_since,
    )


async def hold(
    database: Connection, *, epoch: int, above: int, because: str, since: datetime | None, gap: int = GAP
) -> Begun | None:
    """Hold all that moves money, begin an epoch and raise all ids, unless somebody else did so
    in this `epoch`.

    The new epoch is higher than `above`, too; acquirers' lists will be read back to `since`, or to
    before the last beat. Moves no money. Returns what began; None if somebody else was faster.
    """
    row = await queries.hold(database, epoch=epoch, above=above, because=because, since=since, gap=gap)
    begun = record_if_any(Begun, row)
    if begun is not None:
        log.error("everything that moves money is held", why=because, epoch=begun.epoch)
        why = noted(
            "%(because)s. Nothing that moves money is begun until acquirers' lists and our books agree", because=because
        )
        await raise_alarms(database, [Alarm(AlarmKind.held, SUBJECT, why)], now=utc_now())
    return begun


class History:
    """What this process remembers of the database;
    it opens and shuts the gate of everything that moves money.
    """

    def __init__(self, memory: Memory | None = None) -> None:
        self.gate = MoneyGate(Standing.LOOKING)
        self.memory = memory
        self.is_looked_through = memory is not None
        """Whether acquirers' lists were looked through, or what is remembered makes
        that needless."""
        self._is_first = True
        self.changed = asyncio.Event()
        """Set when somebody has to look."""

    async def meet(self, connection: Connection) -> None:
        """Compare a new connection's database with what is remembered,
        before the connection is given to work.

        Raises: one of AWAY.
        """
        reading, verdict = await self.ask(connection)
        if reading.arrived != reading.place:
            await queries.arrive(connection, gap=GAP_OF_ARRIVAL)
        if verdict is HistoryVerdict.WENT_BACK:
            await self._hold(connection, reading)
            await self.ask(connection)

    async def ask(self, database: Connection) -> tuple[Reading, HistoryVerdict]:
        """Read how the database stands, and take it in: shut the gate, or open it.
        Hold it, too, if it went back.
        """
        before = self.memory
        reading = await read(database)
        verdict = compare(before, reading)
        is_stale = self.memory != before and self.memory is not None and reading.beat <= self.memory.beat
        if not is_stale:
            self._take(reading, verdict)
        return reading, verdict

    async def refresh(self, database: Connection) -> Reading:
        """Read how the database stands, as each process does about once a second."""
        reading, verdict = await self.ask(database)
        if verdict is HistoryVerdict.WENT_BACK:
            # A pooler may have led an old connection to another server.
            await self._hold(database, reading)
            reading, _ = await self.ask(database)
        return reading

    def looked_through(self, reading: Reading) -> None:
        """Nothing was missing on that server: it is what is remembered."""
        self.is_looked_through = True
        self.memory = reading.memory

    async def _hold(self, database: Connection, reading: Reading) -> None:
        above = self.memory.beat.epoch if self.memory else 0
        await hold(database, epoch=reading.beat.epoch, above=above, because=WENT_BACK, since=None)

    def _take(self, reading: Reading, verdict: HistoryVerdict) -> None:
        """Remember what was read, unless it went back, and open or shut the gate by it."""
        was_stopped = self._is_first and utc_now() - reading.beaten_at > STOPPED
        self._is_first = False
        if verdict is HistoryVerdict.UNKNOWN or was_stopped:
            self.is_looked_through = False
        if verdict is HistoryVerdict.WENT_BACK:
            self._say(Standing.HELD, WENT_BACK)
            return
        self.memory = reading.memory
        if reading.held_because:
            self.is_looked_through = True
            self._say(Standing.HELD, reading.held_because)
        elif reading.place != reading.whole or not self.is_looked_through:
            self._say(Standing.LOOKING, LOOKING)
        else:
            self._say(Standing.OPEN)

    def _say(self, standing: Standing, why: str = "") -> None:
        if standing is not self.gate.standing:
            self.changed.set()
        self.gate.say(standing, why)
        metrics.HELD.set(standing is Standing.HELD)
