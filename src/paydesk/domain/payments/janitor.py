"""The janitor: finds out, by key, what became of attempts whose outcome nobody recorded.

It never mints a key, never sends a charge again, and never takes silence for a decline. Captures,
voids and refunds without an outcome are finished in the same rounds (movements.py).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec
import structlog

from paydesk.adapters.acquirers.interface import (
    Acquirer,
    AcquirerRefused,
    Approved,
    Challenged,
    Declined,
    DeclineReason,
    Finding,
    NothingHeld,
    OutcomeUnknown,
    Voided,
    is_earlier,
)
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.apart import set_aside, side_by_side
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import metrics
from paydesk.domain.payments.desk import KEY_LIFETIME, Desk
from paydesk.domain.payments.guarding import count_declines
from paydesk.domain.payments.meeting import hold, is_of_its_terms, take_up, took
from paydesk.domain.payments.movements import count_unknown, finish_movements
from paydesk.domain.payments.outcomes import (
    CHALLENGE_LOOK,
    Approval,
    Ending,
    record_approvals,
    record_challenge,
    record_endings,
)
from paydesk.domain.payments.states import AttemptState
from paydesk.domain.payments.unattended import find_unattended
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "")
log = structlog.get_logger()

BACKOFF = (timedelta(seconds=5), timedelta(minutes=1), timedelta(minutes=5), timedelta(hours=1))
"""Pauses between questions; from the last one on, hourly."""

ALERT_AFTER = timedelta(hours=24)
LOOK_BACK = timedelta(days=7)
"""How long an attempt that was given up is still asked for, in case an approval turns up."""

LATE_LOOKS = (
    (timedelta(minutes=10), timedelta(minutes=1)),
    (timedelta(days=1), timedelta(minutes=5)),
    (LOOK_BACK, timedelta(hours=1)),
)
"""Until how long after it was given up an attempt is asked for how often: some 440 questions.

All are asked at round times, so that those of attempts that were given up one by one come together:
at Stripe, questions that come together share one list, and a key that was used up is not asked
for again.
"""

UNDO_AGAIN = timedelta(minutes=5)
"""The longest pause before a second charge that could not be undone is undone again."""

GRACE = timedelta(seconds=30)
"""Added to a key's last moment before "not found" counts as final: clocks differ."""

LEASE = timedelta(minutes=1)

CHALLENGE_LIFETIME = timedelta(hours=1)
"""A customer who has not come back from the bank by then is not waited for."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A claimed attempt; `number` counts the questions asked about it, this one included.

    Its times are real ones; the shop's own time is ahead of them by `clock`. The clock may have
    been moved since, so that they are reckoned back too far: `not_after`, always in real time, says
    how far at most.
    """

    shop: Shop
    attempt_id: int
    payment_id: int
    state: AttemptState
    key: str
    acquirer: str
    not_after: datetime
    created_at: datetime
    finished_at: datetime | None
    number: int
    alerted: bool
    renewal: bool
    clock: timedelta
    amount: Decimal = Decimal(0)
    currency: str = ""
    capture: bool = True


async def run_janitor(desk: Desk, stop: asyncio.Event, *, pause: float = 1.0) -> None:
    """Look after open outcomes until told to stop; the pause between rounds is in seconds."""

    async def settle() -> bool:
        return await settle_due(desk, now=utc_now()) > 0

    async def finish() -> bool:
        return await finish_movements(desk, now=utc_now()) > 0

    await asyncio.gather(
        repeat("janitor", settle, stop, rest=pause, due=True),
        repeat("janitor of movements", finish, stop, rest=pause, due=True),
    )


async def settle_due(desk: Desk, *, now: datetime, most: int = 100) -> int:
    """Ask about the attempts that are due, all at once, and record what was found;
    returns how many were asked.

    Acquirers live in real time, so `now` is real time (UTC) and never a test clock's.
    Moves money only to undo an approval that turned up after the attempt had been given up.
    """
    rows = queries.claim_lookups(desk.database, now=now, most=most, lease=LEASE)
    lookups = [_lookup(row) for row in await records_of(_Row, rows)]
    findings = await asyncio.gather(*(_find(desk, lookup, now=now) for lookup in lookups))
    found = list(zip(lookups, findings, strict=True))
    settled = await _record_open(desk, found, now=now) | await _record_challenges(desk, found, now=now)
    settled |= await _undo_late(desk, found, now=now)
    await _ask_later(desk, [lookup for lookup in lookups if lookup.attempt_id not in settled], now=now)
    return len(lookups)


