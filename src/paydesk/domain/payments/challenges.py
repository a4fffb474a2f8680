"""Challenges and pages of an acquirer's that a customer comes back from, or leaves for another way
to pay.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from paydesk.adapters.acquirers.interface import (
    Approved,
    Challenged,
    Declined,
    DeclineReason,
    Finding,
    NothingHeld,
    OutcomeUnknown,
    Pending,
    Voided,
)
from paydesk.core.errors import Conflict, Gone
from paydesk.domain.payments import card_guard
from paydesk.domain.payments.asking_pages import end_page, find_page
from paydesk.domain.payments.checkouts import Attempt, Checkout, Standing
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.outcomes import (
    Ending,
)
from paydesk.domain.payments.results import (
    ConfirmWithBank,
    Paid,
    Refused,
    Result,
    Unsettled,
    record_answer,
    record_ending,
)
from paydesk.domain.payments.states import PAGE_LEFT, AttemptState


async def settle_challenge(desk: Desk, checkout: Checkout, attempt: Attempt, *, now: datetime) -> Result:
    """Ask the acquirer how a challenge went, and record it:
    the customer has come back from the bank. Moves no money.

    A challenge that is still open stays as it is, and its address is returned.

    Raises: Conflict if that paid the order through another checkout.
    """
    try:
        finding = await _find(desk, checkout, attempt)
    except OutcomeUnknown:
        return Unsettled()
    if isinstance(finding, Challenged):
        return ConfirmWithBank(attempt.challenge_url)
    return await _record_finding(desk, checkout, attempt, finding, now=now)


async def leave_challenge(desk: Desk, checkout: Checkout, attempt: Attempt, *, now: datetime) -> Result | None:
    """End an open challenge so that the customer may pay another way. Moves no money.

    Returns None once the way is free, otherwise what the challenge had come to before (paid, or
    not known). A page of the acquirer's that can't be ended is abandoned all the same: what is paid
    there is given back.

    Raises: Conflict if the challenge paid the order through another checkout.
    """
    try:
        finding = await _end(desk, checkout, attempt)
    except OutcomeUnknown:
        return Unsettled()
    if isinstance(finding, Challenged) and attempt.page_ends_at is not None:
        finding = Voided()
    result = await _record_finding(desk, checkout, attempt, finding, now=now)
    return None if isinstance(result, Refused) else result


async def clear_the_way(
    checkout: Checkout, leave: Callable[[Attempt], Awaitable[Result | None]], *, now: datetime
) -> Result | None:
    """Have an open challenge left before a checkout is paid anew; `leave` returns None once the way
    is free, and so does this. Moves no money.

    Raises: Conflict if the checkout is no longer open, Gone if it expired.
    """
    if checkout.standing is Standing.CHALLENGED and checkout.attempt is not None:
        settled = await leave(checkout.attempt)
        if settled is None and checkout.expires_at <= now:
            raise Gone("this checkout has expired")
        return settled
    if checkout.standing is not Standing.OPEN:
        raise Conflict(f"this checkout is {checkout.standing}")
    return None


async def _find(desk: Desk, checkout: Checkout, attempt: Attempt) -> Finding:
    """How a challenge, or a page of the acquirer's, stands. Raises: OutcomeUnknown."""
    page = attempt.page(checkout.shop)
    if page is not None:
        return await find_page(desk, page)
    return await desk.acquirers[attempt.acquirer].find(attempt.key, attempt.not_after)


async def _end(desk: Desk, checkout: Checkout, attempt: Attempt) -> Finding:
    """End a challenge, or a page of the acquirer's. Raises: OutcomeUnknown."""
    page = attempt.page(checkout.shop)
    if page is not None:
        return await end_page(desk, page)
    return await desk.acquirers[attempt.acquirer].end_challenge(attempt.key)


async def _record_finding(
    desk: Desk,
    checkout: Checkout,
    attempt: Attempt,
    finding: Finding,
    *,
    now: datetime,
) -> Result:
    # The acquirer knew the key when it asked for the challenge: that it knows nothing now is
    # no answer.
    if isinstance(finding, Challenged | NothingHeld):
        return Unsettled()
    if isinstance(finding, Approved | Declined | Pending):
        result = await record_answer(desk, checkout, attempt.id, finding, now=now)
        if isinstance(finding, Approved):
            counts = card_guard.address_counts(desk.vault, attempt.client_address)
            desk.forgive(checkout.shop, counts)
        if isinstance(result, Paid) and attempt.checkout_id != checkout.id:
            raise Conflict("the order was paid through another checkout")
        return result
    reason = str(DeclineReason.AUTHENTICATION_FAILED) if attempt.page_ends_at is None else PAGE_LEFT
    ending = Ending(checkout.shop, attempt.id, AttemptState.ABANDONED, reason)
    return await record_ending(desk, ending, now=now)
