"""What waits for an operator, and how the machinery is: what the console begins with, of one cell
as it tells the others, too. Moves no money.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from paydesk.database.pool import Database
from paydesk.domain.operations.alarms import alarms_waiting
from paydesk.domain.operations.chargebacks_for_operator import chargebacks_without_evidence
from paydesk.domain.operations.machinery import SILENT, Queue, acquirer_health, profiles_waiting, queues, workers
from paydesk.domain.operations.open_outcomes import open_outcomes
from paydesk.domain.operations.payouts import payable
from paydesk.domain.payments.lookups import ALERT_AFTER

MOST: Final = 100
"""Figures count up to here, and one further."""
WORRYING: Final = timedelta(minutes=5)
"""An outcome that is open for longer than this is not one that is just late."""
LAGS: Final = timedelta(minutes=1)
"""A queue whose oldest waits for longer than this lags."""
_HEALTH: Final = timedelta(hours=1)
_PATIENCE: Final = 1.0
"""Seconds for which merchants with money available are looked for: where there are many without, a
page goes without the figure."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much waits for a hand; outcomes that nobody knows after `WORRYING`, and after a day."""

    alarms: int
    unknown: int
    unknown_for_a_day: int
    profiles: int
    disputes: int


@dataclass(frozen=True, slots=True)
class Machinery:
    """How the acquirers, the queues and the workers are just now: `failing` of the acquirers that
    were `asked`, queues that are `behind`, `due` pingbacks, workers that are `alive`.
    """

    failing: Sequence[str]
    asked: Sequence[str]
    behind: Sequence[str]
    due: int
    alive: int


async def what_waits(database: Database, *, now: datetime) -> Waiting:
    """What waits for a hand. `now` is real time, UTC."""
    late = await open_outcomes(database, begun_before=now - WORRYING, most=MOST + 1)
    return Waiting(
        alarms=await alarms_waiting(database, most=MOST + 1),
        unknown=len(late),
        unknown_for_a_day=sum(one.since < now - ALERT_AFTER for one in late),
        profiles=await profiles_waiting(database, most=MOST + 1),
        disputes=await chargebacks_without_evidence(database, most=MOST + 1),
    )


async def machinery_now(database: Database, *, now: datetime) -> Machinery:
    """How the machinery is. `now` is real time, UTC."""
    health = await acquirer_health(database, since=now - _HEALTH)
    found = await queues(database, now=now)
    return Machinery(
        failing=[name for name, one in health.items() if one.failing],
        asked=sorted(health),
        behind=[one.name for one in found if lags(one)],
        due=sum(one.due for one in found if one.name == "pingbacks"),
        alive=sum(1 for one in await workers(database) if one.seen_at >= now - SILENT),
    )


def lags(queue: Queue) -> bool:
    """Whether a queue was behind when it was counted."""
    return queue.age > LAGS


async def payouts_to_make(database: Database, *, now: datetime) -> int | None:
    """How many balances of merchants could be paid out; None where that takes too long."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return len(await payable(database, live=True, most=MOST + 1, now=now))
    except TimeoutError:
        return None