class _Row(msgspec.Struct, frozen=True):
    """A row of `claim_lookups`; its times but `not_after` are the shop's."""

    merchant_id: int
    live: bool
    attempt_id: int
    payment_id: int
    checkout_id: int | None
    state: AttemptState
    idempotency_key: str
    acquirer: str
    not_after: datetime
    created_at: datetime
    finished_at: datetime | None
    lookups: int
    alerted_at: datetime | None
    amount: Decimal
    currency: str
    capture: bool
    clock: timedelta


def _lookup(row: _Row) -> Lookup:
    return Lookup(
        shop=Shop(row.merchant_id, row.live),
        attempt_id=row.attempt_id,
        payment_id=row.payment_id,
        state=row.state,
        key=row.idempotency_key,
        acquirer=row.acquirer,
        not_after=row.not_after,
        created_at=max(row.created_at - row.clock, row.not_after - KEY_LIFETIME),
        finished_at=row.finished_at and max(row.finished_at - row.clock, row.not_after),
        number=row.lookups,
        alerted=row.alerted_at is not None,
        renewal=row.checkout_id is None,
        clock=row.clock,
        amount=row.amount,
        currency=row.currency,
        capture=row.capture,
    )


async def _find(desk: Desk, lookup: Lookup, *, now: datetime) -> Finding | None:
    """What the acquirer says of the attempt, or None if it can't be reached;
    ends a challenge that nobody waits for.
    """
    stale = lookup.state is AttemptState.CHALLENGED and now > lookup.created_at + CHALLENGE_LIFETIME
    try:
        # One attempt whose acquirer is not configured any more must not hold up the others.
        acquirer = desk.acquirers[lookup.acquirer]
        finding: Finding | None = await _ask(acquirer, lookup, stale=stale)
        if finding is not None and is_earlier(finding, lookup.not_after):
            finding = await _of_older(desk, acquirer, lookup, finding)
    except OutcomeUnknown:
        finding = None
    except Exception:
        log.exception("the look-up failed", attempt_id=lookup.attempt_id)
        finding = None
    metrics.LOOKUPS.labels(type(finding).__name__).inc()
    return finding


async def _of_older(desk: Desk, acquirer: Acquirer, lookup: Lookup, finding: Finding) -> Finding | None:
    """What an older purchase under the attempt's key, which we have forgotten,
    means for the attempt. Moves no money.

    One that took nothing is none of this attempt's, an open challenge of it is ended; what took
    just this is adopted while the attempt is open, and anything else waits for an operator. Raises:
    OutcomeUnknown.
    """
    if isinstance(finding, Challenged):
        return await acquirer.end_challenge(lookup.key)
    if not isinstance(finding, Approved):
        return NothingHeld()
    earlier = await acquirer.look_back(lookup.key)
    if earlier is None:
        return None
    is_open = lookup.state in (AttemptState.PROCESSING, AttemptState.CHALLENGED)
    database, shop, attempt_id = desk.database, lookup.shop, lookup.attempt_id
    is_the_sum = took(earlier, lookup.amount, lookup.currency, capture=lookup.capture)
    if is_open and is_the_sum and await is_of_its_terms(database, shop, attempt_id, earlier):
        await take_up(database, shop, attempt_id, earlier)
        return finding
    await hold(database, shop, attempt_id, earlier)
    return None


async def _ask(acquirer: Acquirer, lookup: Lookup, *, stale: bool) -> Finding:
    """Ask what became of an attempt, or end what nobody answers any more. Moves no money.

    Raises: OutcomeUnknown.
    """
    if lookup.renewal:
        return await find_unattended(acquirer, lookup.key, lookup.not_after + GRACE)
    if stale or lookup.state is AttemptState.ABANDONED:
        return await acquirer.end_challenge(lookup.key)
    return await acquirer.find(lookup.key, lookup.not_after + GRACE)


