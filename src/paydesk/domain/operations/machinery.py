"""The machinery as an operator watches it: queues, workers, database, the acquirers' health,
and the operators' log.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.database.partitions import LOGS
from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action
from paydesk.domain.operations import metrics
from paydesk.domain.pingbacks import metrics as pingback_metrics
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "machinery.sql")
log = structlog.get_logger()

PULSE = timedelta(seconds=5)
"""How often a worker says that it is alive."""
SILENT = timedelta(seconds=20)
"""A worker that has not been heard of for so long is not alive any more."""
QUEUES = ("pingbacks", "renewals", "changes", "outcomes", "movements", "shipping", "settlements", "mails")
"""What background work there is, in the order in which it is shown."""
FEW = 10_000
"""So many in all are counted whenever somebody asks."""
_SLOW = timedelta(seconds=2)
"""What took longer is counted like many."""
_REST_PER_ROW, _REST_SHARE = timedelta(microseconds=60), 20
"""For how long many are not counted again, for each that was due, and how many times as long as
that took: to count one takes some three microseconds, so a twentieth of a core counts.
"""
_LATELY = timedelta(minutes=5)
"""Pages show what workers counted, where that is much; without a worker, they count that often."""
_FORGOTTEN = timedelta(hours=1)
_PERSON = re.compile("person ([0-9]{1,16})")


@dataclass(frozen=True, slots=True)
class Queue:
    """What has to be done by now: how many, since when the oldest waits (UTC),
    and how many are in a worker's hands; as it was counted at `counted_at` (UTC).
    """

    name: str
    due: int
    oldest_at: datetime | None
    in_hand: int
    counted_at: datetime

    @property
    def age(self) -> timedelta:
        """For how long the oldest had waited when it was counted."""
        return self.counted_at - self.oldest_at if self.oldest_at else timedelta(0)


@dataclass(frozen=True, slots=True)
class Log:
    """A log's monthly partitions, the first and the last as `202611` (empty for none),
    and its size in bytes.
    """

    name: str
    months: int
    first: str
    last: str
    bytes: int


@dataclass(frozen=True, slots=True)
class DatabaseNow:
    """The database: its size in bytes, its connections, since when its oldest transaction is open
    (None: none is).
    """

    bytes: int
    connections: int
    oldest_transaction: datetime | None


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that does the background work, as it was last heard of (UTC)."""

    name: str
    started_at: datetime
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class AcquirerHealth:
    """What became of an acquirer's attempts of a period;
    `unanswered` are those whose first answer never came.

    Times are real ones, UTC.
    """

    acquirer: str
    attempts: int
    approved: int
    declined: int
    challenged: int
    ended: int
    unknown: int
    unanswered: int
    errors: int
    last_approval: datetime | None
    last_trouble: datetime | None

    @property
    def failing(self) -> bool:
        """Whether at least one of ten attempts got no answer or an error."""
        return (self.unanswered + self.errors) * 10 >= max(self.attempts, 1)


