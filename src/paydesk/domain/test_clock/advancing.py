"""Moving a test clock: everything that falls due on the way happens, in order,
at the moment at which it falls due.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from paydesk.core.clock import utc_now
from paydesk.core.errors import Held, Malformed, Unavailable
from paydesk.core.periods import Period, occurrence
from paydesk.core.wording import worded
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.billing.pacing import Pace
from paydesk.domain.cells.fencing import Fenced, require_unfenced
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.test_clock import HeldClock, held_clock
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due as settle_attempts
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.subscriptions.changing import carry_out_due
from paydesk.domain.subscriptions.ending import expire_due
from paydesk.domain.test_clock.noting import Note, noted_if_stopped, unnoted
from paydesk.domain.test_clock.stopping import HeldUp, OnItsWay, Stopped

queries = load_statements(__package__ or "", "advancing.sql")

FURTHEST = timedelta(days=50 * 366)
"""How far a test clock may run ahead of real time."""

PATIENCE = 120.0
"""Seconds that one advance waits, all in all, for what others have in hand and for outcomes
that are unknown."""

MOST_SECONDS = 30.0
"""How long a call of the API or the account works on the way:
proxies wait for an answer little longer."""

SHARED_PACE = Pace(batch=100, in_flight=25)
"""How such a call charges, beside everything else that its process answers."""

MOST_EVENTS = 1000
NEVER = datetime.max.replace(tzinfo=UTC)
_SOON = 0.02


class What(StrEnum):
    """What can happen while a clock is moved; `payment…` are renewals, if it is not said."""

    PAYMENT = "payment"
    DECLINED = "payment_declined"
    FAILED = "payment_failed"
    """A charge that never reached the bank; it is due again at once, and counts as no failure."""
    ARRIVED = "payment_arrived"
    """The money of a pending payment."""
    NOT_ARRIVED = "payment_not_arrived"
    """A pending payment came to nothing."""
    STOPPED = "subscription_stopped"
    EXPIRED = "subscription_expired"
    CANCELLED = "subscription_cancelled"
    """A subscription that was to end with its period has ended."""
    CHANGED = "subscription_changed"
    """The next period of a subscription is of another plan."""
    RESUMED = "subscription_resumed"
    """A pause is over."""
    CHARGEBACK = "chargeback"
    VOIDED = "payment_voided"
    """An authorization that was not shipped in time was let go."""
    SETTLED = "settlement"
    """A payment's net became available."""
    RELEASED = "reserve_release"
    PINGBACK_ACKNOWLEDGED = "pingback_acknowledged"
    PINGBACK_FAILED = "pingback_failed"


@dataclass(frozen=True, slots=True)
class AdvanceEvent:
    """Something that happened at `at`, the shop's time (UTC), and what it concerned."""

    at: datetime
    what: What
    subscription_id: int | None
    payment_id: int | None
    pingback_id: int | None


