"""Attempts without an outcome, as the janitor asks about them: what is known of one,
and when it is asked about again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.asking_pages import OpenedPage
from paydesk.domain.payments.desk import KEY_LIFETIME
from paydesk.domain.payments.outcomes import CHALLENGE_LOOK, PAGE_LOOK
from paydesk.domain.payments.pending import PENDING_LOOK
from paydesk.domain.payments.states import NOT_PAID, AttemptState

queries = load_statements(__package__ or "")

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

PAGE_LOOKS = (
    (timedelta(minutes=5), PAGE_LOOK),
    (timedelta(minutes=30), timedelta(minutes=5)),
    (timedelta(hours=2), timedelta(minutes=15)),
    (timedelta(days=2), timedelta(hours=1)),
)
"""Until how long after it was opened, or given up, a page of an acquirer's is looked at how often:
its customer may pay and never come back to us. Some 40 questions for a page that is open for a day;
a notification and the customer's return hurry the next one.
"""

ENDING_LOOK = timedelta(minutes=1)
"""How soon a page that could not be ended is to be ended again."""

UNKNOWN_THERE = timedelta(minutes=10)
"""How long after its end a page that its acquirer does not know may turn up, or its payment."""

PENDING_LOOKS = 96
"""How often an acquirer is asked at most, while its method may last, for a pending payment."""

UNDO_AGAIN = timedelta(minutes=5)
"""The longest pause before a second charge that could not be undone is undone again."""

REFUSED_LOOKS = 24
"""How many times an acquirer that will not undo it is asked within the first day; then daily."""

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
    how far at most. `due_at` is when it was to be asked about. `page_ending` is whether nobody is
    to pay on its page any more. `unattended`: its customer is not there to be asked anything.

    `sure_by` is the shop's own time, too: a test clock that passes it lets the days of a slow
    method be over.
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
    unattended: bool = False
    amount: Decimal = Decimal(0)
    currency: str = ""
    capture: bool = True
    reference: str = ""
    page_ends_at: datetime | None = None
    page_ending: bool = False
    due_at: datetime | None = None
    slow: bool = False
    sure_by: datetime | None = None
    was_pending: bool = False

    @property
    def page(self) -> OpenedPage | None:
        """The page of the acquirer's on which its customer pays, if that is how they pay."""
        if self.page_ends_at is None:
            return None
        return OpenedPage(
            self.shop,
            self.attempt_id,
            self.acquirer,
            self.key,
            self.reference,
            self.amount,
            self.currency,
            self.page_ends_at,
            self.slow,
        )

    @property
    def sure_at(self) -> datetime | None:
        """When the bank of a pending one knows at the latest, in real time."""
        return self.sure_by and self.sure_by - self.clock


class _Row(msgspec.Struct, frozen=True):
    """A row of `claim_lookups`; its times but `not_after` are the shop's."""

    merchant_id: int
    live: bool
    attempt_id: int
    payment_id: int
    checkout_id: int | None
    renewal: bool
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
    acquirer_reference: str
    lookup_at: datetime
    page_ends_at: datetime | None
    page_ending: bool
    slow: bool
    sure_by: datetime | None
    decline_reason: str | None
    clock: timedelta


async def claim_lookups(database: Database, *, now: datetime, most: int) -> list[Lookup]:
    """Lease the attempts that are due (`now` is real time), so that nobody else asks meanwhile."""
    rows = queries.claim_lookups(database, now=now, most=most, lease=LEASE)
    return [_lookup(row) for row in await records_of(_Row, rows)]


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
        renewal=row.renewal,
        unattended=row.checkout_id is None,
        clock=row.clock,
        amount=row.amount,
        currency=row.currency,
        capture=row.capture,
        reference=row.acquirer_reference,
        page_ends_at=row.page_ends_at,
        page_ending=row.page_ending,
        due_at=row.lookup_at,
        slow=row.slow,
        sure_by=row.sure_by,
        was_pending=row.decline_reason == NOT_PAID,
    )


