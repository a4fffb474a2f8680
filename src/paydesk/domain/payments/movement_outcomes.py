"""Writing down what an acquirer said of captures, voids and refunds;
each is worked out in movement_effects.py.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial

import msgspec

from paydesk.adapters.acquirers import interface as bank
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.alarms.setting_aside import Worked, set_aside, together
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.intents import Movement
from paydesk.domain.payments.movement_effects import Change, ToRecord, change_of
from paydesk.domain.payments.states import MovementKind, MovementState
from paydesk.domain.pingbacks import waking

queries = load_statements(__package__ or "", "movements.sql")

MOST_LOST = 50
"""How often in a row none of those that are recorded is, as others change their payments at the
same moment, before the janitor is left to do it."""

_SHORT = 0.002
"""Seconds by which the pause before reading again grows, so that those who race get out
of each other's way."""

Answer = bank.Moved | bank.Refused | bank.Captured
"""What an acquirer says of a movement: Captured only of a void,
whose authorization holds nothing any more."""

CAPTURED_MEANWHILE = noted(
    "the bank has captured the money already, so there is no hold to let go of; it can be refunded"
)


_Happened = tuple[Movement, str]
"""A movement, and the acquirer's reference of what happened."""
_Try = tuple[int, bool]
"""A movement's id, and whether its outcome was written."""


class _Recorded(msgspec.Struct, frozen=True):
    """A movement that was written down."""

    merchant_id: int
    live: bool
    payment_id: int
    movement_id: int


class _Ended(msgspec.Struct, frozen=True):
    """A void that ended since its money was captured; the rest, if the bank let go of one,
    is a refund of its own.
    """

    movement_id: int
    captured: bool
    released_id: int | None
    rest: Decimal | None


class _State(msgspec.Struct, frozen=True):
    id: int
    state: MovementState


async def record_done(database: Database, done: Sequence[tuple[Movement, str]], *, now: datetime) -> set[int]:
    """Record movements that happened, with the acquirer's references;
    returns the ids of those that moved.

    One that somebody else recorded is missing from the result, and so is one that the database
    refuses, which must not hold up the others. Moves no money; writes ledger and pingbacks.
    """
    left = list(done)
    recorded: set[int] = set()
    aside: Worked[_Happened, _Try] = Worked()
    lost = 0
    while left and lost < MOST_LOST:
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
        doing=noted("the bank moved its money, and it does not fit its payment"),
    )
    set_apart = {movement.id for (movement, _), _ in aside.failed}
    missing = [movement for movement, _ in done if movement.id not in recorded | set_apart]
    await _report_contradictions(database, missing, MovementState.REFUSED, noted("the bank says that it was made"))
    return recorded


async def record_done_within(connection: Connection, movement: Movement, reference: str, *, now: datetime) -> bool:
    """Record within a transaction of the caller's, who began the movement there, that it happened.
    Moves no money.
    """
    return all(moved for _, moved in await _record_done(connection, [(movement, reference)], now=now))


def _named(movement: Movement) -> tuple[Shop, str]:
    """What a movement is called in the operator's list."""
    return movement.shop, f"{movement.kind} {movement.id}"


async def _record_done(database: Database, done: Sequence[_Happened], *, now: datetime) -> list[_Try]:
    """One try, of all or of nothing: the ids of those that were open still,
    and whether each was written.
    """
    changes = await _changes(database, [movement for movement, _ in done], now=now)
    if not changes:
        return []
    written = await _write(database, changes, {movement.id: (movement, reference) for movement, reference in done}, now)
    return [(change.movement_id, change.movement_id in written) for change in changes]


async def _changes(database: Database, movements: Sequence[Movement], *, now: datetime) -> list[Change]:
    """What each movement that is still open means for its payment,
    from its payment as it stands now.
    """
    rows = queries.movements_to_record(
        database,
        merchant_ids=[movement.shop.merchant_id for movement in movements],
        lives=[movement.shop.live for movement in movements],
        movement_ids=[movement.id for movement in movements],
    )
    return [change_of(row, now=now) for row in await records_of(ToRecord, rows)]


