"""Writing down what a dispute came to: money, fee, pingback,
each step once however often it is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paydesk.adapters.acquirers.disputes import Dispute
from paydesk.core.storable import storable_text
from paydesk.core.wording import noted
from paydesk.database.reading_again import READ_AGAIN
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.leases import Within
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.chargebacks.reckoning import (
    OF_NOBODY,
    REVERSED,
    ChargebackStep,
    ChargedBack,
    Verdict,
    Waits,
    next_step,
)
from paydesk.domain.payments.movement_effects import Told, told
from paydesk.domain.pingbacks import waking
from paydesk.domain.pingbacks.payload import ReversalReport

queries = load_statements(__package__ or "")

LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Booked:
    """What came of a telling: whether it changed anything, and why the rest of it has to wait
    (None: nothing does).
    """

    changed: bool
    waits: Waits | None = None
    doubtful: bool = False


async def record_dispute(
    within: Within, acquirer: str, dispute: Dispute, *, now: datetime, confirmed: bool = False
) -> Booked:
    """Write down how a dispute stands, step by step, in one transaction. Moves no money: the bank
    has done so.

    `now` is real time (UTC); `confirmed` says that the acquirer was just asked for this dispute.
    Raises: what `within` raises if it may not be written.
    """
    async with within() as connection:
        booked = await _recorded(connection, acquirer, dispute, now=now, confirmed=confirmed)
    if booked.changed:
        waking.told()
    return booked


async def _recorded(
    connection: Connection, acquirer: str, dispute: Dispute, *, now: datetime, confirmed: bool
) -> Booked:
    changed = False
    for _ in range(READ_AGAIN):
        row = record_if_any(
            ChargedBack,
            await queries.find_charged_back(
                connection,
                acquirer=acquirer,
                of_key=dispute.of_key,
                acquirer_reference=dispute.reference,
                real_now=now,
            ),
        )
        if row is None:
            return await _of_nobody(connection, acquirer, dispute)
        step = next_step(row, dispute, confirmed=confirmed)
        match step:
            case Verdict():
                if row.chargeback_id is not None:
                    await queries.note_answer(
                        connection,
                        merchant_id=row.merchant_id,
                        live=row.live,
                        id=row.chargeback_id,
                        respond_by=dispute.respond_by,
                        answered=bool(dispute.answered),
                    )
                return Booked(changed, doubtful=step is Verdict.DOUBTFUL)
            case Waits():
                return Booked(changed, waits=step)
            case ChargebackStep():
                changed = await _book(connection, acquirer, dispute, row, step, now) or changed
    return Booked(changed, Waits(noted("its payment changes all the time"), soon=True))


async def _of_nobody(connection: Connection, acquirer: str, dispute: Dispute) -> Booked:
    """A dispute of a purchase that we have no row of:
    of a test side that was emptied, it is nobody's any more.
    """
    if await queries.is_forgotten(connection, acquirer=acquirer, of_key=dispute.of_key):
        return Booked(changed=False)
    return Booked(changed=False, waits=OF_NOBODY)


async def _book(
    connection: Connection, acquirer: str, dispute: Dispute, row: ChargedBack, step: ChargebackStep, now: datetime
) -> bool:
    """Write one step down; False if the payment has changed since it was worked out."""
    pingback = told(row, _report(row, dispute, step)) if step.event else Told()
    booked = await queries.book(
        connection,
        **_chargeback(acquirer, dispute, row, step),
        asked_at=now,
        payment_state=step.payment_state and str(step.payment_state),
        charged_back=step.charged_back,
        pending_taken=step.pending_taken,
        reserve_taken=step.reserve_taken,
        kinds=[kind for kind, _, _ in step.entries],
        accounts=[account for _, account, _ in step.entries],
        amounts=[amount for _, _, amount in step.entries],
        step=((row.returns if step.event == REVERSED else row.takes) or 0) + 1,
        told=pingback.event is not None,
        event=step.event,
        send_to=pingback.send_to,
        pingback_format=pingback.pingback_format,
        payload=pingback.payload,
        now=row.shop_now,
    )
    if booked is not None and step.reckoned:
        await _tell_reckoned(connection, dispute, row, step, now)
    return booked is not None


def _chargeback(acquirer: str, dispute: Dispute, row: ChargedBack, step: ChargebackStep) -> dict[str, object]:
    """What a chargeback is about, and where the step leaves it."""
    return {
        "merchant_id": row.merchant_id,
        "live": row.live,
        "payment_id": row.payment_id,
        "revision": row.revision,
        "id": row.reference_id,
        "acquirer": acquirer,
        "acquirer_reference": dispute.reference,
        "state": str(step.state),
        "amount": step.sums.amount,
        "currency": row.currency,
        "disputed_amount": dispute.amount,
        "disputed_currency": dispute.currency,
        "taken": step.sums.taken,
        "returned": step.sums.returned,
        "fee": step.fee,
        "reason": storable_text(dispute.reason, longest=LONGEST_REASON),
        "aside": step.aside,
        "ends_subscription": step.against,
        "told_at": dispute.at,
    }


def _report(row: ChargedBack, dispute: Dispute, step: ChargebackStep) -> ReversalReport:
    elsewhere = dispute.currency != row.currency
    return ReversalReport(
        event=step.event or "",
        status=step.status,
        reference_id=row.reference_id,
        chargeback_amount=step.moved,
        reason=None if step.event == REVERSED else storable_text(dispute.reason, longest=LONGEST_REASON),
        disputed_amount=dispute.amount if elsewhere else None,
        disputed_currency=dispute.currency if elsewhere else None,
    )


async def _tell_reckoned(
    connection: Connection, dispute: Dispute, row: ChargedBack, step: ChargebackStep, now: datetime
) -> None:
    """Tell the operator that nobody knows what a dispute is worth in the payment's currency."""
    alarm = Alarm(
        AlarmKind.dispute_reckoned,
        f"chargeback {row.reference_id}",
        noted(
            "it is over %(amount)s %(currency)s; %(step_amount)s %(row_currency)s of payment %(payment_id)s were "
            "booked, since the acquirer did not say what it is worth there",
            amount=dispute.amount,
            currency=dispute.currency,
            step_amount=step.sums.amount,
            row_currency=row.currency,
            payment_id=row.payment_id,
        ),
        row.shop,
    )
    await raise_alarms(connection, [alarm], now=now)
