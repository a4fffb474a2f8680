"""The planner's first knowledge of tables that were empty when they were first asked.

A statement is planned once a session. Of a table without statistics every index that begins with
the merchant looks alike, and one that finds all of a merchant's rows may be taken to find one of
them: with each payment of a new deployment the next takes longer. Autovacuum ends that when it
comes round, a minute later at most; here it is ended with the first pages.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.loops.repeating import repeat

queries = load_statements("paydesk.database", "first_statistics.sql")

TABLES = ("checkout", "payment", "payment_attempt", "customer", "card", "ledger_posting", "pingback", "subscription")
"""What grows with each payment or renewal, and is looked into by the next."""

ENOUGH = 2 * 8192
"""Bytes of a table from which something can be learnt: two pages."""

PAUSE = 1.0
"""Seconds between looks, until all is known; then nothing is asked any more."""


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    is_ours: bool
    is_known: bool


class FirstStatistics:
    """Has tables analyzed as soon as they have rows, each once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._awaited = list(TABLES)

    async def look(self) -> None:
        """Analyze what has grown from nothing since the last look; moves no money."""
        if not self._awaited:
            return
        grown = await records_of(_Table, queries.tables_with_rows(self._database, tables=self._awaited, enough=ENOUGH))
        for table in grown:
            if table.is_known or not table.is_ours:
                self._awaited.remove(table.name)
            else:
                # Whoever holds the table (autovacuum, another worker) does it, or the next look.
                await self._database.execute(f"analyze (skip_locked) {table.name}")

    async def run(self, stop: asyncio.Event) -> None:
        """Look until told to stop."""
        await repeat("first statistics", self.look, stop, rest=PAUSE)
