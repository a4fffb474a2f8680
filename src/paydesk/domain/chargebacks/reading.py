"""Reading what acquirers say of disputes, and writing it down once: money, fee, pingback, the subscription's end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import structlog

from paydesk.adapters.acquirers.interface import AcquirerRefused, Dispute, DisputeStatus, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.money import split_reversal
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.payments.after import PART, WHOLE, funds_of, told
from paydesk.domain.payments.paying import Desk
from paydesk.domain.payments.states import AttemptState, PaymentState
from paydesk.domain.pingbacks.payload import ReversalReport
from paydesk.domain.subscriptions.ending import cancel
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "")
log = structlog.get_logger()

OPENED, REVERSED = "chargeback", "chargeback_reversed"
"""The events, beyond the spec's three."""

LEASE = timedelta(minutes=1)
PAUSE = 5.0
"""Seconds between two looks at an acquirer's disputes."""

READ_AGAIN = 10

_UNDECIDED = frozenset({PaymentState.PROCESSING, PaymentState.CHALLENGED, PaymentState.AUTHORIZED})


async def run_disputes(desk: Desk, stop: asyncio.Event) -> None:
    """Read disputes until told to stop."""

    async def read() -> None:
        await read_disputes(desk, now=utc_now())

    await repeat("disputes", read, stop, rest=PAUSE)


async def read_disputes(desk: Desk, *, now: datetime) -> int:
    """Record the disputes that are new at any acquirer, and how known ones ended; returns how many changed something.

    Money has moved at the acquirer before this is called. `now` is real time (UTC): a test side's own time is ahead by
    its clock. An acquirer that another worker is reading is left to it.
    """
    changed = 0
    for name in desk.acquirers:
        place = await queries.claim_reading(desk.database, acquirer=name, lease=LEASE)
        if place is not None:
            changed += await _read(desk, name, place["place"], now=now)
    await _cancel_subscriptions(desk.database, now=now)
    return changed


async def _read(desk: Desk, acquirer: str, place: str, *, now: datetime) -> int:
    """Read on from a place, page by page; what can't be recorded yet is read again the next time."""
    changed, reading = 0, True
    try:
        while reading:
            page = await desk.acquirers[acquirer].disputes(place)
            recorded = [await record_dispute(desk.database, acquirer, dispute, now=now) for dispute in page.disputes]
            changed += sum(1 for one in recorded if one)
            reading = bool(page.disputes) and None not in recorded
            place = place if None in recorded else page.next
    except (AcquirerRefused, OutcomeUnknown) as error:
        log.warning("an acquirer's disputes can't be read", acquirer=acquirer, why=str(error))
    finally:
        await queries.end_reading(desk.database, acquirer=acquirer, place=place, now=now)
    return changed


async def record_dispute(database: Database, acquirer: str, dispute: Dispute, *, now: datetime) -> bool | None:
    """Write down how a dispute stands; however often it is told, each step counts once.

    Returns whether it changed anything, or None if its payment is not settled enough to tell yet. `now` is real time.
    """
    changed = False
    for _ in range(READ_AGAIN):
        row = await queries.disputed(
            database,
            acquirer=acquirer,
            of_key=dispute.of_key,
            acquirer_reference=dispute.reference,
            real_now=now,
        )
        step = _next_step(row, dispute)
        if step is None or step is False:
            return changed if step is False else None
        written = await step(database, acquirer, dispute, row)
        changed = changed or written
    log.error("a dispute changes all the time", reference=dispute.reference)
    return None


Step = Callable[[Database, str, Dispute, Mapping[str, Any]], Awaitable[bool]]
"""Writes down the next state of a dispute; False if the payment has changed since it was worked out."""


def _next_step(row: Mapping[str, Any] | None, dispute: Dispute) -> Step | Literal[False] | None:
    """What is to be written next; False if nothing is (any more), None if it is too early to tell."""
    if dispute.status in (DisputeStatus.INQUIRY, DisputeStatus.DROPPED):
        return False
    if row is None:
        log.error("a dispute of a payment that nobody knows", reference=dispute.reference)
        return False
    if row["chargeback_id"] is None:
        return _first_step(row, dispute)
    if ChargebackState(row["chargeback_state"]) is not ChargebackState.OPEN:
        return False
    endings: dict[DisputeStatus, Step] = {DisputeStatus.WON: _win, DisputeStatus.LOST: _lose}
    return endings.get(dispute.status, False)


def _first_step(row: Mapping[str, Any], dispute: Dispute) -> Step | Literal[False] | None:
    """How a dispute that is new to us is written down, by where its payment stands."""
    state = PaymentState(row["state"])
    if state in _UNDECIDED and row["attempt_state"] in (AttemptState.PROCESSING, AttemptState.APPROVED):
        return None
    left = row["amount"] - row["refunded"] - row["charged_back"]
    if state in (PaymentState.CAPTURED, PaymentState.PARTIALLY_REFUNDED) and dispute.amount <= left:
        return _open
    given_back = state in (PaymentState.PARTIALLY_REFUNDED, PaymentState.REFUNDED)
    if given_back and dispute.status is DisputeStatus.WON and dispute.amount <= row["amount"]:
        return _record_won
    log.error(
        "a dispute does not fit its payment",
        reference=dispute.reference,
        payment_id=row["payment_id"],
        state=str(state),
        amount=str(dispute.amount),
        left=str(left),
    )
    return False


