"""Refunds that fail after they were made: the customer's bank did not take the money,
and it is the merchant's again.

Acquirers tell of them up to a month later. They are read like disputes, by one worker at a time,
and written down once. What is not known here, or is of a closed merchant, waits
(`waiting_refunds.py`). Each transaction that writes what was read holds the reading's lease first;
none is open while another cell is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial

import structlog

from paydesk.adapters.acquirers.disputes import FailedRefund
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.core.money import fees_due_again
from paydesk.core.wording import noted
from paydesk.database.reading_again import READ_AGAIN
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.leases import Lease, ReadByAnother, Within, why_not
from paydesk.domain.acquirers.other_cells import Elsewhere, alone
from paydesk.domain.acquirers.waiting import Later, tell_untried, try_all, wait_no_more
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.alarms.setting_aside import Worked, one_by_one, reason_of, set_aside
from paydesk.domain.payments import metrics, movement_outcomes, waiting_refunds
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.movement_effects import PART, Reversible, funds_of, told
from paydesk.domain.payments.states import MovementState, PaymentState
from paydesk.domain.payments.waiting_refunds import REFUNDS, AskedRefund, WaitingRefund, alarm_of
from paydesk.domain.pingbacks import waking
from paydesk.domain.pingbacks.payload import ReversalReport
from paydesk.loops.hanging import LONG_READING
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "failed_refunds.sql")
log = structlog.get_logger()

FAILED = "refund_failed"
"""The event, beyond the three that are always there."""

_UNDONE = ":void"
"""Ends the key under which a purchase is undone."""

LEASE = timedelta(minutes=1)
PAUSE = 60.0
"""Seconds between two looks at what an acquirer tells; such a refund was on its way for days."""

ALARM_AFTER = timedelta(hours=6)
"""How long an acquirer may not be read before the operator hears of it:
it forgets after a month."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Up to where an acquirer's failed refunds were read, and until when they are this worker's."""

    place: str
    leased_until: datetime


@dataclass(frozen=True, slots=True)
class _Age:
    acquirer: str
    age: float


@dataclass(frozen=True, slots=True)
class _Stands:
    since: datetime


class CameTo(Enum):
    """What a telling of a failed refund came to."""

    BOOKED = "booked"
    KNOWN = "known"
    """It was written down before, is with an operator, or the purchase is being undone still."""
    UNKNOWN = "unknown"
    """No refund of this cell has its key."""


@dataclass(frozen=True, slots=True)
class _Tried:
    refund: FailedRefund
    came_to: CameTo


class _FailedRefund(Reversible, frozen=True):
    """A refund that was made under a key, with its payment."""

    movement_id: int
    movement_state: MovementState
    moved: Decimal
    fees_returned: bool
    fees_returned_of: Decimal


async def run_failed_refunds(desk: Desk, stop: asyncio.Event, elsewhere: Elsewhere[AskedRefund] = alone) -> None:
    """Read of failed refunds until told to stop; `elsewhere` asks the other cells."""

    async def read() -> None:
        await read_failed_refunds(desk, now=utc_now(), elsewhere=elsewhere)
        await watch_readings(desk, now=utc_now())

    await repeat("failed refunds", read, stop, rest=PAUSE, due=True, patience=LONG_READING)


async def read_failed_refunds(desk: Desk, *, now: datetime, elsewhere: Elsewhere[AskedRefund] = alone) -> int:
    """Book back the refunds that failed at any acquirer since the last reading, and those that
    waited for their merchant; returns how many there were.

    The money has come back at the acquirer before this is called. `now` is real time (UTC);
    `elsewhere` asks the other cells for what is not known here. An acquirer that another worker is
    reading is left to it.
    """
    changed = 0
    for name in desk.acquirers:
        claimed = record_if_any(_Place, await queries.claim_reading(desk.database, acquirer=name, lease=LEASE))
        if claimed is not None:
            lease = Lease(desk.database, name, queries.hold, LEASE, claimed.leased_until)
            changed += await _Reading(desk, name, now, lease, elsewhere).whole(claimed.place)
    await tell_untried(desk.database, REFUNDS, elsewhere, reads=list(desk.acquirers), now=now)
    return changed


async def watch_readings(desk: Desk, *, now: datetime) -> None:
    """Measure how long ago each acquirer's failed refunds were read, for the operator."""
    rows = queries.reading_ages(desk.database, acquirers=list(desk.acquirers), now=now)
    for row in await records_of(_Age, rows):
        metrics.REFUNDS_READ_AGE.labels(row.acquirer).set(row.age)


