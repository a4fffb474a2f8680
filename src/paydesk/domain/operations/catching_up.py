"""Captures, voids and refunds that an acquirer has made and our books don't know:
written down as what they were.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import structlog

from paydesk.adapters.acquirers.listing import ListedPurchase, ListedRefund, PurchaseState
from paydesk.core.money import written
from paydesk.database.pool import AWAY
from paydesk.domain.acquirers.leases import ReadByAnother, Within
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.differences import Adopted, BookedAttempt, Differing
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.found_movements import Held, record_ending, record_refund
from paydesk.domain.payments.states import AttemptState, MovementKind, PaymentState

log = structlog.get_logger()

_ENDINGS = {PurchaseState.CAPTURED: MovementKind.CAPTURE, PurchaseState.ENDED: MovementKind.VOID}


async def catch_up(
    desk: Desk, acquirer: str, differing: Sequence[Differing], *, within: Within, now: datetime
) -> AsyncIterator[Adopted]:
    """Record what was captured, let go of and given back at an acquirer, oldest first;
    what was written.

    What does not fit its payment is left as it is. Moves no money; `now` is real time, UTC. Raises:
    ReadByAnother, one of AWAY.
    """
    endings = [one for one in differing if isinstance(one.listed, ListedPurchase)]
    refunds = [one for one in differing if isinstance(one.listed, ListedRefund)]
    for one in (*endings, *sorted(refunds, key=lambda each: each.listed.at)):
        attempt = one.booked
        if not isinstance(attempt, BookedAttempt) or not attempt.holds:
            continue
        held = Held(
            shop=Shop(attempt.merchant_id, attempt.live),
            payment_id=attempt.payment_id,
            attempt_id=attempt.id,
            acquirer=acquirer,
            key=attempt.key,
            reference=one.listed.reference,
            clock=attempt.clock,
        )
        try:
            reason = await _recorded(desk.pads, held, one, attempt, within=within, now=now)
        except (*AWAY, ReadByAnother):
            raise
        except Exception as error:
            log.warning("what an acquirer has made can't be recorded", key=one.listed.key, exc_info=error)
            continue
        if reason:
            log.warning("what was forgotten is recorded", key=one.listed.key, payment_id=held.payment_id, what=reason)
            what = one.difference.what
            yield Adopted(
                acquirer, what, one.listed.key, one.listed.reference, reason, held.shop.merchant_id, held.payment_id
            )


async def _recorded(
    pads: bytes, held: Held, one: Differing, attempt: BookedAttempt, *, within: Within, now: datetime
) -> str:
    """What was recorded, in words; empty if nothing was."""
    listed = one.listed
    amount = f"{written(listed.amount, listed.currency)} {listed.currency}"
    if isinstance(listed, ListedRefund):
        fits = listed.made and listed.currency == attempt.currency and attempt.state == AttemptState.APPROVED
        if not fits or not await record_refund(within, held, listed, now=now):
            return ""
        where = "" if listed.key else ", in the acquirer's own pages"
        return f"a refund of {amount} of payment {held.payment_id}{where}"
    kind = _ENDINGS.get(listed.state)
    is_whole = listed.state is not PurchaseState.CAPTURED or listed.captured == attempt.amount
    if kind is None or not is_whole or attempt.payment_state != PaymentState.AUTHORIZED:
        return ""
    if not await record_ending(within, held, kind, pads, at=listed.at, now=now):
        return ""
    return f"the {kind} of {amount} of payment {held.payment_id}"