async def _write(
    database: Database, changes: Sequence[Change], done: Mapping[int, _Happened], now: datetime
) -> set[int]:
    """Write the changes that still fit; returns the ids of their movements."""
    entries = [(change.movement_id, *entry) for change in changes for entry in change.entries]
    rows = queries.record_movements(
        database,
        merchant_ids=[change.shop.merchant_id for change in changes],
        lives=[change.shop.live for change in changes],
        movement_ids=[change.movement_id for change in changes],
        revisions=[change.revision for change in changes],
        references=[done[change.movement_id][1] for change in changes],
        states=[str(change.state) for change in changes],
        refunded=[change.refunded for change in changes],
        pending_taken=[change.pending_taken for change in changes],
        reserve_taken=[change.reserve_taken for change in changes],
        fees_taken=[change.fees_taken for change in changes],
        funds_due_ats=[change.funds_due_at for change in changes],
        events=[change.told.event for change in changes],
        send_to=[change.told.send_to for change in changes],
        pingback_formats=[change.told.pingback_format for change in changes],
        payloads=[change.told.payload for change in changes],
        answered=[done[change.movement_id][0].answered for change in changes],
        posting_movements=[movement_id for movement_id, _, _ in entries],
        posting_accounts=[account for _, account, _ in entries],
        posting_amounts=[amount for _, _, amount in entries],
        now=now,
    )
    recorded = {row.movement_id for row in await records_of(_Recorded, rows)}
    waking.told()
    return recorded


async def record_at_their_times(
    database: Database, found: Sequence[tuple[Movement, Answer | None]], *, real_now: datetime
) -> set[int]:
    """Write down what acquirers said, each by its shop's own time;
    returns the ids of movements that were recorded.
    """
    recorded: set[int] = set()
    for clock in {movement.clock for movement, _ in found}:
        here = [(movement, answer) for movement, answer in found if movement.clock == clock and answer is not None]
        recorded |= await record_answers(database, here, now=real_now + clock)
    return recorded


async def record_answers(database: Database, said: Sequence[tuple[Movement, Answer]], *, now: datetime) -> set[int]:
    """Write down what acquirers said of movements; returns the ids of those that ended.
    Moves no money.

    If somebody was faster, what they wrote stands. `now` is the shops' time, UTC.
    """
    done = [(movement, answer.reference) for movement, answer in said if isinstance(answer, bank.Moved)]
    refused = [(movement, answer.reason) for movement, answer in said if isinstance(answer, bank.Refused)]
    captured = [(movement, answer) for movement, answer in said if isinstance(answer, bank.Captured)]
    recorded: set[int] = set()
    if done:
        recorded |= await record_done(database, done, now=now)
    if refused:
        recorded |= await record_refusals(database, refused, now=now)
    if captured:
        recorded |= await record_captured(database, captured, now=now)
    return recorded


async def record_refusals(database: Database, refused: Sequence[tuple[Movement, str]], *, now: datetime) -> set[int]:
    """Record movements that the acquirer would not make; returns the ids of those that ended.
    Moves no money.

    One that can't be recorded waits in the operator's list and stops no other.
    """
    worked = await together(refused, partial(_record_refusals, database, now=now))
    await set_aside(database, worked, lambda one: _named(one[0]), doing=noted("its refusal can't be recorded"))
    set_apart = {movement.id for (movement, _), _ in worked.failed}
    missing = [movement for movement, _ in refused if movement.id not in set_apart.union(worked.results)]
    await _report_contradictions(database, missing, MovementState.DONE, noted("the bank says that it refused it"))
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
    return {row.movement_id for row in await records_of(_Recorded, rows)}