@dataclass(frozen=True, slots=True)
class Act:
    """A line of the log: an operator's (or, without a person, the command line's) act at a merchant
    (0: at none).
    """

    merchant_id: int
    merchant_name: str
    id: int
    at: datetime
    person_id: int | None
    name: str
    client_address: str
    action: Action
    subject: str
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Operator:
    """A person who may do operators' acts."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class ActFilter:
    """Which acts: of a person, of the command line alone, of one kind, at one merchant;
    None for any.
    """

    person_id: int | None = None
    by_command: bool = False
    action: Action | None = None
    merchant_id: int | None = None


async def queues(database: Database, *, now: datetime) -> list[Queue]:
    """Every queue with what it has to do by `now` (real time, UTC), counted now; where much is due,
    as workers counted it lately. Where nothing could be counted yet it has none.
    """
    return await _queues(database, now=now, at_least=_LATELY)


async def _queues(database: Database, *, now: datetime, at_least: timedelta) -> list[Queue]:
    """Every queue, counted if it is time for that: where much is due, not before `at_least`."""
    rests = {"per_row": _REST_PER_ROW, "share": _REST_SHARE, "at_least": at_least}
    try:
        if await queries.begin_count(database, few=FEW, slow=_SLOW, **rests):
            await queries.count_queues(database, now=now)
    except TimeoutError:
        log.warning("queues_not_counted", now="show what was counted last")
    found = await records_of(Queue, queries.queue_depths(database))
    return sorted(found, key=lambda one: QUEUES.index(one.name))


async def watch_queues(database: Database, *, now: datetime) -> None:
    """Measure what each queue has to do by `now` (real time, UTC),
    and how many subscriptions fail.
    """
    for queue in await _queues(database, now=now, at_least=timedelta(0)):
        age = queue.age.total_seconds()
        metrics.DUE.labels(queue.name).set(queue.due)
        metrics.OLDEST.labels(queue.name).set(age)
        metrics.IN_HAND.labels(queue.name).set(queue.in_hand)
        if queue.name == "pingbacks":
            pingback_metrics.BACKLOG.set(queue.due)
            pingback_metrics.OLDEST.set(age)
    metrics.FAILING.set(await queries.subscriptions_failing(database))


async def logs(database: Database) -> list[Log]:
    """The append-only logs and their partitions."""
    return await records_of(Log, queries.logs(database, names=list(LOGS)))


async def database_now(database: Database) -> DatabaseNow:
    """How the database stands."""
    return record_of(DatabaseNow, await queries.database_now(database))


async def workers(database: Database) -> list[Worker]:
    """The workers heard of in the last hour."""
    return await records_of(Worker, queries.workers(database))


async def run_pulse(database: Database, stop: asyncio.Event) -> None:
    """Say every few seconds that this worker is alive, until told to stop; then say goodbye."""
    name = f"{socket.gethostname()[:60]} {os.getpid()} {secrets.token_hex(2)}"
    started_at = utc_now()

    async def say_alive() -> None:
        now = utc_now()
        await queries.say_alive(database, name=name, started_at=started_at, now=now)
        await queries.forget_workers(database, before=now - _FORGOTTEN)

    await repeat("pulse", say_alive, stop, rest=PULSE.total_seconds())
    try:
        await queries.say_goodbye(database, name=name)
    except Exception as error:
        log.warning("this worker could not say goodbye", why=f"{type(error).__name__}: {error}")


async def acquirer_health(database: Database, *, since: datetime) -> dict[str, AcquirerHealth]:
    """What became of the attempts that began since a time (real, UTC), by acquirer."""
    found = await records_of(AcquirerHealth, queries.acquirer_health(database, since=since))
    return {health.acquirer: health for health in found}


async def list_acts(database: Database, page: Page, wanted: ActFilter) -> list[Act]:
    """A page of what operators and the command line did, newest first."""
    rows = queries.list_acts(
        database,
        person_id=wanted.person_id,
        action=wanted.action and str(wanted.action),
        merchant_id=wanted.merchant_id,
        by_command=wanted.by_command,
        **page.parameters(),
    )
    return await records_of(Act, rows)


async def operators(database: Database) -> list[Operator]:
    """The operators, by name."""
    return await records_of(Operator, queries.operators(database))


async def people_by_words(database: Database, said: Iterable[str]) -> dict[str, str]:
    """The names of people who are written down as `person 5`, by that; others are left out."""
    ids = {int(one[1]) for who in said if (one := _PERSON.fullmatch(who))}
    rows = await records_of(Operator, queries.people_named(database, ids=sorted(ids))) if ids else []
    return {f"person {row.id}": row.name for row in rows}


async def profiles_waiting(database: Database, *, most: int) -> int:
    """How many business profiles wait for an operator's word, counted up to `most`."""
    return int(await queries.profiles_waiting(database, most=most))
