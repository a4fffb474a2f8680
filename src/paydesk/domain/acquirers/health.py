"""How accounts at acquirers answer, and which of them are out of turn.

Each process counts its own calls in memory, adds them to one small table every two seconds, and
reads there which accounts are out of turn: so all processes judge by the same figures, and no
payment waits for a query. A process that dies loses two seconds of counting, and no money.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

import structlog

from paydesk.adapters.acquirers.interface import Acquirer, AcquirerRefused, NothingBegun, OutcomeUnknown, Undecided
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted, noted_as
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.acquirers import metrics
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "health.sql")
log = structlog.get_logger()

WINDOW: Final = timedelta(minutes=5)
"""The time whose calls decide whether an account is out of turn."""
LEAST: Final = 5
"""Fewer calls than this say nothing."""
SHARE: Final = 50
"""The per cent of calls without an answer, or with one that came too slowly, that take it out."""
SLOW: Final = 5.0
"""Seconds after which an answer is too slow: its customer has waited too long."""
FIRST_REST: Final = timedelta(seconds=30)
"""For how long an account is left alone before it is asked whether it answers again."""
LONGEST_REST: Final = timedelta(minutes=10)
"""The longest such time; it doubles with each return that lasted less than SOON."""
SOON: Final = timedelta(minutes=15)
"""An account that fails again so soon after a probe answers to probes alone."""
PROBE_SECONDS: Final = 3.0
"""How quickly a probe must be answered."""
EVERY: Final = 2.0
"""Seconds between two looks of a process."""

STEPS: Final = (100, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000, 8000, 12000, 20000)
"""Milliseconds, the ends of the steps in which answer times are counted."""
SLOW_ANSWERS: Final = "slow"
_FAILURES: Final = ("unknown", "unreached", SLOW_ANSWERS)
_KEPT_FINE: Final = timedelta(hours=3)
_FOLD_EVERY: Final = 300.0
_LATELY: Final = timedelta(minutes=1)

_Answer = TypeVar("_Answer")


class Kind(StrEnum):
    """Kinds of calls, judged each by itself, so that many which go well don't hide some that fail;
    the word begins what is counted of them.
    """

    CUSTOMERS = ""
    """Paying, and making a page to pay on: a customer waits."""
    CHARGES = "charge "
    """Renewals, and charges that a shop makes without the customer."""
    MOVEMENTS = "movement "
    """Refunds, captures, voids and what is undone."""
    QUESTIONS = "question "
    """Looks at a purchase, a page or a movement, and ending what is open."""

    @property
    def words(self) -> str:
        """What its calls are called where it is said why an account is out of turn."""
        return _WORDS[self]


_WORDS: Final = {
    Kind.CUSTOMERS: noted("calls that customers waited for"),
    Kind.CHARGES: noted("charges without the customer"),
    Kind.MOVEMENTS: noted("refunds, captures and voids"),
    Kind.QUESTIONS: noted("look-ups"),
}
WHY_OUT: Final = noted_as(
    "%(asked)s %(words)s in the last minutes: %(failed)s without an answer, %(slow)s answered too slowly"
)
"""Why an account is out of turn, as health.sql puts it together."""


@dataclass(frozen=True, slots=True)
class OutOfTurn:
    """An account that is asked only where no other may be, since when and why; times are UTC."""

    account: str
    out_since: datetime
    why: str


@dataclass(frozen=True, slots=True)
class _Judged:
    account: str
    why: str


@dataclass(frozen=True, slots=True)
class _Claimed:
    account: str


class Health:
    """What a process has counted and not told yet, and which accounts are out of turn."""

    def __init__(self) -> None:
        """Begin with all in turn."""
        self.out: dict[str, str] = {}
        self._counted: Counter[tuple[str, str]] = Counter()
        self._folded_at = 0.0

    def count(self, account: str, *whats: str) -> None:
        """Take note of what a call, or a choice, came to."""
        self._counted.update((account, what) for what in whats)

    async def measured(self, account: str, call: Awaitable[_Answer]) -> _Answer:
        """Make a call that a customer waits for, and take note of how it was answered, and when.

        Raises: what the call does.
        """
        began = time.monotonic()
        try:
            answer = await self.heard(account, Kind.CUSTOMERS, call)
        except AcquirerRefused:
            self._answered(account, time.monotonic() - began)
            raise
        self._answered(account, time.monotonic() - began)
        return answer

    async def heard(self, account: str, kind: Kind, call: Awaitable[_Answer]) -> _Answer:
        """Make a call, and take note of whether it was answered. That nothing is decided yet is an
        answer to whoever can wait, and a customer can't.

        Raises: what the call does.
        """
        failure = ""
        try:
            return await call
        except NothingBegun:
            failure = "unreached"
            raise
        except OutcomeUnknown as error:
            failure = "unknown" if kind is Kind.CUSTOMERS or not isinstance(error, Undecided) else ""
            raise
        finally:
            self.count(account, f"{kind}asked", *([f"{kind}{failure}"] if failure else []))

    def _answered(self, account: str, seconds: float) -> None:
        """Count how long a customer waited for an answer."""
        within = next((f"ms <= {step}" for step in STEPS if seconds * 1000 <= step), "ms > all")
        self.count(account, within, *([SLOW_ANSWERS] if seconds >= SLOW else []))

    async def look(self, database: Database) -> None:
        """Tell what was counted, take out of turn what fails, and see what is.

        Raises: one of AWAY.
        """
        counted, self._counted = self._counted, Counter()
        try:
            await self._tell(database, counted)
        except BaseException:
            self._counted += counted
            raise
        if any(what.endswith(_FAILURES) for _, what in counted):
            await self._judge(database)
        found = await list_out_of_turn(database)
        for account in {*self.out, *(one.account for one in found)}:
            metrics.OUT.labels(account).set(any(one.account == account for one in found))
        self.out = {one.account: one.why for one in found}

    async def probe(self, database: Database, known: Mapping[str, Acquirer]) -> None:
        """Ask the accounts that have rested whether they answer, and bring back those that do.
        Moves no money.
        """
        if not self.out:
            return
        claimed = await records_of(_Claimed, queries.claim_probe(database, names=sorted({*self.out} & {*known})))
        answered = await asyncio.gather(*(_answers(known[one.account]) for one in claimed))
        for one, does in zip(claimed, answered, strict=True):
            if does and await queries.bring_back(database, account=one.account) is not None:
                log.info("an account takes payments again", account=one.account)
                subjects, now = [f"account {one.account}"], utc_now()
                await settle_alarms(
                    database, AlarmKind.acquirer_out, subjects, shop=None, by=noted("a probe was answered"), now=now
                )

    async def run(self, database: Database, known: Mapping[str, Acquirer], stop: asyncio.Event) -> None:
        """Look again and again, until told to stop."""

        async def turn() -> None:
            await self.look(database)
            await self.probe(database, known)
            if time.monotonic() - self._folded_at > _FOLD_EVERY:
                self._folded_at = time.monotonic()
                await queries.fold_counts(database, before=utc_now() - _KEPT_FINE)

        await repeat("acquirer health", turn, stop, rest=EVERY)
        with suppress(Exception):
            await self.look(database)

    async def _tell(self, database: Database, counted: Counter[tuple[str, str]]) -> None:
        if counted:
            keys = sorted(counted)
            await queries.add_counts(
                database,
                accounts=[account for account, _ in keys],
                whats=[what for _, what in keys],
                counts=[counted[key] for key in keys],
            )

    async def _judge(self, database: Database) -> None:
        """Take accounts out of turn that fail, with an alarm for each."""
        rows = queries.take_out(
            database,
            window=WINDOW,
            least=LEAST,
            share=SHARE,
            kinds=[*Kind],
            words=[kind.words for kind in Kind],
            first_rest=FIRST_REST,
            longest_rest=LONGEST_REST,
            soon=SOON,
        )
        judged = await records_of(_Judged, rows)
        alarms = [Alarm(AlarmKind.acquirer_out, noted("account %(name)s", name=one.account), one.why) for one in judged]
        await raise_alarms(database, alarms, now=utc_now())


async def list_out_of_turn(database: Database) -> list[OutOfTurn]:
    """The accounts that are out of turn."""
    return await records_of(OutOfTurn, queries.out_of_turn(database))


async def _answers(acquirer: Acquirer) -> bool:
    """Whether an acquirer lets its list be read in good time. Moves no money."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await acquirer.list_purchases(utc_now() - _LATELY, "")
    except (AcquirerRefused, OutcomeUnknown, TimeoutError):
        return False
    except Exception:
        log.exception("a probe failed", account=acquirer.name)
        return False
    return True