async def _open(database: Database, acquirer: str, dispute: Dispute, row: Mapping[str, Any]) -> bool:
    """The bank took the money: out of reserve, pending, then available money, with a fee on top."""
    parts = split_reversal(funds_of(row), dispute.amount, fees_returned=False)
    fee = row["chargeback_fee"]
    entries = (
        ("chargeback", "acquirer", -dispute.amount),
        ("chargeback", "pending", parts.pending),
        ("chargeback", "available", parts.available),
        ("chargeback", "reserve", parts.reserve),
        *((("chargeback_fee", "available", fee), ("chargeback_fee", "fees", -fee)) if fee else ()),
    )
    report = _report(OPENED, "reversal_chargeback", row, dispute.amount, dispute.reason)
    written = await queries.open_chargeback(
        database,
        **_chargeback(acquirer, dispute, row),
        pending_taken=parts.pending,
        reserve_taken=parts.reserve,
        kinds=[kind for kind, _, _ in entries],
        accounts=[account for _, account, _ in entries],
        amounts=[amount for _, _, amount in entries],
        **_pingback(row, report),
    )
    return written is not None


async def _win(database: Database, _acquirer: str, _dispute: Dispute, row: Mapping[str, Any]) -> bool:
    """The money came back, and the payment stands again as it did before."""
    after = PaymentState.PARTIALLY_REFUNDED if row["refunded"] else PaymentState.CAPTURED
    status = PART if row["refunded"] else "successful"
    report = _report(REVERSED, status, row, row["chargeback_amount"], None)
    written = await queries.win_chargeback(
        database,
        merchant_id=row["merchant_id"],
        live=row["live"],
        id=row["chargeback_id"],
        revision=row["revision"],
        state=str(after),
        **_pingback(row, report),
        now=row["shop_now"],
    )
    return written is not None


async def _record_won(database: Database, acquirer: str, dispute: Dispute, row: Mapping[str, Any]) -> bool:
    """The dispute was won before anybody read of it, and the money was given back since: only the fee is left of it."""
    status = PART if PaymentState(row["state"]) is PaymentState.PARTIALLY_REFUNDED else WHOLE
    reports = (
        _report(OPENED, "reversal_chargeback", row, dispute.amount, dispute.reason),
        _report(REVERSED, status, row, dispute.amount, None),
    )
    pingbacks = [told(row, report) for report in reports]
    heard = [one for one in pingbacks if one]
    written = await queries.record_won_chargeback(
        database,
        **_chargeback(acquirer, dispute, row),
        muted=[report.event for report, one in zip(reports, pingbacks, strict=True) if not one],
        events=[one["event"] for one in heard],
        urls=[one["pingback_url"] for one in heard],
        formats=[one["pingback_format"] for one in heard],
        payloads=[one["payload"] for one in heard],
    )
    return written is not None


async def _lose(database: Database, _acquirer: str, _dispute: Dispute, row: Mapping[str, Any]) -> bool:
    written = await queries.lose_chargeback(
        database, merchant_id=row["merchant_id"], live=row["live"], id=row["chargeback_id"], now=row["shop_now"]
    )
    return written is not None


def _chargeback(acquirer: str, dispute: Dispute, row: Mapping[str, Any]) -> dict[str, Any]:
    """What a chargeback is about, as the statements that write a new one take it."""
    return {
        "merchant_id": row["merchant_id"],
        "live": row["live"],
        "payment_id": row["payment_id"],
        "revision": row["revision"],
        "id": row["reference_id"],
        "acquirer": acquirer,
        "acquirer_reference": dispute.reference,
        "amount": dispute.amount,
        "currency": row["currency"],
        "fee": row["chargeback_fee"],
        "reason": dispute.reason,
        "now": row["shop_now"],
    }


def _report(event: str, status: str, row: Mapping[str, Any], amount: Decimal, reason: str | None) -> ReversalReport:
    return ReversalReport(
        event=event, status=status, reference_id=row["reference_id"], chargeback_amount=amount, reason=reason
    )


def _pingback(row: Mapping[str, Any], report: ReversalReport) -> dict[str, Any]:
    """The pingback as the statements take it: all None if the account has muted the event."""
    nothing = dict.fromkeys(("event", "pingback_url", "pingback_format", "payload"))
    return nothing | told(row, report)


async def _cancel_subscriptions(database: Database, *, now: datetime) -> None:
    """Cancel subscriptions behind a chargeback; what was missed the last time is found again."""
    running = [row async for row in queries.subscriptions_to_cancel(database, real_now=now)]
    for row in running:
        shop = Shop(row["merchant_id"], row["live"])
        await cancel(database, shop, row["id"], by="chargeback", now=row["shop_now"])
