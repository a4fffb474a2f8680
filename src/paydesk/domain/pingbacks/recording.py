"""Writing down what came of attempts: many with one statement,
and none is lost while the database is away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from paydesk.adapters.outbound import Answer
from paydesk.core import card_numbers
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import set_aside, together
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks import metrics
from paydesk.domain.pingbacks.schedule import MOST_ATTEMPTS, RESEND_INTERVAL
from paydesk.domain.pingbacks.stamping import masked
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.loops.repeating import repeat

_MOST_AT_ONCE = 500
_LONGEST_PAUSE = 1.0
_GATHERING_PAUSE = 0.01
_LONGEST_GATHERING_PAUSE = 0.1
_PAUSE_PER_RECORDING = 2.0
"""Seconds of gathering for a second that the database took: the busier it is, the more at once."""

queries = load_statements(__package__ or "")
_as_json = msgspec.json.Encoder().encode

Name = tuple[int, bool, int]
"""A pingback: its merchant's id, live or test, its own id."""


class Sending(msgspec.Struct, frozen=True):
    """A request that was made at `at` (the merchant's time, UTC) and what came back."""

    name: Name
    url: str
    at: datetime
    body: bytes
    answer: Answer


@dataclass(frozen=True, slots=True)
class _Moved:
    """How many pingbacks went into a state."""

    state: PingbackState
    pingbacks: int


def is_acknowledged(answer: Answer) -> bool:
    """Whether the merchant has it: 200 and a body that is `ok` in any writing
    (interface.md §4.5).
    """
    return (
        answer.status == 200 and answer.error is None and answer.complete and answer.body_start.strip().lower() == b"ok"
    )


class Recorder:
    """Takes attempts and records them soon; `recorded` is told the names of those that are
    in the database.
    """

    def __init__(self, database: Database, recorded: Callable[[Sequence[Name]], None]) -> None:
        self._database = database
        self._recorded = recorded
        self._attempts: list[Sending] = []
        self._some = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._is_in_doubt = False

    def __len__(self) -> int:
        """How many attempts wait to be recorded."""
        return len(self._attempts)

    def add(self, attempt: Sending) -> None:
        """Have an attempt recorded."""
        self._attempts.append(attempt)
        self._some.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Record what comes in, until told to stop; waits for the database as long as it takes."""
        await repeat("recording of pingbacks", self._gather, stop, rest=_LONGEST_PAUSE, wake=self._some)

    async def _gather(self) -> None:
        """Record all that is there, and let some more come together."""
        if self._attempts:
            began = time.monotonic()
            await self.flush()
            took = time.monotonic() - began
            await asyncio.sleep(min(max(took * _PAUSE_PER_RECORDING, _GATHERING_PAUSE), _LONGEST_GATHERING_PAUSE))

    async def flush(self) -> None:
        """Record all that is there.

        Raises: what the database raises when it is away; what was not recorded stays.
        """
        async with self._flushing:
            while self._attempts:
                batch = self._attempts[:_MOST_AT_ONCE]
                try:
                    await self._record_all(batch)
                except BaseException:
                    # It may be in the database all the same, and is the head of the next batch.
                    self._is_in_doubt = True
                    raise
                self._is_in_doubt = False
                del self._attempts[: len(batch)]
                self._recorded([attempt.name for attempt in batch])

    async def _record_all(self, batch: Sequence[Sending]) -> None:
        """Record a batch, and set aside what can't be recorded."""
        worked = await together(batch, self._record)
        await postpone(self._database, [attempt.name for attempt, _ in worked.failed])
        await set_aside(self._database, worked, _named, doing=noted("an attempt can't be recorded"))

    async def _record(self, batch: Sequence[Sending]) -> Sequence[Sending]:
        """Record a batch with one statement."""
        moved = queries.record(
            self._database,
            merchant_ids=[attempt.name[0] for attempt in batch],
            lives=[attempt.name[1] for attempt in batch],
            ids=[attempt.name[2] for attempt in batch],
            ats=[attempt.at for attempt in batch],
            urls=[attempt.url for attempt in batch],
            request_headers=[_as_json(masked(attempt.answer.sent)).decode() for attempt in batch],
            request_bodies=[attempt.body.decode() for attempt in batch],
            statuses=[attempt.answer.status for attempt in batch],
            response_bodies=[storable(attempt.answer.body_start) for attempt in batch],
            errors=[storable(attempt.answer.error.encode()) if attempt.answer.error else "" for attempt in batch],
            durations_ms=[round(attempt.answer.duration * 1000) for attempt in batch],
            acknowledgements=[is_acknowledged(attempt.answer) for attempt in batch],
            most_attempts=MOST_ATTEMPTS,
            resend_interval=RESEND_INTERVAL,
            in_doubt=self._is_in_doubt,
        )
        for outcome in await records_of(_Moved, moved):
            metrics.ATTEMPTS.labels(outcome.state).inc(outcome.pingbacks)
        for attempt in batch:
            metrics.DURATION.observe(attempt.answer.duration)
        return batch


def _named(attempt: Sending) -> tuple[Shop, str]:
    return subject_of(attempt.name)


def subject_of(name: Name) -> tuple[Shop, str]:
    """What a pingback is called in the operator's list."""
    return Shop(name[0], name[1]), f"pingback {name[2]}"


async def postpone(database: Database, names: Sequence[Name]) -> None:
    """Have pingbacks that could not be stamped or recorded sent later."""
    if names:
        merchant_ids, lives, ids = zip(*names, strict=True)
        await queries.postpone(database, merchant_ids=merchant_ids, lives=lives, ids=ids, pause=RESEND_INTERVAL)


def storable(answer: bytes) -> str:
    """Text that may rest: without card numbers; what is not UTF-8, and NUL,
    becomes the replacement character.
    """
    return card_numbers.masked(answer.decode("utf-8", "replace")).replace("\x00", "\ufffd")
