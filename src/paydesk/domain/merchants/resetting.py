"""Starting a merchant's test side anew: its data goes, its clock returns to real time. Live data is never touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncpg

from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.clock import HeldClock, held_clock
from paydesk.domain.merchants.clock import queries as clock_queries

queries = load_statements(__package__ or "", "resetting.sql")

IN_ORDER = (
    "subscriptions", "pingback_attempts", "rejected_forms", "pingbacks", "ledger_entries", "payment_attempts",
    "payments", "checkouts", "customers", "cards", "package_versions", "subscription_packages",
)  # fmt: skip
"""What is deleted, each before what it refers to."""

BATCH = 5000
TRY_AGAIN = 5

_DISTURBED = (
    asyncpg.ForeignKeyViolationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)
"""Somebody added to what was being deleted."""

Report = Callable[[], None]


async def reset_test_side(database: Database, merchant_id: int, *, report: Report = lambda: None) -> dict[str, int]:
    """Delete all test data of a merchant and return its test side to real time, or change nothing.

    Returns how many rows of each kind were deleted; `report` is called after each kind (IN_ORDER). Moves no money.

    Raises: NotFound if there is no such merchant; Conflict if its clock is being moved or its test side is in use.
    """
    async with held_clock(database, merchant_id) as clock:
        for _ in range(TRY_AGAIN):
            try:
                return await _reset(database, clock, report)
            except _DISTURBED:
                continue
    raise Conflict(f"the test side of merchant {merchant_id} is in use just now; try again")


async def _reset(database: Database, clock: HeldClock, report: Report) -> dict[str, int]:
    """One try, in one transaction, so that nobody ever sees half of the data."""
    deleted = dict.fromkeys(IN_ORDER, 0)
    async with database.acquire() as connection, connection.transaction():
        for kind in IN_ORDER:
            deleted[kind] = await _delete(connection, kind, clock.merchant_id)
            report()
        stopped = await clock_queries.stop_clock(connection, merchant_id=clock.merchant_id, holder=clock.holder)
        if stopped is None:
            raise Conflict(
                f"somebody else moves the test clock of merchant {clock.merchant_id} now; nothing was deleted"
            )
    return deleted


async def _delete(connection: Any, kind: str, merchant_id: int) -> int:
    """Delete all of a kind in batches, so that no statement takes long; returns how many rows."""
    delete, total = getattr(queries, f"delete_{kind}"), 0
    while True:
        status = await delete(connection, merchant_id=merchant_id, most=BATCH)
        rows = int(status.split()[-1])
        total += rows
        if rows < BATCH:
            return total
