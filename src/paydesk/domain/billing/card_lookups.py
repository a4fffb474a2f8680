"""Finds out, by key, what became of card changes whose outcome nobody recorded;
nothing is ever sent again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from paydesk.adapters.acquirers.interface import (
    Acquirer,
    Approved,
    Challenged,
    DeclineReason,
    Finding,
    NoSuchPage,
    NothingHeld,
    OutcomeUnknown,
    Pending,
    Voided,
)
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import one_by_one, set_aside
from paydesk.domain.billing.card_changes import (
    CardChange,
    ChangePage,
    let_go_of_chosen,
    record,
    record_ending,
    record_finding,
)
from paydesk.domain.billing.replacing_on_pages import open_change
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.asking_pages import end_page, find_page
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.lookups import (
    ALERT_AFTER,
    BACKOFF,
    CHALLENGE_LIFETIME,
    GRACE,
    LEASE,
    LOOK_BACK,
    PAGE_LOOKS,
    UNKNOWN_THERE,
)
from paydesk.domain.payments.outcomes import CHALLENGE_LOOK
from paydesk.domain.payments.results import Unsettled
from paydesk.domain.payments.states import PAGE_LEFT
from paydesk.domain.subscriptions.states import CardChangeState
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "replacing_cards.sql")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CardLookup:
    """A claimed change; `number` counts the questions asked about it, this one included, and
    `due_at` is when it was to be asked about.
    """

    change: CardChange
    created_at: datetime
    number: int
    alerted: bool
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    merchant_id: int
    live: bool
    id: int
    state: CardChangeState
    idempotency_key: str
    acquirer: str
    not_after: datetime
    challenge_url: str
    created_at: datetime
    lookups: int
    alerted_at: datetime | None
    lookup_at: datetime
    page_reference: str
    page_currency: str
    page_ends_at: datetime | None


async def run_card_lookups(desk: Desk, stop: asyncio.Event, *, pause: float = 1.0) -> None:
    """Look after open card changes until told to stop; the pause between rounds is in seconds."""

    async def settle() -> bool:
        return await settle_card_changes(desk, now=utc_now()) > 0

    await repeat("card changes", settle, stop, rest=pause, due=True)


async def settle_card_changes(desk: Desk, *, now: datetime, most: int = 100) -> int:
    """Ask about the changes that are due and record what was found; returns how many were asked.
    Moves no money.

    Acquirers live in real time, so `now` is real time (UTC) and never a test clock's.
    """
    rows = queries.claim_card_changes(desk.database, now=now, most=most, lease=LEASE)
    lookups = [_lookup(row) for row in await records_of(_Row, rows)]
    findings = await asyncio.gather(*(_find(desk, lookup, now=now) for lookup in lookups))

    async def settle(one: tuple[CardLookup, Finding | None]) -> None:
        lookup, finding = one
        if not await _settled(desk, lookup, finding, now=now):
            await _ask_later(desk, lookup, now=now)

    worked = await one_by_one(list(zip(lookups, findings, strict=True)), settle)
    aside = await set_aside(desk.database, worked, _named, doing=noted("its outcome can't be recorded"))
    await one_by_one([lookup for lookup, _ in aside], partial(_ask_later, desk, now=now))
    return len(lookups)


def _named(one: tuple[CardLookup, Finding | None]) -> tuple[Shop, str]:
    """What a card change is called in the operator's list."""
    return one[0].change.shop, f"card change {one[0].change.id}"


def _lookup(row: _Row) -> CardLookup:
    change = CardChange(
        shop=Shop(row.merchant_id, row.live),
        id=row.id,
        state=row.state,
        key=row.idempotency_key,
        acquirer=row.acquirer,
        not_after=row.not_after,
        challenge_url=row.challenge_url,
        page=ChangePage(row.page_reference, row.page_currency, row.page_ends_at) if row.page_ends_at else None,
    )
    return CardLookup(change, row.created_at, row.lookups, row.alerted_at is not None, row.lookup_at)


async def _find(desk: Desk, lookup: CardLookup, *, now: datetime) -> Finding | None:
    """What the acquirer says, or None if it can't be reached;
    ends a challenge that nobody waits for.
    """
    change = lookup.change
    stale = change.state is CardChangeState.CHALLENGED and now > lookup.created_at + CHALLENGE_LIFETIME
    try:
        # One change whose acquirer is not configured any more must not hold up the others.
        acquirer = desk.acquirers[change.acquirer]
        if change.page is not None:
            return await _of_page(desk, acquirer, change, change.page, now=now)
        if stale:
            return await acquirer.end_challenge(change.key)
        return await acquirer.find(change.key, change.not_after + GRACE)
    except OutcomeUnknown:
        return None
    except Exception:
        log.exception("the look-up of a card change failed", change_id=change.id)
        return None


