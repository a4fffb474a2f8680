"""What happens to authorized orders that nobody ships: a reminder a day before, and then a void.

Of one whose hold ends sooner than others' the merchant is told at once, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.records import Row, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import ASIDE, DueRow, claimed, names_of
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.intents import Movement, MovementRow, movement_of
from paydesk.domain.payments.movements import Refused, carry_out_all, first_look
from paydesk.domain.payments.time_to_ship import REMINDED_BEFORE
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "")
log = structlog.get_logger()

PAUSE = 5.0
"""Seconds between looks when nothing was due."""


async def act_on_due(
    desk: Desk, *, real_now: datetime, merchant_id: int | None = None, at: datetime | None = None, most: int = 200
) -> int:
    """Remind of authorizations that end within a day, and void those that are over.
    Moves money (back to customers).

    Each side has its own time, `real_now` (UTC) and its test clock; with `merchant_id` only that
    merchant's test side counts, and `at` is its time (UTC). Returns how many reminders and voids
    there were. Raises: Held.
    Source: interface.md §7.4, last row.
    """
    await desk.gate.require()
    if merchant_id is None:
        waiting = queries.sides_waiting(desk.database, real_now=real_now)
        sides = [(side.merchant_id, side.live, side.shop_now) for side in await records_of(_Side, waiting)]
    else:
        sides = [(merchant_id, False, at or real_now)]
    if not sides:
        return 0
    merchant_ids, lives, shop_nows = (list(column) for column in zip(*sides, strict=True))
    asked = {"merchant_ids": merchant_ids, "lives": lives, "shop_nows": shop_nows, "most": most}
    reminders, movements = await _begin(desk, asked, real_now)
    outcomes = await carry_out_all(desk, movements, real_now=real_now)
    for movement, outcome in zip(movements, outcomes, strict=True):
        if isinstance(outcome, Refused):
            log.error("an authorization could not be voided", payment_id=movement.payment_id, why=outcome.reason)
    return reminders + len(movements)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a merchant, with its time."""

    merchant_id: int
    live: bool
    shop_now: datetime


async def _begin(desk: Desk, asked: Mapping[str, object], real_now: datetime) -> tuple[int, list[Movement]]:
    """How many reminders were queued, and the voids whose intent was committed;
    what can't be begun stops no other.
    """
    database = desk.database

    told = {"reminded_before": REMINDED_BEFORE, "real_now": real_now}

    async def remind(only: Sequence[int] | None) -> list[Row]:
        return [row async for row in queries.remind(database, **asked, **told, only=only)]

    async def begin_voids(only: Sequence[int] | None) -> list[Movement]:
        called = {"real_now": real_now, "lookup_at": first_look()}
        begun = queries.begin_due_voids(database, **asked, **called, pads=desk.pads, only=only)
        return [movement_of(row) for row in await records_of(MovementRow, begun)]

    async def due() -> list[DueRow]:
        return await records_of(DueRow, queries.due_of_shipping(database, **asked))

    async def postpone(rows: Sequence[DueRow]) -> None:
        await queries.postpone(database, **names_of(rows), real_now=real_now, pause=ASIDE)

    reminded = await claimed(
        database, remind, due, postpone, noun="payment", doing=noted("its reminder can't be queued")
    )
    doing = noted("it was not shipped, and its void can't be begun")
    return len(reminded), await claimed(database, begin_voids, due, postpone, noun="payment", doing=doing)


async def run_deadlines(desk: Desk, stop: asyncio.Event, *, pause: float = PAUSE) -> None:
    """Act on what is due until told to stop; the pause between rounds is in seconds."""

    async def act() -> bool:
        if not desk.gate.is_open:
            return False
        return await act_on_due(desk, real_now=utc_now()) > 0

    await repeat("deadlines of shipments", act, stop, rest=pause, due=True)
