"""How a merchant's endpoints stand: what they took lately, since when they fail and why,
and what waits.

Read from the log alone, from no more of it than its newest rows: nothing is counted while pingbacks
are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.reasons import Why, why

queries = load_statements(__package__ or "", "health.sql")

MOST_COUNTED = 5_000
"""Of how many pingbacks a share is worked out, and what is not counted further."""

SOON = timedelta(minutes=2)
"""What is due by then may be news within moments."""

_NEWEST = 200
FAR = 2_000
"""Among how many of a side's newest pingbacks the last is looked for that an endpoint took."""
_MOST_ENDPOINTS = 5


@dataclass(frozen=True, slots=True)
class ArrivedShare:
    """Of so many pingbacks that were sent at least once, how many were acknowledged."""

    sent: int
    acknowledged: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A URL that pingbacks went to lately; times are UTC, None for none that is known.

    `failing` pingbacks, the first made at `failing_since`, were made after the last that it took,
    and it took none of them; `why`, `error` and `status` tell of the newest of these. A pingback
    that fails while later ones arrive is that pingback's trouble, not the endpoint's.
    """

    url: str
    last_success: datetime | None
    failing: int
    failing_since: datetime | None
    last_failure: datetime | None
    status: int | None
    error: str
    why: Why | None


@dataclass(frozen=True, slots=True)
class PingbackArrival:
    """How a side's pingbacks arrive; what is `waiting` has no URL to go to, `soon` are those `due`
    by SOON.

    `failed` are those of the week whose attempts are used up. If there are more than MOST_COUNTED
    in a week, these and the shares are of the newest, from `counted_since` on; nor is anything that
    is still to be sent counted further.
    """

    day: ArrivedShare
    week: ArrivedShare
    failed: int
    counted_since: datetime | None
    due: int
    retried: int
    soon: int
    waiting: int
    endpoints: Sequence[Endpoint]


@dataclass(frozen=True, slots=True)
class _Shares:
    day_sent: int
    day_acknowledged: int
    week_sent: int
    week_acknowledged: int
    week_failed: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class _Waits:
    due: int
    retried: int
    soon: int
    waiting: int


@dataclass(frozen=True, slots=True)
class _Endpoint:
    url: str
    last_success: datetime | None
    failing_since: datetime | None
    failing: int
    last_failure: datetime | None
    status: int | None
    error: str
    response_body: str


async def read_health(database: Database, shop: Shop, *, now: datetime) -> PingbackArrival:
    """How the shop's pingbacks arrive; `now` is its time, UTC (a test clock may run ahead)."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    ago = {"day": now - timedelta(days=1), "week": now - timedelta(days=7)}
    shares = record_of(_Shares, await queries.shares(database, **side, **ago, most=MOST_COUNTED))
    waits = record_of(_Waits, await queries.open_ones(database, **side, soon=now + SOON, most=MOST_COUNTED))
    return PingbackArrival(
        ArrivedShare(shares.day_sent, shares.day_acknowledged),
        ArrivedShare(shares.week_sent, shares.week_acknowledged),
        shares.week_failed,
        shares.since,
        waits.due,
        waits.retried,
        waits.soon,
        waits.waiting,
        await read_endpoints(database, shop),
    )


async def read_endpoints(database: Database, shop: Shop) -> list[Endpoint]:
    """The URLs that the shop's newest pingbacks went to, those that fail first."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    rows = queries.endpoints(database, **side, newest=_NEWEST, far=FAR, most=_MOST_ENDPOINTS)
    return [
        Endpoint(
            row.url,
            row.last_success,
            row.failing,
            row.failing_since,
            row.last_failure,
            row.status,
            row.error,
            why(row.status, row.error, row.response_body) if row.last_failure else None,
        )
        for row in await records_of(_Endpoint, rows)
    ]
