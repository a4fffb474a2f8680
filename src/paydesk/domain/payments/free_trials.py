"""Free trials that begin without a card: a payment of 0 of which no acquirer is asked, and a
subscription that ends with its trial, unless its customer gives a card by then.

Nobody is called between intent and outcome, so both are committed together, or neither.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from paydesk.adapters.acquirers.interface import Approved
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.payments import card_guard, metrics, preparing
from paydesk.domain.payments.challenges import clear_the_way, leave_challenge
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hosting import Guest
from paydesk.domain.payments.marking import BegunAttempt
from paydesk.domain.payments.outcomes import Approval, record_within
from paydesk.domain.payments.results import Paid, Refused, Result
from paydesk.domain.payments.returning import Way, way_back
from paydesk.domain.payments.stored_cards import unknown_row
from paydesk.domain.subscriptions.awaiting_cards import await_card
from paydesk.domain.subscriptions.rows import NO_ACCOUNT

queries = load_statements(__package__ or "")

NOBODY_ASKED = Approved("")
"""The answer of no acquirer to a payment of 0."""


async def begin_free_trial(desk: Desk, checkout: Checkout, guest: Guest, *, now: datetime) -> Result:
    """Begin a checkout's free trial without a card, once however often this is called.
    Moves no money.

    An open attempt with a card is ended first. `now` is the merchant's time, UTC.

    Raises: Conflict if the checkout is no longer open, or needs a card by now, Gone if it expired,
        Held.
    """
    await desk.gate.require()
    if checkout.needs_card:
        raise Conflict("this checkout takes a card")
    settled = await clear_the_way(checkout, partial(leave_challenge, desk, checkout, now=now), now=now)
    if settled is not None:
        return settled
    counts = card_guard.trial_counts(desk.vault, guest.email, guest.client_address)
    counted_at = utc_now()
    known = await preparing.prepare(desk, checkout, guest.client_address, counts, counted_at=counted_at, now=now)
    if refusal := preparing.why_refused(known):
        return Refused(refusal)
    async with preparing.still_there(checkout), desk.database.acquire() as connection, connection.transaction():
        begun = await _begin(connection, desk, checkout, guest, known, now=now)
    if not begun:
        desk.later(card_guard.take_back(desk.database, checkout.shop, counts, counted_at=counted_at))
        raise Conflict("another attempt at this order is under way")
    metrics.PAYMENTS.labels("approved").inc()
    return Paid(leads_back=way_back(checkout) is Way.ITSELF)


async def _begin(
    connection: Connection,
    desk: Desk,
    checkout: Checkout,
    guest: Guest,
    known: preparing.Prepared,
    *,
    now: datetime,
) -> bool:
    """Write down intent, outcome and what ends the trial; false if another attempt was faster."""
    shop = checkout.shop
    begun = record_if_any(
        BegunAttempt,
        await queries.begin_attempt(
            connection,
            **preparing.attempt_row(desk, checkout, known, guest.agreed, guest.client_address),
            previous_attempt_id=checkout.attempt.id if checkout.attempt else None,
            acquirer=NO_ACCOUNT,
            capture=True,
            **unknown_row(known.card_id),
            **preparing.customer_row(checkout, guest.email, checkout.entered.country, guest.language),
            not_after=utc_now(),
            lookup_at=None,
            now=now,
        ),
    )
    if begun is None:
        return False
    leads_back = way_back(checkout) is Way.ITSELF
    approval = Approval(shop, known.attempt_id, NOBODY_ASKED, leads_back=leads_back)
    recorded = await record_within(connection, approval, now=now)
    assert recorded, "nobody else has seen the attempt"
    await await_card(connection, shop, begun.payment_id, now=now)
    return True
