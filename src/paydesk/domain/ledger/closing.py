"""Closing the live ledger's old entries: their sums are kept, so that a balance is read
in a moment. Moves no money.

An entry is closed once nobody can add an older one: the newest id is noted at one look, and closed
at a later one if all transactions have ended that had drawn an id by the first; until then the look
stands, however many look. `paydesk check` proves that the closings are the sums.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "closing.sql")

PAUSE = 600.0
"""Seconds between looks: a balance sums the entries of at most two of them."""

_PATIENCE = 24 * 3600.0
"""Seconds that closing may take: the first time it reads the whole ledger."""


@dataclass(frozen=True, slots=True)
class _Closable:
    closed_id: int
    seen_id: int


async def close_ledger(database: Database) -> bool:
    """Close what the last look saw, if its writers have ended, and look again;
    says whether anything was closed.
    """
    async with database.acquire() as connection, connection.transaction():
        found = record_if_any(_Closable, await queries.closable(connection))
        if found is not None:
            await connection.execute(queries.close_entries.sql, found.closed_id, found.seen_id, timeout=_PATIENCE)
    async with database.acquire() as connection:
        await queries.look(connection)
    return found is not None


async def run_closing(database: Database, stop: asyncio.Event) -> None:
    """Close the ledger from time to time until told to stop."""

    async def close() -> None:
        await close_ledger(database)

    await repeat("closing of the ledger", close, stop, rest=PAUSE)