def next_look(
    lookup: Lookup, now: datetime, *, still_pending: bool = False, is_refused: bool = False
) -> datetime | None:
    """When to ask again: after 5 s, 1 min, 5 min, 1 h, then hourly,
    and when "not found" becomes final.

    An attempt that was given up is asked for every few minutes for a day, so that a second charge
    is undone within minutes of turning up, then hourly, and never again once it has stayed quiet
    for a week; one whose customer's bank has yet to say whether it pays until that has. An acquirer
    that will not undo one (`is_refused`) is asked so often only for a day, and then daily.
    """
    if lookup.state is AttemptState.PENDING:
        return _next_look_at_pending(lookup, now)
    if still_pending:
        return _next_round(now, PENDING_LOOK)
    if lookup.page is not None and lookup.state is not AttemptState.VOIDING:
        return _next_look_at(lookup, lookup.page, now)
    if lookup.state in (AttemptState.FAILED, AttemptState.ABANDONED):
        quiet = now - (lookup.finished_at or lookup.created_at)
        return next((_next_round(now, pause) for until, pause in LATE_LOOKS if quiet <= until), None)
    if lookup.state is AttemptState.CHALLENGED:
        return now + CHALLENGE_LOOK
    later = now + BACKOFF[min(lookup.number, len(BACKOFF) - 1)]
    if is_refused:
        return later if lookup.number < REFUSED_LOOKS else now + timedelta(days=1)
    if lookup.state is AttemptState.VOIDING:
        return min(later, now + UNDO_AGAIN)
    final = lookup.not_after + GRACE + timedelta(seconds=1)
    return min(later, final) if lookup.state is AttemptState.PROCESSING and final > now else later


def _next_look_at(lookup: Lookup, page: OpenedPage, now: datetime) -> datetime | None:
    """When to look at a page again: often while its customer is likely there, until its own end.

    One that was given up is looked at until its acquirer has said that nobody pays there any more:
    a look that learnt nothing is followed by another, for a week. One whose address nobody ever had
    is not, unless its customer had paid by a slow method: that is asked for by its key.
    """
    if lookup.state is AttemptState.PROCESSING:
        later, final = now + BACKOFF[min(lookup.number - 1, 1)], lookup.not_after + GRACE + timedelta(seconds=1)
        return min(later, final) if final > now else later
    over = page.expires_at + GRACE
    if lookup.state in (AttemptState.FAILED, AttemptState.ABANDONED):
        if not page.reference and not lookup.was_pending:
            return None
        if now > over:
            quiet = now - max(over, lookup.finished_at or over)
            return next((_next_round(now, pause) for until, pause in LATE_LOOKS if quiet <= until), None)
    if lookup.page_ending and now <= over:
        return min(now + ENDING_LOOK, over + timedelta(seconds=1))
    since = now - (lookup.finished_at or lookup.created_at)
    pause = next((pause for until, pause in PAGE_LOOKS if since <= until), PAGE_LOOKS[-1][1])
    return now + pause if now > over else min(now + pause, over + timedelta(seconds=1))


def _next_look_at_pending(lookup: Lookup, now: datetime) -> datetime:
    """When to ask again for a pending payment: often at first, for some methods take minutes,
    then hourly, and when its bank is to know.

    For a renewal nobody waits: it is asked for hourly, and the more rarely, the longer its method
    may take.
    """
    sure = lookup.sure_at
    if lookup.unattended:
        pause = max(PENDING_LOOK, (sure - lookup.created_at) / PENDING_LOOKS) if sure else PENDING_LOOK
    else:
        since = now - lookup.created_at
        pause = next((pause for until, pause in PAGE_LOOKS[:2] if since <= until), PENDING_LOOK)
    return now + pause if sure is None or sure <= now else min(now + pause, sure + timedelta(seconds=1))


def _next_round(now: datetime, pause: timedelta) -> datetime:
    """The next whole number of pauses after midnight (UTC), at which all are asked together."""
    return now + pause - (now - now.replace(hour=0, minute=0, second=0, microsecond=0)) % pause


def is_alarming(lookup: Lookup, now: datetime) -> bool:
    """Whether money may hang on an attempt that has been open for too long."""
    if lookup.state is AttemptState.PENDING:
        return lookup.sure_at is not None and now - lookup.sure_at > ALERT_AFTER
    if lookup.page is not None and lookup.state in (AttemptState.CHALLENGED, AttemptState.ABANDONED):
        return now - lookup.page.expires_at > ALERT_AFTER
    return lookup.state in (AttemptState.PROCESSING, AttemptState.VOIDING) and now - lookup.created_at > ALERT_AFTER