@dataclass(frozen=True, slots=True)
class Summary:
    """What an advance did: times are the shop's, UTC.

    `events` are the first, in order; `counts` say how often each kind happened, whether shown or
    not. `unsettled` are subscriptions with a charge whose outcome nobody knows yet: workers settle
    them. `pingbacks_in_hand` are still being sent by others.
    """

    merchant_id: int
    started_at: datetime
    now: datetime
    events: tuple[AdvanceEvent, ...]
    counts: dict[What, int]
    unsettled: tuple[int, ...]
    pingbacks_in_hand: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an advance has come: the shop's time `at`, on the way from `start`
    to `target` (UTC).
    """

    start: datetime
    at: datetime
    target: datetime


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class _Due:
    """When the next charge, expiry, change, deadline of an authorization and pingback fall due,
    and when a slow method will have ended.

    `in_hand` if somebody is at work on something just then, after which more may be due.
    """

    in_hand: bool
    charge: datetime
    expiry: datetime
    change: datetime
    shipping: datetime
    sending: datetime
    sure: datetime

    @property
    def first(self) -> datetime:
        return min(self.charge, self.expiry, self.change, self.shipping, self.sending, self.sure)


@dataclass(frozen=True, slots=True)
class _DueRow:
    """The same as it is read; None for what never falls due."""

    charge_at: datetime | None
    expire_at: datetime | None
    change_at: datetime | None
    ship_at: datetime | None
    send_at: datetime | None
    sure_at: datetime | None
    in_hand: bool


@dataclass(frozen=True, slots=True)
class _InHand:
    attempts: int
    pingbacks: int


@dataclass(frozen=True, slots=True)
class _Unsettled:
    subscription_id: int


@dataclass(frozen=True, slots=True)
class _Happened:
    at: datetime
    what: What
    subscription_id: int | None
    payment_id: int | None
    pingback_id: int | None
    times: int
    place: int
    place_in_kind: int


async def advance(
    desk: Desk,
    sender: PingbackSender,
    merchant_id: int,
    by: Period,
    *,
    report: Report = lambda _: None,
    note: Note = unnoted,
    patience: float = PATIENCE,
    most_events: int = MOST_EVENTS,
    most_seconds: float | None = None,
) -> Summary:
    """Move a merchant's test side forward by a period of its calendar. Moves (simulated) money.

    Renewals, retries, stops, expiries and pingback resends happen as the workers would do them,
    each at its own time; workers may run meanwhile. Interrupted, it leaves the clock where it was,
    and can be called again; what was moved is noted all the same. `sender` is for this call alone.
    `patience` (seconds) is how long to wait, all in all, for unknown outcomes and for what others
    have in hand; what is open after that is in the summary. With `most_seconds` it works for so
    long and at a shared pace.

    Raises: NotFound if there is no such merchant; Conflict if somebody else is moving its clock;
    Malformed if it would run too far ahead; Stopped if there is more to do than there is time for;
    Unavailable if something that is due is kept locked by somebody else; Held, and nothing was
    moved, or HeldUp if that began on the way; Fenced and OnItsWay likewise, if the merchant goes to
    another cell, which waits for no test clock.
    """
    await desk.gate.require()
    async with held_clock(desk.database, merchant_id) as clock:
        target = _target(clock, by)
        billing = BillingRun(desk, None if most_seconds is None else SHARED_PACE)
        journey = _Journey(desk, sender, clock, target, patience, billing)
        until = None if most_seconds is None else time.monotonic() + most_seconds
        try:
            async with noted_if_stopped(desk.database, note, clock.start, lambda: journey.at):
                async with aclosing(journey.moments()) as moments:
                    async for at in moments:
                        report(Progress(clock.start, at, target))
                        if until is not None and time.monotonic() >= until and await journey.has_more():
                            raise Stopped(clock.start, at, target)
                async with desk.database.acquire() as connection, connection.transaction():
                    now = await clock.move_to(target, on=connection)
                    await note(connection, clock.start, now)
        except Held as held:
            raise HeldUp(clock.start, journey.at, held) from held
        except Fenced as fenced:
            raise OnItsWay(clock.start, journey.at, target) from fenced
        report(Progress(clock.start, target, target))
        return await _summary(desk, clock, now, most_events)


def _target(clock: HeldClock, by: Period) -> datetime:
    try:
        target = occurrence(clock.start, by, 1, clock.time_zone)
    except (ValueError, OverflowError):
        target = None
    if target is None or target > utc_now() + FURTHEST:
        raise Malformed(
            worded("a test clock can run 50 years ahead at most; start anew: paydesk clock reset"), "advance"
        )
    return target


class _Journey:
    """The way from a clock's start to its target, from moment to moment at which something is due;
    it has come to `at`.

    No clock comes to a moment at which money would move, while that is held.
    """

    def __init__(
        self,
        desk: Desk,
        sender: PingbackSender,
        clock: HeldClock,
        target: datetime,
        patience: float,
        billing: BillingRun,
    ) -> None:
        self._desk = desk
        self._sender = sender
        self._clock = clock
        self._target = target
        self._patience = patience
        self._billing = billing
        self._merchant_id = clock.merchant_id
        self.at = clock.start

    async def has_more(self) -> bool:
        """Whether anything more falls due on the way."""
        return (await self._next_due()).first <= self._target

    async def moments(self) -> AsyncGenerator[datetime]:
        """Do what is due, and yield each moment once it is done."""
        await self._settle(self.at)
        while (due := await self._next_moment()).first <= self._target:
            await self._require_open()
            at = max(due.first, self.at)
            if min(due.charge, due.shipping, due.sure) <= at:
                await self._desk.gate.require()
            await self._clock.move_to(at)
            self.at = at
            await self._move_funds(at)
            if not await self._act(due, at):
                await self._wait_for_others(at)
            await self._settle(at)
            await read_disputes(self._desk, now=utc_now())
            yield at
        await self._move_funds(self._target)

    async def _next_due(self) -> _Due:
        row = record_of(_DueRow, await queries.next_due(self._desk.database, merchant_id=self._merchant_id))
        whens = (row.charge_at, row.expire_at, row.change_at, row.ship_at, row.send_at, row.sure_at)
        return _Due(row.in_hand, *(when or NEVER for when in whens))

    async def _next_moment(self) -> _Due:
        """What is due next once nobody has anything in hand: a worker may take what is due at this
        moment between two looks, and what follows from it may come first.
        """
        due = await self._next_due()
        while due.in_hand and due.first > self.at and self._patience > 0:
            await self._settle(self.at)
            due = await self._next_due()
        return due

    async def _act(self, due: _Due, at: datetime) -> int:
        """Charge, expire, change, void, hear of slow methods and send what is due at a moment;
        returns how much that was. Moves money.
        """
        database, merchant_id = self._desk.database, self._merchant_id
        done = 0
        if due.charge <= at:
            done += await self._billing.charge_due(merchant_id=merchant_id, at=at)
        if due.expiry <= at:
            done += await expire_due(database, real_now=utc_now(), merchant_id=merchant_id, at=at)
        if due.change <= at:
            done += await carry_out_due(database, real_now=utc_now(), merchant_id=merchant_id, at=at)
        if due.shipping <= at:
            done += await act_on_due(self._desk, real_now=utc_now(), merchant_id=merchant_id, at=at)
        if due.sure <= at:
            real_now = utc_now()
            await queries.ask_for_pending(database, merchant_id=merchant_id, at=at, real_now=real_now)
            done += await settle_attempts(self._desk, now=real_now)
        if done or due.sending <= at:
            done += await self._sender.send_due_once(at, merchant_id=merchant_id)
        return done

    async def _move_funds(self, at: datetime) -> None:
        """Settle and release what is due by a moment;
        each posting has the moment at which it was due.
        """
        while await settle_due(self._desk.database, real_now=utc_now(), merchant_id=self._merchant_id, at=at):
            pass

    async def _wait_for_others(self, at: datetime) -> None:
        """Something is due, and somebody else was faster or holds its row: give them a moment."""
        await self._require_open()
        if self._patience <= 0:
            raise Unavailable(
                worded("what is due at %(at)s is kept locked by somebody else; try again", at=f"{at:%Y-%m-%d %H:%M:%S}")
            )
        await self._pause(_SOON)

    async def _settle(self, at: datetime) -> None:
        """Let what is under way come to its end, while there is patience:
        what follows from it may be due next.
        """
        database = self._desk.database
        while self._patience > 0:
            await self._require_open()
            in_hand = record_of(_InHand, await queries.in_hand(database, merchant_id=self._merchant_id))
            if not in_hand.attempts and not in_hand.pingbacks:
                return
            before = time.monotonic()
            if in_hand.attempts:
                real_now = utc_now()
                await queries.look_up_now(database, merchant_id=self._merchant_id, at=at, real_now=real_now)
                await settle_attempts(self._desk, now=real_now)
            self._patience -= time.monotonic() - before
            await self._pause(_SOON)

    async def _require_open(self) -> None:
        """A merchant that goes to another cell is closed for as long as this goes on: give way."""
        await require_unfenced(self._desk.database, self._merchant_id)

    async def _pause(self, seconds: float) -> None:
        self._patience -= seconds
        await asyncio.sleep(seconds)


async def _summary(desk: Desk, clock: HeldClock, now: datetime, most: int) -> Summary:
    """What the database says happened since the clock's start, whoever did it."""
    merchant_id, database = clock.merchant_id, desk.database
    happened = queries.happened(database, merchant_id=merchant_id, since=clock.start, until=now, most=most)
    rows = await records_of(_Happened, happened)
    left = await records_of(_Unsettled, queries.unsettled(database, merchant_id=merchant_id, most=most))
    in_hand = record_of(_InHand, await queries.in_hand(database, merchant_id=merchant_id))
    return Summary(
        merchant_id=merchant_id,
        started_at=clock.start,
        now=now,
        events=tuple(
            AdvanceEvent(row.at, row.what, row.subscription_id, row.payment_id, row.pingback_id)
            for row in rows
            if row.place <= most
        ),
        counts={row.what: row.times for row in rows if row.place_in_kind == 1},
        unsettled=tuple(row.subscription_id for row in left),
        pingbacks_in_hand=in_hand.pingbacks,
    )
