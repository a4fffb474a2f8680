"""Captures, voids and refunds: intent committed, acquirer called, outcome recorded, in this order and no other.

A movement whose answer was lost is finished by the janitor: it asks the acquirer what became of the key, and if the
acquirer has never seen it, sends the same key once more, which an acquirer takes for the same request.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import structlog

from paydesk.adapters.acquirers import interface as bank
from paydesk.core.clock import utc_now
from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.apart import Worked, set_aside, together
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.payments import metrics
from paydesk.domain.payments.after import Change, change_of
from paydesk.domain.payments.paying import Desk
from paydesk.domain.payments.states import MovementKind

queries = load_statements(__package__ or "", "movements.sql")
log = structlog.get_logger()

FIRST_LOOK = timedelta(seconds=30)
"""When the janitor first looks after a movement whose call should be over."""

BACKOFF = (timedelta(seconds=5), timedelta(minutes=1), timedelta(minutes=5), timedelta(hours=1))
ALERT_AFTER = timedelta(hours=24)
LEASE = timedelta(minutes=1)
READ_AGAIN = 50
"""How often a payment that others change at the same moment is read again, before the janitor is left to do it."""

_SHORT = 0.002
"""Seconds by which the pause before reading again grows, so that those who race get out of each other's way."""


@dataclass(frozen=True, slots=True)
class Movement:
    """A capture, void or refund whose intent is committed; `of_key` and `reference` name its purchase at the bank.

    `number` counts the janitor's questions; `clock` is how far the shop's time is ahead of real time.
    """

    shop: Shop
    id: int
    payment_id: int
    kind: MovementKind
    amount: Decimal
    currency: str
    key: str
    acquirer: str
    of_key: str
    reference: str
    created_at: datetime
    number: int = 0
    alerted: bool = False
    clock: timedelta = timedelta(0)


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


Result = Done | Refused | Unsettled

_Happened = tuple[Movement, str]
"""A movement, and the acquirer's reference of what happened."""
_Try = tuple[int, bool]
"""A movement's id, and whether its outcome was written."""


def movement_of(row: Mapping[str, Any]) -> Movement:
    """The movement of a row of `begin_…` or `claim_movements`."""
    clock = row.get("clock", timedelta(0))
    return Movement(
        shop=Shop(row["merchant_id"], row["live"]),
        id=row["id"],
        payment_id=row["payment_id"],
        kind=MovementKind(row["kind"]),
        amount=row["amount"],
        currency=row["currency"],
        key=row["idempotency_key"],
        acquirer=row["acquirer"],
        of_key=row["of_key"],
        reference=row["reference"],
        created_at=row["created_at"] - clock,
        number=row["lookups"],
        alerted=row["alerted_at"] is not None,
        clock=clock,
    )


async def find_intent(connection: Any, shop: Shop, request_key: str) -> Mapping[str, Any] | None:
    """The row of a movement that was begun under a key and whose outcome nobody has recorded, None if there is none."""
    row: Mapping[str, Any] | None = await queries.find_intent(
        connection, merchant_id=shop.merchant_id, live=shop.live, request_key=request_key
    )
    return row


async def carry_out(desk: Desk, movement: Movement, *, now: datetime) -> Result:
    """Ask the acquirer for a movement whose intent is committed, and record its answer. Moves money.

    Who asked may go away meanwhile: the outcome is written down all the same. `now` is the shop's time, UTC.
    """
    call = asyncio.create_task(_call_and_record(desk, movement, now=now))
    desk.under_way.add(call)
    call.add_done_callback(desk.under_way.discard)
    return await asyncio.shield(call)


async def carry_out_all(desk: Desk, movements: Sequence[Movement], *, real_now: datetime) -> list[Result]:
    """Ask the acquirers for movements whose intents are committed, all at once, and record the answers. Moves money.

    Each shop's time is `real_now` (UTC) and its clock; what is not known afterwards is left to the janitor.
    """
    answers = await asyncio.gather(*(_answer(desk, movement) for movement in movements))
    recorded = await _record_all(desk.database, list(zip(movements, answers, strict=True)), real_now=real_now)
    return [
        Refused(answer.reason)
        if isinstance(answer, bank.Refused)
        else Done()
        if movement.id in recorded
        else Unsettled()
        for movement, answer in zip(movements, answers, strict=True)
    ]


async def _answer(desk: Desk, movement: Movement) -> bank.Moved | bank.Refused | None:
    """What the acquirer says when it is asked for a movement; None if nobody knows. Moves money."""
    try:
        return await _ask(desk, movement)
    except bank.OutcomeUnknown as error:
        log.warning("outcome unknown", movement_id=movement.id, kind=str(movement.kind), why=str(error))
    except Exception:
        log.exception("the call to the acquirer failed", movement_id=movement.id)
    metrics.UNKNOWN.inc()
    return None


