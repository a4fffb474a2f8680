"""Starting a merchant's test side anew: its data goes, its clock returns to real time.
Live data is never touched.
"""

from __future__ import annotations

from collections.abc import Callable

import asyncpg

from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.cells.fencing import Fenced
from paydesk.domain.merchants.test_clock import held_clock
from paydesk.domain.merchants.test_clock import queries as clock_queries

queries = load_statements(__package__ or "", "resetting.sql")

IN_ORDER = (
    "pingback_attempts", "rejected_forms", "ignored_fields", "card_tries", "card_guard_minutes", "pingbacks",
    "ledger_postings", "ledger_entries_of_before", "payouts", "deliveries",
    "evidence_files", "chargebacks", "movements", "api_calls", "shopper_sessions", "shopper_codes",
    "instrument_charges", "saved_instruments", "shoppers",
    "payment_attempts", "payments", "reserve_changes", "reserve_dues", "payment_link_sales", "payment_links",
    "coupon_uses", "coupons", "picture_sources", "item_pictures",
    "package_moves", "subscriptions", "mrr_days", "checkouts", "customers", "cards",
    "package_versions", "subscription_packages",
)  # fmt: skip
"""What is deleted, each before what it refers to;
a charge in flight finds its attempt gone and records nothing."""

REFERRED_TO = frozenset(IN_ORDER[IN_ORDER.index("subscriptions") :])
"""Kinds for which PostgreSQL looks for rows that still refer to each deleted one,
without an index for it."""

BATCH, REFERRED_BATCH = 2000, 100
"""Rows that one statement deletes, so that none takes long."""

TRY_AGAIN = 5

_DISTURBED = (
    asyncpg.ForeignKeyViolationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)
"""Somebody added to what was being deleted."""

Report = Callable[[], None]


async def reset_test_side(database: Database, merchant_id: int, *, report: Report = lambda: None) -> dict[str, int]:
    """Delete all test data of a merchant, then return its test side to real time.

    In many small steps, since one transaction over all would be slow; interrupted, it is to be
    called again. Rounds follow each other until one finds nothing, for what was just being written
    may belong to what is deleted already. `report` is called after each kind (IN_ORDER) of the
    first round. Returns how many rows of each kind were deleted. Moves no money.

    Raises: NotFound if there is no such merchant; Conflict if its clock is being moved or its test
        side is in use, or goes to another cell meanwhile; Fenced if it did before.
    """
    deleted = dict.fromkeys(IN_ORDER, 0)
    async with held_clock(database, merchant_id) as clock:
        for number in range(TRY_AGAIN):
            try:
                found = await _round(database, merchant_id, deleted, report if number == 0 else lambda: None)
            except _DISTURBED:
                continue
            except Fenced as fenced:
                raise Conflict(
                    f"the test side of merchant {merchant_id} is being moved to another server, and deleted in part: "
                    "reset it again once its shop is open again"
                ) from fenced
            if found:
                continue
            stopped = await clock_queries.stop_clock(database, merchant_id=merchant_id, holder=clock.holder)
            if stopped is not None:
                return deleted
            break
    raise Conflict(f"the test side of merchant {merchant_id} is in use just now; reset it again")


async def _round(database: Database, merchant_id: int, deleted: dict[str, int], report: Report) -> int:
    """Delete what is there, kind by kind, and count it in `deleted`;
    returns how many rows there were.
    """
    before = sum(deleted.values())
    await queries.pause_subscriptions(database, merchant_id=merchant_id)
    for kind in IN_ORDER:
        deleted[kind] += await _delete(database, kind, merchant_id)
        report()
    return sum(deleted.values()) - before


async def _delete(database: Database, kind: str, merchant_id: int) -> int:
    """Delete all of a kind in batches, so that no statement takes long; returns how many rows."""
    delete, total = getattr(queries, f"delete_{kind}"), 0
    most = REFERRED_BATCH if kind in REFERRED_TO else BATCH
    rows = most
    while rows == most:
        status = await delete(database, merchant_id=merchant_id, most=most)
        rows = int(status.split()[-1])
        total += rows
    return total