@dataclass(slots=True)
class _Reading:
    """One reading of an acquirer's failed refunds, by the worker who has the lease on them."""

    desk: Desk
    acquirer: str
    now: datetime
    lease: Lease
    elsewhere: Elsewhere[AskedRefund]
    place: str = field(default="", init=False)
    changed: int = field(default=0, init=False)

    async def whole(self, place: str) -> int:
        """Read on from a place, page by page, then try what waits; how many were news. What can't
        be recorded waits in the operator's list and stops no other.

        The place stays before the first page of which something could not be recorded: it is told,
        and tried, again.
        """
        self.place, read_at = place, None
        try:
            read_at = self.now if await self._to_its_end() else None
        except ReadByAnother as error:
            log.warning("a reading of failed refunds was too slow", acquirer=self.acquirer, why=str(error))
        finally:
            stands = {"held": self.lease.held, "place": self.place, "read_at": read_at}
            await queries.end_reading(self.desk.database, acquirer=self.acquirer, **stands)
        return self.changed

    async def _to_its_end(self) -> bool:
        """Read to the end; whether it went well, as an operator is told. Raises: ReadByAnother."""
        # An answer that makes no sense keeps nobody from the other acquirers, nor what waits from
        # being tried.
        unread, untried = await why_not(self._pages()), await why_not(self._waiting())
        if (error := unread or untried) is not None:
            log.warning("an acquirer's failed refunds can't be read", acquirer=self.acquirer, why=reason_of(error))
            async with self.lease.holding() as connection:
                await _report_unread(connection, self.acquirer, reason_of(error), now=self.now)
            return False
        by = noted("its failed refunds were read")
        async with self.lease.holding() as connection:
            await settle_alarms(connection, AlarmKind.refunds_unread, [self.acquirer], shop=None, by=by, now=self.now)
            await waiting_refunds.forget(connection, now=self.now)
        return True

    async def _pages(self) -> None:
        after, is_recorded, is_complete = self.place, True, False
        while not is_complete:
            page = await self.lease.kept_until(self.desk.acquirers[self.acquirer].failed_refunds(after))
            is_recorded = await self._record(page.refunds) and is_recorded
            if is_recorded:
                self.place = page.next
            after, is_complete = page.next, not page.refunds

    async def _record(self, refunds: Sequence[FailedRefund]) -> bool:
        """Record a page, each in a transaction of its own: what the database refuses of one undoes
        no other. Whether all are recorded, or wait. Raises: ReadByAnother.
        """
        if not refunds:
            return True
        worked = await one_by_one([waiting_refunds.storable(one) for one in refunds], self._tried)
        # First that it is theirs still: whoever was taken over has failed with each.
        async with self.lease.holding() as connection:
            await _set_aside(connection, worked)
            await self._known(connection, worked)
            unknown = [one.refund for one in worked.results if one.came_to is CameTo.UNKNOWN]
            passing = [one for one, why in worked.failed if isinstance(why, Unavailable)]
            await waiting_refunds.keep(connection, self.acquirer, [*unknown, *passing], now=self.now)
        return len(passing) == len(worked.failed)

    async def _waiting(self) -> None:
        await try_all(partial(waiting_refunds.due, self.desk.database, self.acquirer, now=self.now), self._tried_again)

    async def _tried_again(self, waiting: Sequence[WaitingRefund]) -> bool:
        """Try some that wait, and ask other cells for what is not known here still; whether all of
        them have answered.
        """
        known = await waiting_refunds.known_here(self.desk.database, {one.refund.key for one in waiting})
        keys = {one.key for one in known}
        worked = await one_by_one([one.refund for one in waiting if one.refund.key in keys], self._tried)
        tried = {one.refund.reference: one.came_to for one in worked.results}
        failed = {refund.reference for refund, _ in worked.failed}
        unknown = [
            one
            for one in waiting
            if one.acquirer_reference not in failed
            and tried.get(one.acquirer_reference, CameTo.UNKNOWN) is CameTo.UNKNOWN
        ]
        await self.lease.keep()
        heard = await waiting_refunds.heard_of(self.elsewhere, unknown)
        later = Later(REFUNDS, self.acquirer, self.now)
        for one in waiting:
            if one.acquirer_reference in failed:
                later.again(one)
        for one in unknown:
            later.judged(one, heard)
        async with self.lease.holding() as connection:
            await _set_aside(connection, worked)
            await self._known(connection, worked)
            await later.write(connection)
        return heard.is_whole

    async def _tried(self, refund: FailedRefund) -> _Tried:
        return _Tried(refund, await record_failed(self.lease.holding, self.acquirer, refund, now=self.now))

    async def _known(self, connection: Connection, worked: Worked[FailedRefund, _Tried]) -> None:
        """Count what was booked; what is known here waits no more."""
        self.changed += sum(one.came_to is CameTo.BOOKED for one in worked.results)
        known = [one.refund.reference for one in worked.results if one.came_to is not CameTo.UNKNOWN]
        await wait_no_more(connection, REFUNDS, self.acquirer, known, now=self.now)


async def _set_aside(connection: Connection, worked: Worked[FailedRefund, _Tried]) -> None:
    """Tell an operator of what can't be recorded; whose merchant is on the way is booked once that
    is over, and needs nobody.
    """
    failed = [(one, why) for one, why in worked.failed if not isinstance(why, Unavailable)]
    told: Worked[FailedRefund, _Tried] = Worked(failed=failed)
    doing = noted("it failed, unrecorded")
    await set_aside(connection, told, lambda one: (None, one.reference), doing=doing)


