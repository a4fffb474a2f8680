"""What an attempt to pay has come to, as its customer is to see it, and writing that down."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paydesk.adapters.acquirers.interface import (
    Approved,
    Declined,
    Outcome,
    Pending,
)
from paydesk.core.clock import utc_now
from paydesk.domain.payments import card_guard
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.outcomes import (
    CHALLENGE_LOOK,
    Approval,
    Ending,
    record_approvals,
    record_challenge,
    record_endings,
)
from paydesk.domain.payments.pending import OnItsWay, record_pending
from paydesk.domain.payments.states import PAGE_LEFT, AttemptState


@dataclass(frozen=True, slots=True)
class Paid:
    """The order is paid; with `leads_back` it is written down that this answer leads the customer
    to the shop.
    """

    leads_back: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was taken; `reason` is a DeclineReason or the name of a guard
    (too_many_attempts, suspended).
    """

    reason: str


@dataclass(frozen=True, slots=True)
class ConfirmWithBank:
    """The customer must go to `url`."""

    url: str


@dataclass(frozen=True, slots=True)
class Unsettled:
    """The outcome is not known yet, or the money not sure; the janitor will find it."""


Result = Paid | Refused | ConfirmWithBank | Unsettled


async def record_answer(
    desk: Desk,
    checkout: Checkout,
    attempt_id: int,
    answer: Outcome,
    *,
    look_in: timedelta = CHALLENGE_LOOK,
    now: datetime,
) -> Result:
    """Record an answer; if the janitor was faster,
    what it recorded is what the customer will see. A challenge is looked at `look_in` from now.
    """
    shop = checkout.shop
    if isinstance(answer, Approved):
        return await record_approval(desk, Approval(shop, attempt_id, answer), now=now)
    if isinstance(answer, Declined):
        return await record_ending(desk, Ending(shop, attempt_id, AttemptState.DECLINED, answer.reason), now=now)
    if isinstance(answer, Pending):
        await record_pending(desk.database, [OnItsWay(shop, attempt_id, answer)], now=utc_now())
        return Unsettled()
    asked = await record_challenge(desk.database, shop, attempt_id, answer, look_in=look_in, now=utc_now())
    return ConfirmWithBank(answer.url) if asked else Unsettled()


async def record_approval(desk: Desk, approval: Approval, *, now: datetime) -> Result:
    """Record that an order is paid, unless somebody was faster."""
    recorded = await record_approvals(desk.database, [approval], now=now)
    return Paid(leads_back=approval.leads_back) if recorded else Unsettled()


async def record_ending(desk: Desk, ending: Ending, *, now: datetime) -> Refused | Unsettled:
    """Record that nothing was taken, and count it against card testing."""
    recorded = await record_endings(desk.database, [ending], now=now, real_now=utc_now())
    if recorded and ending.reason != PAGE_LEFT:
        desk.later(card_guard.count_declines(desk.database, [ending.shop], desk.limits_of, now=utc_now()))
    return Refused(str(ending.reason)) if recorded else Unsettled()
