"""Captures, voids and refunds: intent committed, acquirer called, outcome recorded,
in this order and no other.

A movement whose answer was lost is finished by the janitor: it asks the acquirer what became of the
key, and if the acquirer has never seen it, sends the same key once more, which an acquirer takes
for the same request. One that the acquirer has only taken note of stays `processing` too, until it
shows what came of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from paydesk.adapters.acquirers import interface as bank
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.intents import Movement, MovementRow, movement_of
from paydesk.domain.payments.movement_outcomes import CAPTURED_MEANWHILE, Answer, record_answers, record_at_their_times
from paydesk.domain.payments.states import MovementKind
from paydesk.domain.payments.unanswered import left_to_the_janitor

queries = load_statements(__package__ or "", "movements.sql")
log = structlog.get_logger()

FIRST_LOOK = timedelta(seconds=30)
"""When the janitor first looks after a movement whose call should be over."""

BACKOFF = (timedelta(seconds=5), timedelta(minutes=1), timedelta(minutes=5), timedelta(hours=1))
ALERT_AFTER = timedelta(hours=24)
LEASE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Done:
    """The money moved, and payment, ledger and pingback say so."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The acquirer would not move it; `reason` is its own."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Nobody knows yet; the janitor will find out."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """Under its key the acquirer had an older refund of another amount:
    that one is recorded, nothing new was made.
    """


Result = Done | Refused | Unsettled | Corrected


async def find_intent(connection: Connection, shop: Shop, request_key: str) -> MovementRow | None:
    """The row of a movement that was begun under a key and whose outcome nobody has recorded,
    None if there is none.
    """
    return record_if_any(
        MovementRow,
        await queries.find_intent(connection, merchant_id=shop.merchant_id, live=shop.live, request_key=request_key),
    )


async def carry_out(desk: Desk, movement: Movement, *, answered: bool = True, now: datetime) -> Result:
    """Ask the acquirer for a movement whose intent is committed, and record its answer.
    Moves money.

    Who asked waits for it, but may go away meanwhile: the outcome is written down all the same, and
    with it that they are `answered`, unless they say so themselves. `now` is the shop's time, UTC.
    """
    call = asyncio.create_task(_call_and_record(desk, replace(movement, answered=answered), now=now))
    desk.under_way.add(call)
    call.add_done_callback(desk.under_way.discard)
    return await asyncio.shield(call)


async def carry_out_all(desk: Desk, movements: Sequence[Movement], *, real_now: datetime) -> list[Result]:
    """Ask the acquirers for movements whose intents are committed, all at once,
    and record the answers. Moves money.

    Each shop's time is `real_now` (UTC) and its clock; what is not known afterwards is left to
    the janitor.
    """
    answers = await asyncio.gather(*(_answer(desk, movement) for movement in movements))
    recorded = await record_at_their_times(desk.database, list(zip(movements, answers, strict=True)), real_now=real_now)
    return [
        _result(answer, recorded=movement.id in recorded) for movement, answer in zip(movements, answers, strict=True)
    ]


def _result(answer: Answer | None, *, recorded: bool) -> Result:
    """What an answer means to who asked for the movement."""
    match answer:
        case bank.Refused(reason):
            return Refused(reason)
        case bank.Captured():
            return Refused(CAPTURED_MEANWHILE)
    return Done() if recorded else Unsettled()


async def _answer(desk: Desk, movement: Movement) -> Answer | None:
    """What the acquirer says when it is asked for a movement; None if nobody knows. Moves money."""
    with left_to_the_janitor(movement_id=movement.id, kind=str(movement.kind)):
        return await _ask(desk, movement)
    return None


async def _call_and_record(desk: Desk, movement: Movement, *, now: datetime) -> Result:
    """Whatever goes wrong leaves the movement to the janitor. Moves money."""
    with left_to_the_janitor(movement_id=movement.id, kind=str(movement.kind)):
        answer = await _ask(desk, movement)
        if answer is None:
            return Unsettled()
        corrected = await _correct(desk.database, movement, answer)
        recorded = await record_answers(desk.database, [(movement, answer)], now=now)
        if corrected:
            return Corrected()
        return _result(answer, recorded=movement.id in recorded)
    return Unsettled()


async def _ask(desk: Desk, movement: Movement) -> Answer | None:
    """Have the acquirer move the money under the movement's key; None if it has only taken
    the request. Moves money.

    Raises: OutcomeUnknown.
    """
    acquirer = desk.acquirers[movement.acquirer]
    key, reference, amount, currency = movement.key, movement.reference, movement.amount, movement.currency
    try:
        match movement.kind:
            case MovementKind.CAPTURE:
                await acquirer.capture(key, reference, amount, currency)
                return bank.Moved("")
            case MovementKind.REFUND:
                if _may_be_old(acquirer, movement) and (made := await _made_before(acquirer, movement)) is not None:
                    return made
                return bank.Moved(await acquirer.refund(key, reference, amount, currency, movement.id))
            case MovementKind.VOID:
                after = await acquirer.void(key, movement.of_key)
    except bank.KeyUsed as error:
        made = await _made_before(acquirer, movement) if movement.kind is MovementKind.REFUND else None
        return made or bank.Refused(str(error))
    except bank.AcquirerRefused as error:
        return bank.Refused(str(error))
    if isinstance(after, bank.Voided | bank.Declined):
        # Declined after it was approved: a capture that its bank did not make. Nothing is held.
        return bank.Moved("")
    if isinstance(after, bank.Captured):
        return after
    if isinstance(after, bank.UnderWay):
        return None
    raise bank.OutcomeUnknown(f"the bank answered a void with {type(after).__name__}")


def _may_be_old(acquirer: bank.Acquirer, movement: Movement) -> bool:
    """Whether the payment is so old that a refund of it, and its key, may have been forgotten."""
    return movement.paid_at is not None and movement.created_at > movement.paid_at + acquirer.key_lifetime


async def _made_before(acquirer: bank.Acquirer, movement: Movement) -> bank.Moved | None:
    """The refund that was made under this key before, None if there is none. Moves no money.

    Raises: OutcomeUnknown.
    """
    found = await acquirer.find_movement(movement.key, movement.of_key, movement.reference)
    return found if isinstance(found, bank.Moved) else None


async def _correct(database: Database, movement: Movement, answer: Answer) -> bool:
    """Make the row of a refund what the acquirer has under its key, if that has another amount.
    Moves no money.

    Returns whether it was another. Raises: OutcomeUnknown if so much is not left here.
    """
    if movement.kind is not MovementKind.REFUND or not isinstance(answer, bank.Moved):
        return False
    if answer.amount is None or answer.amount == movement.amount:
        return False
    shop = movement.shop
    names = {"merchant_id": shop.merchant_id, "live": shop.live, "id": movement.id}
    if await queries.correct_refund(database, **names, amount=answer.amount) is None:
        raise bank.OutcomeUnknown(f"under its key {answer.amount:f} were given back, which is more than is left here")
    log.warning("a forgotten refund is recorded as it was", movement_id=movement.id, amount=str(answer.amount))
    return True


async def finish_movements(desk: Desk, *, now: datetime, most: int = 100) -> int:
    """Finish movements whose outcome nobody recorded, all at once; returns how many were looked at.
    Moves money.

    Acquirers live in real time, so `now` is real time (UTC).
    """
    claimed = queries.claim_movements(desk.database, now=now, most=most, lease=LEASE)
    movements = [movement_of(row) for row in await records_of(MovementRow, claimed)]
    answers = await asyncio.gather(*(_finish(desk, movement) for movement in movements))
    found = list(zip(movements, answers, strict=True))
    recorded = await record_at_their_times(desk.database, found, real_now=now)
    await _ask_later(desk.database, [movement for movement in movements if movement.id not in recorded], now=now)
    return len(movements)


async def count_unknown(database: Database, *, older_than: datetime) -> int:
    """How many movements that were begun before a time (real, UTC) are without an outcome."""
    return int(await queries.movements_unknown(database, older_than=older_than))


async def _finish(desk: Desk, movement: Movement) -> Answer | None:
    """What became of a movement, or, if the acquirer never saw it, of the same key sent again;
    None if unknown.
    """
    try:
        acquirer = desk.acquirers[movement.acquirer]
        finding = await acquirer.find_movement(movement.key, movement.of_key, movement.reference)
        if isinstance(finding, bank.UnderWay):
            return None
        answer = await _ask(desk, movement) if isinstance(finding, bank.NothingHeld) else finding
        if answer is not None:
            await _correct(desk.database, movement, answer)
        return answer
    except bank.OutcomeUnknown:
        return None
    except Exception:
        log.exception("the look-up failed", movement_id=movement.id)
        return None


async def _ask_later(database: Database, movements: Sequence[Movement], *, now: datetime) -> None:
    """Give back what stayed open, each with its next date, and raise the alarm
    for what is open too long.
    """
    if not movements:
        return
    late = {movement.id for movement in movements if now - movement.created_at > ALERT_AFTER}
    for movement in movements:
        if movement.id in late and not movement.alerted:
            log.error("an outcome is unknown for a day", movement_id=movement.id, payment_id=movement.payment_id)
    await queries.schedule_movements(
        database,
        merchant_ids=[movement.shop.merchant_id for movement in movements],
        lives=[movement.shop.live for movement in movements],
        movement_ids=[movement.id for movement in movements],
        lookup_ats=[now + BACKOFF[min(movement.number, len(BACKOFF) - 1)] for movement in movements],
        alerted_ats=[now if movement.id in late else None for movement in movements],
    )


def first_look() -> datetime:
    """When the janitor is to look after a movement that begins now, real time (UTC)."""
    return utc_now() + FIRST_LOOK