async def _call_and_record(desk: Desk, movement: Movement, *, now: datetime) -> Result:
    """Whatever goes wrong leaves the movement to the janitor. Moves money."""
    try:
        return await _record(desk.database, movement, await _ask(desk, movement), now=now)
    except bank.OutcomeUnknown as error:
        log.warning("outcome unknown", movement_id=movement.id, kind=str(movement.kind), why=str(error))
    except AWAY as error:
        log.warning("outcome not recorded, the database is away", movement_id=movement.id, why=type(error).__name__)
    except Exception:
        log.exception("the call to the acquirer failed", movement_id=movement.id)
    metrics.UNKNOWN.inc()
    return Unsettled()


async def _ask(desk: Desk, movement: Movement) -> bank.Moved | bank.Refused:
    """Have the acquirer move the money under the movement's key. Moves money. Raises: OutcomeUnknown."""
    acquirer = desk.acquirers[movement.acquirer]
    key, reference, amount, currency = movement.key, movement.reference, movement.amount, movement.currency
    try:
        match movement.kind:
            case MovementKind.CAPTURE:
                await acquirer.capture(key, reference, amount, currency)
                return bank.Moved("")
            case MovementKind.REFUND:
                return bank.Moved(await acquirer.refund(key, reference, amount, currency))
            case MovementKind.VOID:
                after = await acquirer.void(key, movement.of_key)
    except bank.AcquirerRefused as error:
        return bank.Refused(str(error))
    if isinstance(after, bank.Voided):
        return bank.Moved("")
    if isinstance(after, bank.Captured):
        return bank.Refused("the money was captured; it can be refunded")
    raise bank.OutcomeUnknown(f"the bank answered a void with {type(after).__name__}")


async def _record(
    database: Database, movement: Movement, answer: bank.Moved | bank.Refused, *, now: datetime
) -> Result:
    """Write down what the acquirer said; if the janitor was faster, what it wrote stands."""
    if isinstance(answer, bank.Refused):
        await record_refusals(database, [(movement, answer.reason)], now=now)
        return Refused(answer.reason)
    recorded = await record_done(database, [(movement, answer.reference)], now=now)
    return Done() if recorded else Unsettled()


async def record_done(database: Database, done: Sequence[tuple[Movement, str]], *, now: datetime) -> set[int]:
    """Record movements that happened, with the acquirer's references; returns the ids of those that moved.

    One that somebody else recorded is missing from the result, and so is one that the database refuses, which must not
    hold up the others. Moves no money; writes ledger and pingbacks.
    """
    left = list(done)
    recorded: set[int] = set()
    aside: Worked[_Happened, _Try] = Worked()
    lost = 0
    while left and lost < READ_AGAIN:
        worked = await together(left, partial(_record_done, database, now=now))
        aside.failed.extend(worked.failed)
        written = {movement_id for movement_id, moved in worked.results if moved}
        still_open = {movement_id for movement_id, moved in worked.results if not moved}
        recorded |= written
        left = [one for one in left if one[0].id in still_open]
        # Of several movements of one payment one is written at a time.
        lost = 0 if written else lost + 1
        if left and lost:
            await asyncio.sleep(random.uniform(0, _SHORT * lost))  # noqa: S311 (no secret)
    await set_aside(
        database,
        aside,
        lambda one: _named(one[0]),
        doing="the bank moved its money, and it does not fit its payment",
    )
    return recorded


def _named(movement: Movement) -> tuple[Shop, str]:
    """What a movement is called in the operator's list."""
    return movement.shop, f"{movement.kind} {movement.id}"


async def _record_done(database: Database, done: Sequence[_Happened], *, now: datetime) -> list[_Try]:
    """One try, of all or of nothing: the ids of those that were open still, and whether each was written."""
    changes = await _changes(database, [movement for movement, _ in done], now=now)
    if not changes:
        return []
    written = await _write(database, changes, {movement.id: reference for movement, reference in done}, now)
    return [(change.movement_id, change.movement_id in written) for change in changes]


async def _changes(database: Database, movements: Sequence[Movement], *, now: datetime) -> list[Change]:
    """What each movement that is still open means for its payment, from its payment as it stands now."""
    rows = queries.movements_to_record(
        database,
        merchant_ids=[movement.shop.merchant_id for movement in movements],
        lives=[movement.shop.live for movement in movements],
        movement_ids=[movement.id for movement in movements],
    )
    return [change_of(row, now=now) async for row in rows]


