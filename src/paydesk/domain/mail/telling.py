"""Queueing mails about what has been committed: payments, ends of subscriptions, renewals and endpoints that fail.

Nothing here stands in the way of a payment: the statements that record outcomes don't know of mails. What they commit
is read afterwards, and each event's name (`once`) makes sure that it is told once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.apart import ASIDE, DueRow, claimed, one_by_one, set_aside
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.pingbacks.health import FAR
from paydesk.domain.pingbacks.states import MOST_ATTEMPTS
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "telling.sql")
log = structlog.get_logger()

SWEEP_AFTER = timedelta(minutes=2)
"""Twice what the slowest statement may take: an id that was drawn before is committed by then, or never will be."""

TOLD_FOR = timedelta(days=3)
"""Nobody is told of what happened longer ago; so little is told when mails are switched on late."""

AFTER_ATTEMPTS = 3
"""Attempts of one pingback that failed before the merchant is told that its server does: about an hour."""

_LOOKED_AT = 200
"""How many of a side's oldest pingbacks that are still to be sent tell whether an endpoint fails."""

PAUSE = 2.0
"""Seconds between looks when nothing has happened."""

SLOW_PAUSE = 30.0
"""Seconds between looks at what fails, which stays so for hours."""


async def tell_events(
    database: Database, *, real_now: datetime, keep_test: bool, most_merchants: int = 200, most_events: int = 500
) -> int:
    """Queue the mails about what was committed since the last look. Moves no money.

    Mails about test data go to the customers' made-up addresses only where they are kept on this machine
    (`keep_test`); else to the merchant, if it asks for them. Returns how many were queued. `real_now` is UTC.
    """
    await queries.add_places(database)

    async def tell(only: Sequence[int] | None) -> list[tuple[int, int]]:
        row = await queries.tell_pingbacks(
            database,
            real_now=real_now,
            since=real_now - TOLD_FOR,
            keep_test=keep_test,
            sweep_after=SWEEP_AFTER,
            most_merchants=most_merchants,
            most_events=most_events,
            only=only,
            aside_since=real_now - ASIDE,
        )
        return [(int(row["mails"]), int(row["places"]))]

    async def due() -> list[DueRow]:
        rows = queries.merchants_to_tell(database)
        return [DueRow(Shop(row["merchant_id"], live=True), row["merchant_id"]) async for row in rows]

    async def leave_to_the_alarm(_: Sequence[DueRow]) -> None:
        """The statement leaves out whoever has one that is younger than an hour."""

    queued, places = 0, 1
    while places:
        noun, doing = "mails of merchant", "what happened there can't be told"
        told = await claimed(database, tell, due, leave_to_the_alarm, noun=noun, doing=doing)
        queued, places = queued + sum(mails for mails, _ in told), sum(moved for _, moved in told)
    return queued + await _tell_marked(database, real_now=real_now, keep_test=keep_test, most=most_events)


async def _tell_marked(database: Database, *, real_now: datetime, keep_test: bool, most: int) -> int:
    """Queue the mails about refunds, shipments, chargebacks and voids, whose rows say whether they were told.

    Where those of one kind can't be queued, the other kinds are.
    """

    async def tell(kind: str) -> int:
        queued, seen = 0, most
        while seen == most:
            told = getattr(queries, f"tell_{kind}")
            row = await told(database, real_now=real_now, since=real_now - TOLD_FOR, keep_test=keep_test, most=most)
            seen, queued = row["seen"], queued + int(row["mails"])
        return queued

    worked = await one_by_one(("refunds", "shipments", "chargebacks", "voids"), tell)
    await set_aside(database, worked, lambda kind: (None, f"mails about {kind}"), doing="they can't be queued")
    return sum(worked.results)


async def tell_failing(database: Database, *, real_now: datetime, keep_test: bool, most: int = 500) -> int:
    """Queue the mails about renewals that failed, and to merchants whose server takes no pingbacks. Moves no money.

    Returns how many were queued; `keep_test` as for `tell_events`, `real_now` is UTC.
    """
    queued = 0
    while told := await queries.tell_failing_renewals(database, real_now=real_now, keep_test=keep_test, most=most):
        queued += int(told)
    return queued + int(
        await queries.tell_failing_endpoints(
            database,
            real_now=real_now,
            keep_test=keep_test,
            after_attempts=AFTER_ATTEMPTS,
            most_attempts=MOST_ATTEMPTS,
            looked_at=_LOOKED_AT,
            far=FAR,
        )
    )


async def choose_mails(database: Database, merchant_id: int, *, customer_mails: bool, test_mails: bool) -> None:
    """Set whether a merchant's customers get mails, and whether it wants to get those about test data itself.

    Raises: NotFound.
    """
    chosen = await queries.choose(
        database, merchant_id=merchant_id, customer_mails=customer_mails, test_mails=test_mails
    )
    if chosen is None:
        raise NotFound(f"there is no merchant {merchant_id}")


async def run_telling(database: Database, stop: asyncio.Event, *, keep_test: bool) -> None:
    """Queue mails about what happens until told to stop."""

    async def tell_what_happened() -> None:
        await tell_events(database, real_now=utc_now(), keep_test=keep_test)

    async def tell_what_fails() -> None:
        await tell_failing(database, real_now=utc_now(), keep_test=keep_test)

    await asyncio.gather(
        repeat("telling", tell_what_happened, stop, rest=PAUSE, due=True),
        repeat("telling of failures", tell_what_fails, stop, rest=SLOW_PAUSE, due=True),
    )