async def _record_open(desk: Desk, found: list[tuple[Lookup, Finding | None]], *, now: datetime) -> set[int]:
    """Record what is known of attempts that hold their payment, each by its shop's own time."""
    settled: set[int] = set()
    for clock in {lookup.clock for lookup, _ in found}:
        still_open = [
            (lookup, finding)
            for lookup, finding in found
            if lookup.clock == clock and lookup.state in (AttemptState.PROCESSING, AttemptState.CHALLENGED)
        ]
        approvals = [
            Approval(lookup.shop, lookup.attempt_id, finding)
            for lookup, finding in still_open
            if isinstance(finding, Approved)
        ]
        endings = [
            ending for lookup, finding in still_open if (ending := _ending(lookup, finding, now=now)) is not None
        ]
        if approvals:
            settled |= await record_approvals(desk.database, approvals, now=now + clock)
        if endings:
            ended = await record_endings(desk.database, endings, now=now + clock, real_now=now)
            settled |= ended
            tested = [ending.shop for ending in endings if ending.attempt_id in ended and _is_decline(ending)]
            await count_declines(desk.database, tested, desk.limits_of, now=now)
    return settled


def _is_decline(ending: Ending) -> bool:
    """Whether a bank refused a customer.

    Challenges that nobody came back from end an hour later: after a busy hour they would look like
    a quiet one's declines.
    """
    return not ending.renewal and ending.state is AttemptState.DECLINED


def _ending(lookup: Lookup, finding: Finding | None, *, now: datetime) -> Ending | None:
    """How an attempt ended without money, or None while it may still be approved."""
    if isinstance(finding, Declined):
        state, reason = AttemptState.DECLINED, finding.reason
    elif isinstance(finding, Voided) or (isinstance(finding, NothingHeld) and now > lookup.not_after + GRACE):
        state, reason = AttemptState.FAILED, DeclineReason.PROCESSING_ERROR
        if lookup.state is AttemptState.CHALLENGED:
            state, reason = AttemptState.ABANDONED, DeclineReason.AUTHENTICATION_FAILED
    else:
        return None
    return Ending(lookup.shop, lookup.attempt_id, state, reason, renewal=lookup.renewal)


async def _record_challenges(desk: Desk, found: list[tuple[Lookup, Finding | None]], *, now: datetime) -> set[int]:
    """Record challenges whose announcement was lost, so that the page shows the way to the bank."""
    challenged = [
        (lookup, finding)
        for lookup, finding in found
        if lookup.state is AttemptState.PROCESSING and isinstance(finding, Challenged)
    ]

    async def record(one: tuple[Lookup, Challenged]) -> int | None:
        lookup, finding = one
        moved = await record_challenge(desk.database, lookup.shop, lookup.attempt_id, finding, now=now)
        return lookup.attempt_id if moved else None

    worked = await side_by_side(challenged, record)
    await set_aside(desk.database, worked, lambda one: _named(one[0]), doing="its challenge can't be recorded")
    return {attempt_id for attempt_id in worked.results if attempt_id is not None}


def _named(lookup: Lookup) -> tuple[Shop, str]:
    """What an attempt is called in the operator's list."""
    return lookup.shop, f"attempt {lookup.attempt_id}"


async def _undo_late(desk: Desk, found: list[tuple[Lookup, Finding | None]], *, now: datetime) -> set[int]:
    """Void approvals of attempts that were given up, so that no customer pays twice."""
    late = [
        (lookup, finding)
        for lookup, finding in found
        if lookup.state is AttemptState.VOIDING
        or (lookup.state in (AttemptState.FAILED, AttemptState.ABANDONED) and isinstance(finding, Approved))
    ]

    async def undo(one: tuple[Lookup, Finding | None]) -> int | None:
        lookup, finding = one
        return lookup.attempt_id if await _void(desk, lookup, finding, now=now) else None

    worked = await side_by_side(late, undo)
    await set_aside(desk.database, worked, lambda one: _named(one[0]), doing="its late approval can't be undone")
    return {attempt_id for attempt_id in worked.results if attempt_id is not None}


