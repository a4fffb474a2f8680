"""The hold: who watches for it, what ends it, and the beat by which it is noticed
that history went back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, Unavailable
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.statements import Connection
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.acquirers.accounts import not_here
from paydesk.domain.acquirers.opening import OpenAcquirers
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.operations.differences import Difference, DifferenceKind
from paydesk.domain.operations.history import RESTORED, SUBJECT, History, Reading, hold, queries, read
from paydesk.domain.operations.memory_file import remember
from paydesk.domain.operations.reconciling import reconcile
from paydesk.domain.operations.remembered_accounts import AccountsMemory, accounts_file, missed_accounts
from paydesk.domain.operations.restoring import Begun
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hold_gate import Standing
from paydesk.loops.hanging import LONG_READING
from paydesk.loops.repeating import repeat

log = structlog.get_logger()

EVERY = 1.0
"""Seconds between two beats, and between two looks at the database."""

QUIET = timedelta(seconds=3)
"""After so long without a worker's beat, others beat:
what nobody remembers can't be seen to be lost."""

SOON = 0.2
"""Seconds until the next look while somebody else reads acquirers' lists."""

LEASE = timedelta(seconds=20)
PATIENCE = 10.0
"""Seconds for which what differs may still be written down;
what we don't have at all was forgotten."""

UNREADABLE = 60.0
"""Seconds for which an acquirer's list may be out of reach, before that is a hold."""

COMPARED_EVERY = 60.0
"""Seconds between two comparisons while something is held."""


async def beat(database: Database, history: History, stop: asyncio.Event, *, after: timedelta) -> None:
    """Let history go on, once a second, unless somebody else did so less than `after` ago,
    until told to stop.
    """

    async def once() -> None:
        if history.gate.standing is not Standing.LOOKING:
            await queries.beat(database, rest=after)

    await repeat("beat", once, stop, rest=EVERY)


async def watch_history(desk: Desk, history: History, file: Path | None, stop: asyncio.Event) -> None:
    """Look each second whether the database still knows what it knew, remember it,
    and look through acquirers' lists.

    Until told to stop. `file` is where the next process finds what was remembered.
    """
    look, accounts = _Look(desk, history), AccountsMemory(file and accounts_file(file.parent))

    async def turn() -> bool:
        history.changed.clear()
        reading = await history.refresh(desk.database)
        if await accounts.turn(desk.database, reading, is_live=desk.live_acquirer is not None):
            reading = await history.refresh(desk.database)
        if history.gate.standing is Standing.LOOKING:
            return await look.turn(reading)
        if file is not None and history.memory is not None:
            await asyncio.to_thread(remember, file, history.memory)
        return False

    await repeat("history", turn, stop, rest=EVERY, wake=history.changed, patience=LONG_READING)


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why money may not be begun yet, in words, and the seconds for which that may pass."""

    why: str
    patience: float = 0.0


class _Look:
    """Looks through acquirers' lists for what this database does not know,
    before anything is begun.
    """

    def __init__(self, desk: Desk, history: History) -> None:
        self._desk = desk
        self._history = history
        self._began: float | None = None

    async def turn(self, reading: Reading) -> bool:
        """Look once, unless another process does;
        returns true, since it is looked at again soon.
        """
        is_elsewhere = reading.place != reading.whole
        if is_elsewhere and not await queries.claim_look(self._desk.database, lease=LEASE):
            await asyncio.sleep(SOON)
            return True
        try:
            await self._judge(reading)
        finally:
            if is_elsewhere:
                await queries.release_look(self._desk.database)
        return True

    async def _judge(self, reading: Reading) -> None:
        """Open the gate if nothing is missing; hold what moves money if something still is after
        some seconds.
        """
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        problem = await self._problem(reading)
        if problem is None:
            await queries.found_whole(self._desk.database, place=reading.place)
            self._history.looked_through(reading)
            # A first start is no news.
            if reading.whole not in ("", reading.place):
                log.info("nothing is missing on this server", place=reading.place, back_to=str(reading.look_since))
            self._began = None
        elif now - self._began >= problem.patience:
            await hold(self._desk.database, epoch=reading.beat.epoch, above=0, because=problem.why, since=None)
            self._began = None
        else:
            log.warning("nothing that moves money is begun yet", why=problem.why)
            await asyncio.sleep(EVERY)

    async def _problem(self, reading: Reading) -> _Problem | None:
        """What keeps money from being begun; None if nothing is missing here."""
        try:
            forgotten = await _compare(self._desk, reading.look_since, is_held=False)
        except Unavailable as error:
            return _Problem(error.message, UNREADABLE)
        if not forgotten:
            return None
        # Its intent was committed before it was asked for: what we don't have was forgotten.
        is_certain = any(one.kind is DifferenceKind.UNKNOWN_HERE for one in forgotten)
        return _Problem(_sum(forgotten), 0.0 if is_certain else PATIENCE)


async def _compare(desk: Desk, since: datetime, *, is_held: bool) -> list[Difference]:
    """What differs from the lists of all acquirers;
    a test acquirer that is out of reach holds no live payments.

    Nothing new is begun meanwhile, so what was just made counts too. What is held is compared both
    ways, adopted where that is wished, and told; before that only what we have forgotten counts.

    Raises: Unavailable if a list can't be read.
    """
    differing = []
    elsewhere = await not_here(desk.database)
    await _require_all_open(desk, elsewhere)
    # While it is held nothing is given back, either: what was paid twice is for an operator then.
    careful = replace(desk, gives_back_paid_twice=False)
    for name in desk.acquirers:
        if name in elsewhere:
            continue
        try:
            found = await reconcile(
                careful,
                name,
                since=since,
                now=utc_now(),
                settled=timedelta(0),
                both_ways=is_held,
                fix=is_held and desk.adopts,
                tells=is_held,
            )
            differing += found.differences
        except Unavailable as error:
            if not desk.is_for_tests(name) or desk.live_acquirer is None:
                raise
            log.warning("the test acquirer's list can't be read", why=error.message)
    return differing


async def _require_all_open(desk: Desk, elsewhere: Collection[str]) -> None:
    """Make sure that every account that served can be asked, but for those of other cells: what was
    taken there could be taken once more somewhere else. Raises: Unavailable.
    """
    is_live = desk.live_acquirer is not None
    for lost in await missed_accounts(desk.database, is_live=is_live):
        raise Unavailable(lost.why)
    if isinstance(desk.acquirers, OpenAcquirers):
        unopened = await desk.acquirers.unopened(desk.database)
        for name in [one for one in unopened if one not in elsewhere] if is_live else ():
            raise Unavailable(
                noted("the list of %(name)s can't be read: this process can't open that account", name=name)
            )


def _sum(differing: Sequence[Difference]) -> str:
    """What differs, in one line."""
    return noted(
        "acquirers' lists and our books differ in %(len)s places, the first: %(reason)s",
        len=len(differing),
        reason=differing[0].reason,
    )


async def tend_hold(desk: Desk, stop: asyncio.Event) -> None:
    """While something is held, compare with acquirers' lists, and lift the hold once they agree,
    until told to stop.
    """
    await repeat("hold", _Tending(desk).turn, stop, rest=EVERY, patience=LONG_READING)


class _Tending:
    """Compares at once when something is held, and every minute after;
    any number of workers share it.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._due = 0.0

    async def turn(self) -> None:
        """Compare if it is time to. Raises: Unavailable if a list can't be read."""
        now = asyncio.get_running_loop().time()
        if self._desk.gate.standing is not Standing.HELD:
            # Whoever watches history has just read that nothing is held.
            self._due = now
            return
        reading = await read(self._desk.database)
        if not reading.held_because:
            self._due = now
        elif now >= self._due and await queries.claim_look(self._desk.database, lease=LEASE):
            self._due = now + COMPARED_EVERY
            await lift_if_whole(self._desk, reading)


