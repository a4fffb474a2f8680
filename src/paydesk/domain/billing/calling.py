"""Asking an acquirer for one charge without its customer whose intent is committed,
while its caller waits for the answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.adapters.acquirers.interface import (
    Acquirer,
    AcquirerRefused,
    Approved,
    Declined,
    DeclineReason,
    is_earlier,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.core.clock import utc_now
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.forgotten_purchases import Wish
from paydesk.domain.payments.marking import BegunAttempt
from paydesk.domain.payments.off_session import charge_unattended, decided
from paydesk.domain.payments.outcomes import Approval, Ending, record_approvals, record_endings
from paydesk.domain.payments.refused_requests import RefusedRequest, report_refused
from paydesk.domain.payments.states import AttemptState
from paydesk.domain.payments.unanswered import left_to_the_janitor


@dataclass(frozen=True, slots=True)
class Begun:
    """A charge whose intent is committed: what is asked, and of whom."""

    report: BegunAttempt
    acquirer: Acquirer
    wish: Wish


def begun_since(
    since: datetime,
    desk: Desk,
    shop: Shop,
    report: BegunAttempt,
    acquirer: Acquirer,
    purchase: Purchase,
    *,
    now: datetime,
    real_now: datetime,
) -> Begun:
    """A charge that may have been forgotten, and asked for at any time `since` there is what it
    charges: the acquirer may have forgotten its key, too. `since` and `now` are the shop's time.
    """
    age = max(now - since, timedelta(0))
    wish = Wish(
        shop,
        report.attempt_id,
        purchase,
        desk.pads,
        may_be_old=age > acquirer.key_lifetime,
        was_forgotten=report.was_forgotten,
        since=real_now - age,
    )
    return Begun(report, acquirer, wish)


async def call_and_record(desk: Desk, shop: Shop, begun: Begun, *, now: datetime) -> None:
    """Ask the acquirer and record its answer, even if the caller goes away meanwhile.
    Moves money.
    """
    call = asyncio.create_task(_call_and_record(desk, shop, begun, now=now))
    desk.under_way.add(call)
    call.add_done_callback(desk.under_way.discard)
    await asyncio.shield(call)


async def _call_and_record(desk: Desk, shop: Shop, begun: Begun, *, now: datetime) -> None:
    """Ask the acquirer and record its answer; whatever goes wrong leaves the attempt
    to the janitor. Moves money.
    """
    attempt_id = begun.report.attempt_id
    with left_to_the_janitor(attempt_id=attempt_id):
        answer = await _asked(desk, shop, begun)
        if isinstance(answer, Approved):
            # What took up an older purchase is not what its intent said.
            report = None if is_earlier(answer, begun.wish.purchase.not_after) else begun.report
            await record_approvals(desk.database, [Approval(shop, attempt_id, answer, report)], now=now)
        else:
            ending = Ending(shop, attempt_id, AttemptState.DECLINED, answer.reason)
            await record_endings(desk.database, [ending], now=now, real_now=utc_now())


async def _asked(desk: Desk, shop: Shop, begun: Begun) -> Approved | Declined:
    """The acquirer's answer; a request that is refused as such is a decline. Moves money.

    Raises: OutcomeUnknown.
    """
    try:
        return decided(await charge_unattended(desk.database, begun.acquirer, begun.wish))
    except AcquirerRefused as error:
        refused = RefusedRequest(shop, begun.acquirer.name, f"attempt {begun.report.attempt_id}", str(error))
        await report_refused(desk.database, [refused], now=utc_now())
        return Declined(DeclineReason.REQUEST_REFUSED)