async def _void(desk: Desk, lookup: Lookup, finding: Finding | None, *, now: datetime) -> bool:
    """Commit to the void, call, record; true once it is done. Moves money (back)."""
    names = {"merchant_id": lookup.shop.merchant_id, "live": lookup.shop.live, "attempt_id": lookup.attempt_id}
    if isinstance(finding, Approved) and lookup.state is not AttemptState.VOIDING:
        later = now + BACKOFF[1]
        begun = await queries.begin_void(
            desk.database, **names, acquirer_reference=finding.reference, lookup_at=later, now=now
        )
        if begun is None:
            return False
        metrics.LATE_APPROVALS.inc()
        log.error("an approval turned up for an attempt that was given up; voiding it", **names)
    try:
        await desk.acquirers[lookup.acquirer].undo(f"{lookup.key}:void", lookup.key)
    except OutcomeUnknown as error:
        log.error("a late approval could not be voided yet", **names, why=str(error))
        return False
    except AcquirerRefused as error:
        why = f"its late approval can't be undone, the customer has paid twice: {error}"
        alarm = Alarm(AlarmKind.contradiction, f"attempt {lookup.attempt_id}", why, lookup.shop)
        await raise_alarms(desk.database, [alarm], now=now)
        return False
    return await queries.record_void(desk.database, **names, now=now) is not None


async def _ask_later(desk: Desk, lookups: list[Lookup], *, now: datetime) -> None:
    """Give back what stayed open, each with its next date; what is open too long is an alarm."""
    if not lookups:
        return
    for lookup in lookups:
        if _alarming(lookup, now) and not lookup.alerted:
            log.error("an outcome is unknown for a day", attempt_id=lookup.attempt_id, payment_id=lookup.payment_id)
    await queries.schedule_lookups(
        desk.database,
        merchant_ids=[lookup.shop.merchant_id for lookup in lookups],
        lives=[lookup.shop.live for lookup in lookups],
        attempt_ids=[lookup.attempt_id for lookup in lookups],
        states=[str(lookup.state) for lookup in lookups],
        lookup_ats=[next_look(lookup, now) for lookup in lookups],
        alerted_ats=[now if _alarming(lookup, now) else None for lookup in lookups],
    )


def next_look(lookup: Lookup, now: datetime) -> datetime | None:
    """When to ask again: after 5 s, 1 min, 5 min, 1 h, then hourly,
    and when "not found" becomes final.

    An attempt that was given up is asked for every few minutes for a day, so that a second charge
    is undone within minutes of turning up, then hourly, and never again once it has stayed quiet
    for a week.
    """
    if lookup.state in (AttemptState.FAILED, AttemptState.ABANDONED):
        quiet = now - (lookup.finished_at or lookup.created_at)
        return next((_next_round(now, pause) for until, pause in LATE_LOOKS if quiet <= until), None)
    if lookup.state is AttemptState.CHALLENGED:
        return now + CHALLENGE_LOOK
    later = now + BACKOFF[min(lookup.number, len(BACKOFF) - 1)]
    if lookup.state is AttemptState.VOIDING:
        return min(later, now + UNDO_AGAIN)
    final = lookup.not_after + GRACE + timedelta(seconds=1)
    return min(later, final) if lookup.state is AttemptState.PROCESSING and final > now else later


def _next_round(now: datetime, pause: timedelta) -> datetime:
    """The next whole number of pauses after midnight (UTC), at which all are asked together."""
    return now + pause - (now - now.replace(hour=0, minute=0, second=0, microsecond=0)) % pause


def _alarming(lookup: Lookup, now: datetime) -> bool:
    return lookup.state in (AttemptState.PROCESSING, AttemptState.VOIDING) and now - lookup.created_at > ALERT_AFTER


async def watch_open_outcomes(database: Database, *, now: datetime) -> None:
    """Measure how many attempts and movements are without an outcome for over a minute."""
    minute_ago = now - timedelta(minutes=1)
    attempts = await queries.attempts_unknown(database, older_than=minute_ago)
    metrics.OPEN_OUTCOMES.set(attempts + await count_unknown(database, older_than=minute_ago))
