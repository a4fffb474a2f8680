"""What waits for somebody of a team: parcels, disputes, renewals that fail,
and addresses that take no pingbacks. Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paydesk.database.pool import Database
from paydesk.database.records import record_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.health import Endpoint, read_endpoints

queries = load_statements(__package__ or "", "needs_you.sql")

MOST_WAITING = 1000
"""What is not counted further."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much of what waits for the team.

    `parcels` are to be sent, the first by `ship_by`; `disputes` may still be answered, the first
    until `respond_by`; `renewals` fail. Times are UTC, None for none.
    """

    parcels: int
    ship_by: datetime | None
    disputes: int
    respond_by: datetime | None
    renewals: int


async def read_waiting(database: Database, shop: Shop, *, real_now: datetime) -> Waiting:
    """What waits for the team; banks' deadlines are in real time, UTC."""
    return record_of(
        Waiting,
        await queries.waiting(
            database, merchant_id=shop.merchant_id, live=shop.live, real_now=real_now, most=MOST_WAITING
        ),
    )


async def failing_endpoints(database: Database, shop: Shop) -> list[Endpoint]:
    """The addresses that have taken none of the newest pingbacks."""
    return [one for one in await read_endpoints(database, shop) if one.failing_since is not None]