async def _write(
    database: Database, changes: Sequence[Change], references: Mapping[int, str], now: datetime
) -> set[int]:
    """Write the changes that still fit; returns the ids of their movements."""
    entries = [(change.movement_id, *entry) for change in changes for entry in change.entries]
    rows = queries.record_movements(
        database,
        merchant_ids=[change.shop.merchant_id for change in changes],
        lives=[change.shop.live for change in changes],
        movement_ids=[change.movement_id for change in changes],
        revisions=[change.revision for change in changes],
        references=[references[change.movement_id] for change in changes],
        states=[str(change.state) for change in changes],
        refunded=[change.refunded for change in changes],
        pending_taken=[change.pending_taken for change in changes],
        reserve_taken=[change.reserve_taken for change in changes],
        fees_taken=[change.fees_taken for change in changes],
        funds_due_ats=[change.funds_due_at for change in changes],
        events=[change.event for change in changes],
        pingback_urls=[change.pingback_url for change in changes],
        pingback_formats=[change.pingback_format for change in changes],
        payloads=[change.payload for change in changes],
        posting_movements=[movement_id for movement_id, _, _ in entries],
        posting_accounts=[account for _, account, _ in entries],
        posting_amounts=[amount for _, _, amount in entries],
        now=now,
    )
    return {row["movement_id"] async for row in rows}


async def _record_all(
    database: Database,
    found: Sequence[tuple[Movement, bank.Moved | bank.Refused | None]],
    *,
    real_now: datetime,
) -> set[int]:
    """Write down what acquirers said, each by its shop's own time; returns the ids of movements that were recorded."""
    recorded: set[int] = set()
    for clock in {movement.clock for movement, _ in found}:
        here = [(movement, answer) for movement, answer in found if movement.clock == clock]
        done = [(movement, answer.reference) for movement, answer in here if isinstance(answer, bank.Moved)]
        refused = [(movement, answer.reason) for movement, answer in here if isinstance(answer, bank.Refused)]
        if done:
            recorded |= await record_done(database, done, now=real_now + clock)
        if refused:
            recorded |= await record_refusals(database, refused, now=real_now + clock)
    return recorded


async def record_refusals(database: Database, refused: Sequence[tuple[Movement, str]], *, now: datetime) -> set[int]:
    """Record movements that the acquirer would not make; returns the ids of those that ended. Moves no money.

    One that can't be recorded waits in the operator's list and stops no other.
    """
    worked = await together(refused, partial(_record_refusals, database, now=now))
    await set_aside(database, worked, lambda one: _named(one[0]), doing="its refusal can't be recorded")
    return set(worked.results)


async def _record_refusals(database: Database, refused: Sequence[tuple[Movement, str]], *, now: datetime) -> set[int]:
    rows = queries.record_refusals(
        database,
        merchant_ids=[movement.shop.merchant_id for movement, _ in refused],
        lives=[movement.shop.live for movement, _ in refused],
        movement_ids=[movement.id for movement, _ in refused],
        refusals=[reason for _, reason in refused],
        now=now,
    )
    return {row["movement_id"] async for row in rows}


async def finish_movements(desk: Desk, *, now: datetime, most: int = 100) -> int:
    """Finish movements whose outcome nobody recorded, all at once; returns how many were looked at. Moves money.

    Acquirers live in real time, so `now` is real time (UTC).
    """
    claimed = queries.claim_movements(desk.database, now=now, most=most, lease=LEASE)
    movements = [movement_of(row) async for row in claimed]
    answers = await asyncio.gather(*(_finish(desk, movement) for movement in movements))
    found = list(zip(movements, answers, strict=True))
    recorded = await _record_all(desk.database, found, real_now=now)
    await _ask_later(desk.database, [movement for movement in movements if movement.id not in recorded], now=now)
    return len(movements)


async def count_unknown(database: Database, *, older_than: datetime) -> int:
    """How many movements that were begun before a time (real, UTC) are without an outcome."""
    return int(await queries.movements_unknown(database, older_than=older_than))


async def _finish(desk: Desk, movement: Movement) -> bank.Moved | bank.Refused | None:
    """What became of a movement, or, if the acquirer never saw it, of the same key sent again; None if unknown."""
    try:
        acquirer = desk.acquirers[movement.acquirer]
        finding = await acquirer.find_movement(movement.key, movement.of_key, movement.reference)
        return await _ask(desk, movement) if isinstance(finding, bank.NotFound) else finding
    except bank.OutcomeUnknown:
        return None
    except Exception:
        log.exception("the look-up failed", movement_id=movement.id)
        return None


async def _ask_later(database: Database, movements: Sequence[Movement], *, now: datetime) -> None:
    """Give back what stayed open, each with its next date, and raise the alarm for what is open too long."""
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