async def _of_page(desk: Desk, acquirer: Acquirer, change: CardChange, page: ChangePage, *, now: datetime) -> Finding:
    """What became of a change's page; one whose time is over is ended. Moves no money.
    Raises: OutcomeUnknown.

    Until its address is known it is asked for again. An acquirer that can't say in time ends the
    change all the same: nothing is taken there, and nobody has the address.
    """
    if page.reference:
        is_left = change.state is CardChangeState.ABANDONED
        ask = end_page if is_left or now > page.ends_at + GRACE else find_page
        try:
            return await ask(desk, change.opened_page(page))
        except OutcomeUnknown as error:
            if not isinstance(error.__cause__, NoSuchPage) or now <= page.ends_at + UNKNOWN_THERE:
                raise
            # Nothing is taken there: what the acquirer does not know ends the change.
            log.warning("the page of a card change is not known any more", change_id=change.id)
            return Voided()
    if now > change.not_after + GRACE:
        return NothingHeld()
    return await open_change(desk, acquirer, change)


async def _settled(desk: Desk, lookup: CardLookup, finding: Finding | None, *, now: datetime) -> bool:
    """Record a finding; false while the change stays open."""
    change = lookup.change
    if finding is None:
        return False
    if change.state is CardChangeState.ABANDONED:
        return await _is_let_go_of(desk, change, finding, now=now)
    if change.state is CardChangeState.CHALLENGED and isinstance(finding, Voided):
        # Nobody came back: no bank has refused, so it is not counted as a decline.
        reason = PAGE_LEFT if change.page else DeclineReason.AUTHENTICATION_FAILED
        left = CardChangeState.ABANDONED
        return not isinstance(await record_ending(desk.database, change, left, reason, now=now), Unsettled)
    if change.state is CardChangeState.CHALLENGED:
        return not isinstance(await record_finding(desk, change, finding, now=now), Unsettled)
    if isinstance(finding, Voided) or (isinstance(finding, NothingHeld) and now > lookup.change.not_after + GRACE):
        failed, reason = CardChangeState.FAILED, DeclineReason.PROCESSING_ERROR
        return not isinstance(await record_ending(desk.database, change, failed, reason, now=now), Unsettled)
    if isinstance(finding, NothingHeld):
        return False
    return not isinstance(await record(desk, change, finding, now=now), Unsettled)


async def _is_let_go_of(desk: Desk, change: CardChange, finding: Finding, *, now: datetime) -> bool:
    """Whether a page that was left is over; what was chosen there after all is let go of."""
    kept = finding.instrument.reference if isinstance(finding, Approved) and finding.instrument else ""
    may_come = isinstance(finding, Approved) and not kept and change.page is not None and now <= change.page.ends_at
    if may_come or isinstance(finding, Challenged | Pending):
        return False
    await let_go_of_chosen(desk.database, change, kept)
    return True


async def _ask_later(desk: Desk, lookup: CardLookup, *, now: datetime) -> None:
    """Give back a change that stayed open with its next date, and raise the alarm for one
    that is open too long.
    """
    change = lookup.change
    alarming = change.state is CardChangeState.PROCESSING and now - lookup.created_at > ALERT_AFTER
    if alarming and not lookup.alerted:
        log.error("the outcome of a card change is unknown for a day", change_id=change.id)
    await queries.schedule_card_change(
        desk.database,
        merchant_id=change.shop.merchant_id,
        live=change.shop.live,
        change_id=change.id,
        state=str(change.state),
        claimed_at=lookup.due_at,
        lookup_at=_next_look(lookup, now),
        alerted_at=now if alarming else None,
    )


def _page_pause(lookup: CardLookup, now: datetime) -> timedelta:
    """How long until a page is looked at again: its customer may choose, and never come back."""
    since = now - lookup.created_at
    return next((pause for until, pause in PAGE_LOOKS if since <= until), PAGE_LOOKS[-1][1])


def _next_look(lookup: CardLookup, now: datetime) -> datetime | None:
    """After 5 s, 1 min, 5 min, 1 h, then hourly, and when "not found" becomes final;
    an open page as one to pay on. One that was left is looked at for a week after its end.
    """
    change = lookup.change
    if change.state is CardChangeState.ABANDONED:
        over = change.page is None or now > change.page.ends_at + LOOK_BACK
        return None if over else now + _page_pause(lookup, now)
    if change.state is CardChangeState.CHALLENGED:
        return now + (_page_pause(lookup, now) if change.page else CHALLENGE_LOOK)
    later = now + BACKOFF[min(lookup.number, len(BACKOFF) - 1)]
    final = change.not_after + GRACE + timedelta(seconds=1)
    return min(later, final) if final > now else later
