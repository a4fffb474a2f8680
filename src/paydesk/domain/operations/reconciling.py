"""Comparing our books with what each acquirer's own list says:
it remembers what a database may forget.

What was forgotten is adopted. Nothing is charged or given back here. What still differs is an
alarm, which settles itself once both agree again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound, Unavailable
from paydesk.core.wording import noted
from paydesk.database.pool import AWAY
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.acquirers.leases import Lease, ReadByAnother, Reader, Unleased
from paydesk.domain.alarms.setting_aside import reason_of
from paydesk.domain.operations import clocks, metrics
from paydesk.domain.operations.differences import Reconciled
from paydesk.domain.operations.giving_back import finish_given_back, give_back
from paydesk.domain.operations.history import read
from paydesk.domain.operations.own_accounts import learn
from paydesk.domain.operations.reading_lists import ListReading
from paydesk.domain.operations.telling_differences import Telling
from paydesk.domain.payments.desk import Desk
from paydesk.loops.hanging import LONG_READING
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "reconciling.sql")
log = structlog.get_logger()

LEASE = timedelta(minutes=10)
EVERY = timedelta(hours=1)
PAUSE = 60.0
"""Seconds between two looks whether it is time to compare."""

BACK = timedelta(hours=25)
"""How far each hourly reading goes back before the last one:
purchases are captured, voided and given back later."""

SETTLED = timedelta(minutes=5)
"""What is younger is still being written down, here or there."""


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A list that is this worker's to read until then; up to `read_to` it was compared before."""

    read_to: datetime | None
    leased_until: datetime


@dataclass(frozen=True, slots=True)
class _Stand:
    """How many seconds ago an acquirer's list was compared, and how much differed."""

    acquirer: str
    age: float
    differences: int


async def run_reconciliation(desk: Desk, stop: asyncio.Event) -> None:
    """Compare with each acquirer's list every hour until told to stop;
    any number of workers share it.
    """

    async def compare() -> None:
        for name in desk.acquirers:
            await _reconcile_when_due(desk, name, now=utc_now())
        await watch(desk, now=utc_now())

    await repeat("reconciliation", compare, stop, rest=PAUSE, patience=LONG_READING)


async def _give_back(desk: Desk, reading: ListReading, *, now: datetime) -> None:
    """Give back what was paid twice, where a setting wants that; what can't be stays an alarm.
    Moves money. Raises: ReadByAnother.
    """
    for key in reading.paid_twice:
        try:
            await give_back(desk, reading.bank.name, key, actor=None, now=now, reader=reading.reader)
        except ReadByAnother:
            raise
        except (Conflict, NotFound, Unavailable) as error:
            log.warning("what was paid twice can't be given back", key=key, why=str(error))


async def _reconcile_when_due(desk: Desk, name: str, *, now: datetime) -> None:
    row = await queries.claim(desk.database, acquirer=name, lease=LEASE, every=EVERY)
    claimed = record_if_any(_Claimed, row)
    if claimed is None:
        return
    lease = Lease(desk.database, name, queries.hold, LEASE, claimed.leased_until)
    since, read_to, differences = (claimed.read_to or now) - BACK, None, None
    try:
        await learn(desk, name, within=lease.holding, now=now)
        await finish_given_back(desk, name, lease, now=now)
        found = await reconcile(desk, name, since=since, now=now, fix=desk.adopts, lease=lease)
        await lease.keep()
        read_to, differences = claimed.leased_until - LEASE - SETTLED, len(found.differences)
    except AWAY:
        raise
    except ReadByAnother as error:
        log.warning("a comparison with an acquirer's list was too slow", acquirer=name, why=str(error))
    except Exception as error:
        # An acquirer that can't be read keeps nobody from the others; its age will raise the alarm.
        log.warning("an acquirer's list can't be compared", acquirer=name, why=reason_of(error))
    finally:
        await queries.end(desk.database, acquirer=name, held=lease.held, read_to=read_to, differences=differences)


async def watch(desk: Desk, *, now: datetime) -> None:
    """Measure up to when each acquirer's list was compared, and how much differed,
    for the operator.
    """
    stands = queries.stands(desk.database, acquirers=list(desk.acquirers), now=now)
    for stand in await records_of(_Stand, stands):
        metrics.RECONCILED_AGE.labels(stand.acquirer).set(stand.age)
        metrics.RECONCILIATION.labels(stand.acquirer).set(stand.differences)


async def reconcile(
    desk: Desk,
    acquirer: str,
    *,
    since: datetime,
    now: datetime,
    settled: timedelta | None = None,
    both_ways: bool = True,
    told: Callable[[], None] = lambda: None,
    fix: bool = False,
    tells: bool = True,
    lease: Lease | None = None,
) -> Reconciled:
    """Compare what was made at an acquirer since a time with our books, both ways.

    Moves no money, but with `fix` where the desk gives back what was paid twice, and nothing is
    held. With `fix` what our books have forgotten is adopted, and only the rest differs; with
    `tells` what differs becomes an alarm, and the alarm of what agrees is settled. Not `both_ways`:
    only what the acquirer knows and we don't. `since` and `now` are real times, UTC; what is
    younger than `settled` (None: SETTLED) is still being written down; `told` is called after each
    page, and for each thing that was adopted. `lease` is that of the worker who reads the list;
    None: it is read beside any worker, for a person. Who of two began later is told by the
    database's time: theirs may be two machines'.

    Raises: Unavailable if the acquirer's list can't be read, ReadByAnother, one of AWAY.
    """
    began = await clocks.queries.database_time(desk.database)
    young = SETTLED if settled is None else settled
    reader: Reader = lease or Unleased(desk.database)
    found, telling = Reconciled(acquirer), Telling(reader, acquirer, began, tells)
    reading = ListReading(desk, desk.acquirers[acquirer], reader, since, now, young, found, telling)
    try:
        await reading.whole(told, fix=fix, both_ways=both_ways)
        if fix and desk.gives_back_paid_twice and desk.gate.is_open and not (await read(desk.database)).held_because:
            await _give_back(desk, reading, now=now)
    except (AcquirerRefused, OutcomeUnknown) as error:
        raise Unavailable(
            noted("the list of %(acquirer)s can't be read: %(error)s", acquirer=acquirer, error=error)
        ) from error
    finally:
        metrics.ADOPTED.labels(acquirer).inc(len(found.adopted))
    if tells and both_ways and lease is None:
        noting = {"since": since, "back": BACK, "read_to": began - young, "differences": len(found.differences)}
        await queries.note(desk.database, acquirer=acquirer, **noting)
    return found