async def _report_unread(connection: Connection, acquirer: str, why: str, *, now: datetime) -> None:
    """Raise an alarm for an acquirer that could not be read for long, or never yet."""
    row = record_if_any(_Stands, await queries.reading_stands(connection, acquirer=acquirer))
    if row is not None and now - row.since < ALARM_AFTER:
        return
    await raise_alarms(connection, [Alarm(AlarmKind.refunds_unread, acquirer, why)], now=now)


async def record_failed(within: Within, acquirer: str, failed: FailedRefund, *, now: datetime) -> CameTo:
    """Write down that a refund failed, in one transaction, once however often it is told; what
    that came to. Moves no money.

    `now` is real time (UTC): a test side's own time is ahead by its clock. Raises: what `within`
    raises if it may not be written.
    """
    async with within() as connection:
        came_to = await _recorded(connection, acquirer, failed, now=now)
    if came_to is CameTo.BOOKED:
        waking.told()
    return came_to


async def _recorded(connection: Connection, acquirer: str, failed: FailedRefund, *, now: datetime) -> CameTo:
    for _ in range(READ_AGAIN):
        row = record_if_any(
            _FailedRefund, await queries.failed_refund(connection, acquirer=acquirer, key=failed.key, real_now=now)
        )
        if row is None:
            return CameTo.KNOWN if await _is_being_undone(connection, acquirer, failed) else CameTo.UNKNOWN
        if failed.currency != row.currency or failed.amount != row.moved:
            await _report_another(connection, acquirer, failed, row, now=now)
            return CameTo.KNOWN
        match row.movement_state:
            case MovementState.FAILED | MovementState.REFUSED:
                return CameTo.KNOWN
            case MovementState.PROCESSING:
                written = await _refuse(connection, row, failed)
            case MovementState.DONE:
                written = await _book_back(connection, row, failed)
        if written:
            return CameTo.BOOKED
    assert row is not None, "it was found each time"
    # Also if its merchant is fenced: a worker's writing is not done then, and the others go on.
    raise Unavailable(f"payment {row.payment_id} changes all the time, or its merchant goes to another cell")


async def _is_being_undone(connection: Connection, acquirer: str, failed: FailedRefund) -> bool:
    """Whether it was to undo a purchase that is being undone still."""
    of_key = failed.key.removesuffix(_UNDONE)
    if of_key == failed.key:
        return False
    return bool(await queries.is_being_undone(connection, acquirer=acquirer, of_key=of_key))


async def _refuse(connection: Connection, row: _FailedRefund, failed: FailedRefund) -> bool:
    """It failed before anybody recorded that it was made:
    nothing was booked, and what it reserved is free again.
    """
    rows = movement_outcomes.queries.record_refusals(
        connection,
        merchant_ids=[row.merchant_id],
        lives=[row.live],
        movement_ids=[row.movement_id],
        refusals=[f"it failed: {failed.reason}"],
        now=row.shop_now,
    )
    return bool([one async for one in rows])


async def _book_back(connection: Connection, row: _FailedRefund, failed: FailedRefund) -> bool:
    """The payment is given back by so much less, and the merchant has the money, available at once.

    Fees that were returned with the refund are due again: the payment stands as if it had never
    been made.
    """
    total = row.refunded - row.moved
    before = row.state
    after = PaymentState.PARTIALLY_REFUNDED if total else PaymentState.CAPTURED
    report = ReversalReport(
        event=FAILED,
        status=PART if total else "successful",
        reference_id=row.movement_id,
        refund_amount=row.moved,
        total_refunded_amount=total,
        reason=failed.reason,
    )
    pingback = told(row, report)
    written = await queries.record_failed_refund(
        connection,
        merchant_id=row.merchant_id,
        live=row.live,
        payment_id=row.payment_id,
        movement_id=row.movement_id,
        revision=row.revision,
        fees=_fees_due_again(row),
        state=str(before if before is PaymentState.CHARGED_BACK else after),
        reason=failed.reason,
        event=pingback.event,
        send_to=pingback.send_to,
        pingback_format=pingback.pingback_format,
        payload=pingback.payload,
        now=row.shop_now,
    )
    return written is not None


def _fees_due_again(row: _FailedRefund) -> Decimal:
    if not row.fees_returned:
        return Decimal(0)
    return fees_due_again(replace(funds_of(row), fees_returned_of=row.fees_returned_of), row.moved)


async def _report_another(
    connection: Connection, acquirer: str, failed: FailedRefund, row: _FailedRefund, *, now: datetime
) -> None:
    """Raise an alarm for a refund of which the acquirer tells another sum than we know."""
    why = noted(
        "it is refund %(movement_id)s here, of %(moved)s %(currency)s",
        movement_id=row.movement_id,
        moved=row.moved,
        currency=row.currency,
    )
    await raise_alarms(connection, [alarm_of(acquirer, failed, why, row.shop)], now=now)
