"""What the planner knows of tables that grow fast: it is told while they are young.

A statement is planned once a session. Of a table without statistics every index that begins with
the merchant looks alike, and one that finds all of a merchant's rows may be taken to find one of
them: with each payment of a new deployment the next takes longer. Of one that had a page when it
was analyzed, all is read to find a row, however large a burst has made it since. Autovacuum ends
that when it comes round, a minute later at most; here it is ended with the first pages, and each
time that a table has become several times as large.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.loops.repeating import repeat

queries = load_statements("paydesk.database", "table_statistics.sql")

TABLES = ("checkout", "payment", "payment_attempt", "customer", "card", "ledger_posting", "pingback", "subscription")
"""What grows with each payment or renewal, and is looked into by the next."""

ENOUGH = 2 * 8192
"""Bytes of a table from which something can be learnt: two pages."""

TIMES = 4
"""A table that is so many times as large as it was known to be is analyzed again: a dozen times
until it has gigabytes."""

PAUSE = 1.0
"""Seconds between looks."""


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    is_ours: bool


class TableStatistics:
    """Has tables analyzed as soon as they have rows, and whenever they have grown much."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watched = list(TABLES)

    async def look(self) -> None:
        """Analyze what has grown since it was last analyzed; moves no money."""
        grown = await records_of(
            _Table, queries.tables_that_grew(self._database, tables=self._watched, enough=ENOUGH, times=TIMES)
        )
        for table in grown:
            if table.is_ours:
                # Whoever holds the table (autovacuum, another worker) does it, or the next look.
                await self._database.execute(f"analyze (skip_locked) {table.name}")
            else:
                self._watched.remove(table.name)

    async def run(self, stop: asyncio.Event) -> None:
        """Look until told to stop."""
        await repeat("table statistics", self.look, stop, rest=PAUSE)
