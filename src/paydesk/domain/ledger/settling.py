"""How captured money becomes available to its merchant: first the net, then the reserve,
each when its time comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.database.records import Row, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import ASIDE, DueRow, claimed, names_of
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "settling.sql")

MOST = 1000
"""Payments that one statement moves on."""

PAUSE = 15.0
"""Seconds between looks when nothing was due: money that waited for days can wait for these."""


async def settle_due(
    database: Database,
    *,
    real_now: datetime,
    merchant_id: int | None = None,
    at: datetime | None = None,
    most: int = MOST,
) -> int:
    """Settle payments and release reserves that are due; returns how many moved on.
    Moves no money at an acquirer.

    Each side has its own time, `real_now` (UTC) and its test clock; with `merchant_id` only that
    merchant's test side counts, and `at` is its time (UTC). One that can't be posted waits in the
    operator's list and stops no other.
    Source: interface.md §7.4.
    """
    asked = {"real_now": real_now, "at": at, "merchant_id": merchant_id, "most": most}

    async def settle(only: Sequence[int] | None) -> list[Row]:
        return [row async for row in queries.settle(database, **asked, only=only)]

    async def due() -> list[DueRow]:
        return await records_of(DueRow, queries.due_to_settle(database, **asked))

    async def postpone(rows: Sequence[DueRow]) -> None:
        await queries.postpone(database, **names_of(rows), real_now=real_now, pause=ASIDE)

    doing = "what became available of it can't be posted"
    return len(await claimed(database, settle, due, postpone, noun="payment", doing=doing))


async def run_settling(database: Database, stop: asyncio.Event) -> None:
    """Settle what is due until told to stop."""

    async def settle() -> bool:
        return await settle_due(database, real_now=utc_now()) > 0

    await repeat("settling", settle, stop, rest=PAUSE, due=True)