async def record_captured(
    database: Database, captured: Sequence[tuple[Movement, bank.Captured]], *, now: datetime
) -> set[int]:
    """Record that authorizations which were to be let go of are captured at the bank;
    returns the voids that ended.

    The void is refused, and the capture is recorded; of a part of what was authorized too: then the
    merchant is told of the rest, which the bank let go of, as of a refund. Whatever the bank did,
    the operator hears of it, since somebody else captured, or our record of it was lost. Where its
    word fits no payment (nothing, or more than was authorized) that is all. Moves no money.
    """
    worked = await together(captured, partial(_record_captured, database, now=now))
    await set_aside(
        database, worked, lambda one: _named(one[0]), doing=noted("the bank captured it, which can't be recorded")
    )
    booked = dict(worked.results)
    alarms = [
        Alarm(
            AlarmKind.captured_elsewhere,
            f"payment {movement.payment_id}",
            noted(
                "it was to be voided, and the bank says that %(captured)s of %(amount)s were captured: %(what)s",
                captured=found.amount,
                amount=f"{movement.amount} {movement.currency}",
                what=noted("recorded") if booked[movement.id] else noted("not recorded, compare it with the bank"),
            ),
            movement.shop,
            {"movement": movement.id, "reference": found.reference, "captured": str(found.amount)},
        )
        for movement, found in captured
        if movement.id in booked
    ]
    await raise_alarms(database, alarms, now=utc_now())
    return set(booked)


async def _record_captured(
    database: Database, captured: Sequence[tuple[Movement, bank.Captured]], *, now: datetime
) -> list[_Try]:
    """One try, of all or of nothing: the ids of the voids that ended,
    and whether a capture was recorded with each.
    """
    async with database.acquire() as connection, connection.transaction():
        rows = queries.record_found_captures(
            connection,
            merchant_ids=[movement.shop.merchant_id for movement, _ in captured],
            lives=[movement.shop.live for movement, _ in captured],
            movement_ids=[movement.id for movement, _ in captured],
            references=[found.reference for _, found in captured],
            amounts=[found.amount for _, found in captured],
            refusal=CAPTURED_MEANWHILE,
            now=now,
        )
        ended = await records_of(_Ended, rows)
        await _record_released(connection, captured, ended, now=now)
    return [(row.movement_id, row.captured) for row in ended]


async def _record_released(
    connection: Connection,
    captured: Sequence[tuple[Movement, bank.Captured]],
    ended: Sequence[_Ended],
    *,
    now: datetime,
) -> None:
    """Record what the bank let go of when it captured a part, within the transaction
    of that capture.

    Outside of it nobody may see these movements before they are done: the janitor would ask the
    bank for them.
    """
    voids = {movement.id: movement for movement, _ in captured}
    released: list[_Happened] = [
        (replace(voids[row.movement_id], id=row.released_id, kind=MovementKind.REFUND, amount=row.rest), "")
        for row in ended
        if row.released_id is not None and row.rest is not None
    ]
    if released:
        tried = await _record_done(connection, released, now=now)
        assert all(moved for _, moved in tried), "their payments are locked by this transaction"


async def _report_contradictions(
    database: Database, movements: Sequence[Movement], against: MovementState, said: str
) -> None:
    """Raise an alarm for each movement of which the bank says the opposite of what is recorded.
    Moves no money.
    """
    if not movements:
        return
    rows = queries.movement_states(
        database,
        merchant_ids=[movement.shop.merchant_id for movement in movements],
        lives=[movement.shop.live for movement in movements],
        movement_ids=[movement.id for movement in movements],
    )
    states = {row.id: row.state for row in await records_of(_State, rows)}
    alarms = [
        Alarm(
            AlarmKind.contradiction,
            f"{movement.kind} {movement.id}",
            noted(
                "%(said)s, and it is recorded as %(against)s: compare payment %(payment_id)s with the bank",
                said=said,
                against=against,
                payment_id=movement.payment_id,
            ),
            movement.shop,
            {"payment": movement.payment_id, "key": movement.key},
        )
        for movement in movements
        if states.get(movement.id) == against
    ]
    await raise_alarms(database, alarms, now=utc_now())
