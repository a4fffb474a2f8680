"""The janitor: finds out, by key, what became of attempts whose outcome nobody recorded.

It never mints a key, never sends a charge again, and never takes silence for a decline. Captures,
voids and refunds without an outcome are finished in the same rounds (movements.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from paydesk.adapters.acquirers.interface import (
    Acquirer,
    Approved,
    Challenged,
    Declined,
    DeclineReason,
    Finding,
    NothingHeld,
    OutcomeUnknown,
    Pending,
    Voided,
    is_earlier,
)
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import set_aside, side_by_side, together
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import metrics
from paydesk.domain.payments.card_guard import count_declines
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.forgotten_purchases import hold, is_of_its_terms, take_up, took
from paydesk.domain.payments.letting_go import let_go_due
from paydesk.domain.payments.lookups import (
    CHALLENGE_LIFETIME,
    GRACE,
    Lookup,
    claim_lookups,
    is_alarming,
    next_look,
)
from paydesk.domain.payments.movements import count_unknown, finish_movements
from paydesk.domain.payments.off_session import decided, find_unattended
from paydesk.domain.payments.outcomes import (
    CHALLENGE_LOOK,
    PAGE_LOOK,
    Approval,
    Ending,
    record_approvals,
    record_challenge,
    record_endings,
)
from paydesk.domain.payments.page_lookups import find_on_page, pass_time_if_due
from paydesk.domain.payments.pending import PENDING_LOOK, OnItsWay, record_pending
from paydesk.domain.payments.states import NOT_PAID, PAGE_LEFT, UNSETTLED, AttemptState
from paydesk.domain.payments.undoing import GivenUp, Undone, undo
from paydesk.domain.subscriptions.long_charges import note_long_charges
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "")
gauges = load_statements(__package__ or "", "metrics.sql")
log = structlog.get_logger()

RELEASES_EVERY = 10.0
"""Seconds between two looks for instruments that acquirers are to let go of: there is no hurry."""


async def run_janitor(desk: Desk, stop: asyncio.Event, *, pause: float = 1.0) -> None:
    """Look after open outcomes until told to stop; the pause between rounds is in seconds."""

    async def settle() -> bool:
        return await settle_due(desk, now=utc_now()) > 0

    async def finish() -> bool:
        return await finish_movements(desk, now=utc_now()) > 0

    async def release() -> bool:
        return await let_go_due(desk, now=utc_now()) > 0

    await asyncio.gather(
        repeat("janitor", settle, stop, rest=pause, due=True),
        repeat("janitor of movements", finish, stop, rest=pause, due=True),
        repeat("janitor of kept instruments", release, stop, rest=max(pause, RELEASES_EVERY), due=True),
    )


async def settle_due(desk: Desk, *, now: datetime, most: int = 100) -> int:
    """Ask about the attempts that are due, all at once, and record what was found;
    returns how many were asked.

    Acquirers live in real time, so `now` is real time (UTC) and never a test clock's.
    Moves money only to undo an approval that turned up after the attempt had been given up.
    """
    lookups = await claim_lookups(desk.database, now=now, most=most)
    findings = await asyncio.gather(*(_find(desk, lookup, now=now) for lookup in lookups))
    found = list(zip(lookups, findings, strict=True))
    settled = await _record_open(desk, found, now=now) | await _record_challenges(desk, found, now=now)
    settled |= await _record_pending(desk, found, now=now)
    undone = await _undo_late(desk, found, now=now)
    settled |= {attempt_id for attempt_id, came in undone.items() if came is Undone.DONE}
    refused = {attempt_id for attempt_id, came in undone.items() if came is Undone.REFUSED}
    over = {lookup.attempt_id for lookup, finding in found if _is_over(lookup, finding)}
    left = [lookup for lookup in lookups if lookup.attempt_id not in settled]
    pending = {lookup.attempt_id for lookup, finding in found if isinstance(finding, Pending)}
    await _ask_later(desk, left, over=over, pending=pending, refused=refused, now=now)
    return len(lookups)


def _is_over(lookup: Lookup, finding: Finding | None) -> bool:
    """Whether an attempt was given up, and nobody can pay on its page any more."""
    return lookup.page is not None and lookup.state is AttemptState.ABANDONED and isinstance(finding, Voided)


async def _find(desk: Desk, lookup: Lookup, *, now: datetime) -> Finding | None:
    """What the acquirer says of the attempt, or None if it can't be reached;
    ends a challenge that nobody waits for.
    """
    stale = lookup.state is AttemptState.CHALLENGED and now > lookup.created_at + CHALLENGE_LIFETIME
    try:
        # One attempt whose acquirer is not configured any more must not hold up the others.
        acquirer = desk.acquirers[lookup.acquirer]
        page = lookup.page
        finding: Finding | None = await (
            find_on_page(desk, acquirer, lookup, page, now=now)
            if page
            else _ask(acquirer, lookup, stale=stale, now=now)
        )
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
    is_open = lookup.state in UNSETTLED
    database, shop, attempt_id = desk.database, lookup.shop, lookup.attempt_id
    is_the_sum = took(earlier, lookup.amount, lookup.currency, capture=lookup.capture)
    if is_open and is_the_sum and await is_of_its_terms(database, shop, attempt_id, earlier):
        await take_up(database, shop, attempt_id, earlier)
        return finding
    await hold(database, shop, attempt_id, earlier)
    return None


async def _ask(acquirer: Acquirer, lookup: Lookup, *, stale: bool, now: datetime) -> Finding:
    """Ask what became of an attempt, or end what nobody answers any more. Moves (simulated) money
    where its shop's test clock has come to the day.

    Raises: OutcomeUnknown, also for a charge of a saved card over which its bank takes some days.
    """
    if lookup.unattended:
        await pass_time_if_due(acquirer, lookup, now=now)
        found = await find_unattended(acquirer, lookup.key, lookup.not_after + GRACE)
        return decided(found) if isinstance(found, Pending) and not lookup.renewal else found
    if stale or lookup.state is AttemptState.ABANDONED:
        return await acquirer.end_challenge(lookup.key)
    return await acquirer.find(lookup.key, lookup.not_after + GRACE)


async def _record_open(desk: Desk, found: list[tuple[Lookup, Finding | None]], *, now: datetime) -> set[int]:
    """Record what is known of attempts that hold their payment, each by its shop's own time."""
    settled: set[int] = set()
    for clock in {lookup.clock for lookup, _ in found}:
        still_open = [
            (lookup, finding) for lookup, finding in found if lookup.clock == clock and lookup.state in UNSETTLED
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
            unattended = {lookup.attempt_id for lookup, _ in still_open if lookup.unattended}
            typed = [ending for ending in endings if ending.attempt_id in ended - unattended]
            tested = [ending.shop for ending in typed if ending.state is AttemptState.DECLINED]
            # Only a bank that refused a customer speaks of card testing. Challenges that nobody
            # came back from end an hour later: after a busy hour they would look like a quiet one's
            # declines.
            await count_declines(desk.database, tested, desk.limits_of, now=now)
    return settled


def _ending(lookup: Lookup, finding: Finding | None, *, now: datetime) -> Ending | None:
    """How an attempt ended without money, or None while it may still be approved."""
    if isinstance(finding, Declined):
        state, reason = AttemptState.DECLINED, str(finding.reason)
    elif lookup.state is AttemptState.PENDING:
        if not isinstance(finding, Voided):
            return None
        # A bank was asked for a renewal, and has not paid: that counts as its decline.
        came_to = (AttemptState.DECLINED, str(DeclineReason.DECLINED))
        state, reason = came_to if lookup.renewal else (AttemptState.FAILED, NOT_PAID)
    elif isinstance(finding, Voided) or (isinstance(finding, NothingHeld) and now > lookup.not_after + GRACE):
        state, reason = AttemptState.FAILED, str(DeclineReason.PROCESSING_ERROR)
        if lookup.state is AttemptState.CHALLENGED:
            left = str(DeclineReason.AUTHENTICATION_FAILED) if lookup.page is None else PAGE_LEFT
            state, reason = AttemptState.ABANDONED, left
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
        look_in = PAGE_LOOK if lookup.page else CHALLENGE_LOOK
        moved = await record_challenge(desk.database, lookup.shop, lookup.attempt_id, finding, look_in=look_in, now=now)
        return lookup.attempt_id if moved else None

    worked = await side_by_side(challenged, record)
    await set_aside(desk.database, worked, lambda one: _named(one[0]), doing=noted("its challenge can't be recorded"))
    return {attempt_id for attempt_id in worked.results if attempt_id is not None}


async def _record_pending(desk: Desk, found: list[tuple[Lookup, Finding | None]], *, now: datetime) -> set[int]:
    """Record payments by slow methods whose customers did not come back."""
    pending = [
        (lookup, finding)
        for lookup, finding in found
        if lookup.state in (AttemptState.PROCESSING, AttemptState.CHALLENGED) and isinstance(finding, Pending)
    ]

    async def record(batch: Sequence[tuple[Lookup, Pending]]) -> list[int]:
        on_their_way = [
            OnItsWay(lookup.shop, lookup.attempt_id, finding, PENDING_LOOK if lookup.renewal else PAGE_LOOK)
            for lookup, finding in batch
        ]
        return list(await record_pending(desk.database, on_their_way, now=now))

    worked = await together(pending, record)
    await set_aside(
        desk.database, worked, lambda one: _named(one[0]), doing=noted("that it is pending can't be recorded")
    )
    return set(worked.results)


def _named(lookup: Lookup) -> tuple[Shop, str]:
    """What an attempt is called in the operator's list."""
    return lookup.shop, f"attempt {lookup.attempt_id}"


async def _undo_late(desk: Desk, found: list[tuple[Lookup, Finding | None]], *, now: datetime) -> dict[int, Undone]:
    """Void approvals of attempts that were given up, so that no customer pays twice; what came of
    each.
    """
    late = [
        (lookup, finding)
        for lookup, finding in found
        if lookup.state is AttemptState.VOIDING
        or (lookup.state in (AttemptState.FAILED, AttemptState.ABANDONED) and isinstance(finding, Approved))
    ]

    async def undone(one: tuple[Lookup, Finding | None]) -> tuple[int, Undone]:
        lookup, finding = one
        approved = finding if lookup.state is not AttemptState.VOIDING and isinstance(finding, Approved) else None
        given_up = GivenUp(lookup.shop, lookup.attempt_id, lookup.key, lookup.acquirer)
        return lookup.attempt_id, await undo(desk, given_up, approved, now=now)

    worked = await side_by_side(late, undone)
    await set_aside(desk.database, worked, lambda one: _named(one[0]), doing=noted("its late approval can't be undone"))
    return dict(worked.results)


async def _ask_later(
    desk: Desk, lookups: list[Lookup], *, over: set[int], pending: set[int], refused: set[int], now: datetime
) -> None:
    """Give back what stayed open, each with its next date, if it is not `over`; `pending` is what
    the acquirer says so of, `refused` what it will not undo. What is open too long is an alarm.
    """

    def next_of(lookup: Lookup) -> datetime | None:
        name = lookup.attempt_id
        if name in over:
            return None
        return next_look(lookup, now, still_pending=name in pending, is_refused=name in refused)

    if not lookups:
        return
    for lookup in lookups:
        if is_alarming(lookup, now) and not lookup.alerted:
            log.error("an outcome is unknown for a day", attempt_id=lookup.attempt_id, payment_id=lookup.payment_id)
    open_renewals = [(one.shop, one.attempt_id) for one in lookups if one.renewal and one.state in UNSETTLED]
    await note_long_charges(desk.database, open_renewals)
    await queries.schedule_lookups(
        desk.database,
        merchant_ids=[lookup.shop.merchant_id for lookup in lookups],
        lives=[lookup.shop.live for lookup in lookups],
        attempt_ids=[lookup.attempt_id for lookup in lookups],
        states=[str(lookup.state) for lookup in lookups],
        claimed_ats=[lookup.due_at for lookup in lookups],
        lookup_ats=[next_of(lookup) for lookup in lookups],
        alerted_ats=[now if is_alarming(lookup, now) else None for lookup in lookups],
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Pending payments of live or test data, and the seconds since the oldest began."""

    live: bool
    waiting: int
    oldest: float


async def watch_open_outcomes(database: Database, *, now: datetime) -> None:
    """Measure how many attempts and movements are without an outcome for over a minute, and how
    much money is on its way by slow methods.
    """
    minute_ago = now - timedelta(minutes=1)
    attempts = await gauges.attempts_unknown(database, older_than=minute_ago)
    metrics.OPEN_OUTCOMES.set(attempts + await count_unknown(database, older_than=minute_ago))
    waiting = {row.live: row for row in await records_of(_Waiting, gauges.pending_payments(database, now=now))}
    for mode, live in (("live", True), ("test", False)):
        found = waiting.get(live, _Waiting(live, 0, 0.0))
        metrics.PENDING.labels(mode).set(found.waiting)
        metrics.PENDING_AGE.labels(mode).set(max(found.oldest, 0.0))
