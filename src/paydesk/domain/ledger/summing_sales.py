"""Summing sales: what became of live payments, by quarters of an hour and by days, so that a report
is read in a moment. Moves no money.

A quarter of an hour is summed once it is over for half an hour. What changes of its payments after
that the schema's trigger writes down (`sales_change`), which is added to the sums here, too.
`paydesk check` proves that the sums are what the payments say.

A clock that ran ahead has sums contain times that are to come. Once it is put back, payments begin
in those, of which the trigger writes nothing down: so the sums are opened again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "summing_sales.sql")

PAUSE = 600.0
"""Seconds between looks: a report counts the payments of about an hour themselves."""

OVER_FOR = timedelta(minutes=30)
"""For how long a quarter of an hour is over before it is summed: longer than the schema's trigger
waits until it writes changes down (15 minutes), and than clocks differ."""

YOUNG = timedelta(minutes=15)
"""How old a payment is whose changes the schema's trigger writes down:
what is younger is in no sum yet."""

_PATIENCE = 600.0
"""Seconds that one day's sums may take, of all merchants."""


@dataclass(frozen=True, slots=True)
class _Closable:
    closed_until: datetime
    next_until: datetime


async def sum_sales(database: Database) -> bool:
    """Add what is over to the sums, a day at most; says whether there may be more to add."""
    async with database.acquire() as connection, connection.transaction():
        until = await queries.ahead(connection, young=YOUNG)
        if until is not None:
            await connection.execute(queries.open_again.sql, until, timeout=_PATIENCE)
            return True
        found = record_if_any(_Closable, await queries.closable(connection, over_for=OVER_FOR))
        if found is None:
            return False
        await connection.execute(queries.close_sales.sql, found.next_until, found.closed_until, timeout=_PATIENCE)
    return True


async def run_summing(database: Database, stop: asyncio.Event) -> None:
    """Sum sales from time to time until told to stop."""

    async def add() -> bool:
        return await sum_sales(database)

    await repeat("summing of sales", add, stop, rest=PAUSE)