async def lift_if_whole(desk: Desk, reading: Reading) -> list[Difference]:
    """Compare what is held with acquirers' lists, and lift the hold if nothing differs; what does.
    Moves no money.

    Raises: Unavailable if a list can't be read.
    """
    now = utc_now()
    try:
        differing = await _compare(desk, reading.look_since, is_held=True)
    except Unavailable as error:
        await _tell(desk.database, reading, error.message, now=now)
        raise
    if differing:
        await _tell(desk.database, reading, _sum(differing), now=now)
    else:
        await _lift(desk.database, "acquirers' lists and our books agree", found=reading)
    return differing


async def _tell(database: Database, reading: Reading, why: str, *, now: datetime) -> None:
    """Say in the alarm why the hold stays."""
    if reading.held_because:
        await raise_alarms(database, [Alarm(AlarmKind.held, SUBJECT, f"{reading.held_because}. {why}")], now=now)


async def hold_restored(database: Database, *, since: datetime, gap: int) -> Begun:
    """Hold all that moves money, since the database was put back to an earlier state;
    begin an epoch, raise all ids.

    `since` is from before that state (UTC): back to then acquirers' lists are read. Moves no money.
    """
    reading = await read(database)
    begun = await hold(database, epoch=reading.beat.epoch, above=0, because=RESTORED, since=since, gap=gap)
    return await hold_restored(database, since=since, gap=gap) if begun is None else begun


async def accept(database: Database, actor: Actor, words: str, *, is_live: bool, now: datetime) -> str:
    """Lift the hold though acquirers' lists differ from our books: an operator takes what is left,
    and says why.

    Money may be begun from then on. Returns why it was held. Where live payments are taken
    (`is_live`) an account for tests that is missed holds nothing, here neither. Raises: Conflict if
    nothing is held, or an account is missed of which nobody has said that it is gone; Malformed.
    """
    if not words.strip():
        raise Malformed("say why what is left may be taken: the words stand in the log", "words")
    async with database.acquire() as connection, connection.transaction():
        for lost in await missed_accounts(connection, is_live=is_live):
            raise Conflict(lost.why)
        why = await _lift(connection, f"accepted: {words.strip()}", accepted_until=now)
        if why is None:
            raise Conflict("nothing is held")
        await record(connection, actor, Action.hold_accepted, now=now, details={"because": words.strip(), "held": why})
    return why


async def _lift(
    database: Connection, by: str, *, accepted_until: datetime | None = None, found: Reading | None = None
) -> str | None:
    """End the hold, unless it is another than the one that was compared;
    why it was held, None if it is not.
    """
    epoch, place = (found.beat.epoch, found.place) if found is not None else (None, None)
    why: str | None = await queries.lift(database, accepted_until=accepted_until, epoch=epoch, place=place)
    if why is None:
        return None
    await settle_alarms(database, AlarmKind.held, [SUBJECT], shop=None, by=by, now=utc_now())
    log.warning("what moves money is begun again", why=by)
    return why
