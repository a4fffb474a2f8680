"""What an operator asks about pingbacks who knows an id, or wants to see everybody's.
Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.resending_by_hand import Pingback
from paydesk.domain.pingbacks.states import PingbackState

queries = load_statements(__package__ or "", "pingbacks_for_operator.sql")


@dataclass(frozen=True, slots=True)
class Listed(Pingback):
    """A pingback and whose it is."""

    merchant_id: int


@dataclass(frozen=True, slots=True)
class _Exhausted:
    live: bool
    id: int


async def newest_pingbacks(
    database: Database,
    *,
    merchant_id: int | None = None,
    live: bool | None = None,
    state: PingbackState | None = None,
    most: int = 50,
) -> list[Listed]:
    """The newest pingbacks, newest first: of everybody, or of one merchant, one side, one state."""
    rows = queries.newest_of_all(database, merchant_id=merchant_id, live=live, state=state, most=most)
    return await records_of(Listed, rows)


async def shop_of_pingback(database: Database, pingback_id: int) -> Shop:
    """The side of the merchant that a pingback belongs to.

    Raises: NotFound.
    """
    shop = record_if_any(Shop, await queries.side_of(database, id=pingback_id))
    if shop is None:
        raise NotFound(f"there is no pingback {pingback_id}; see: paydesk pingback list")
    return shop


async def exhausted_pingbacks(database: Database, merchant_id: int) -> list[tuple[Shop, int]]:
    """The merchant's pingbacks whose attempts all failed, oldest first, each with its side."""
    rows = queries.exhausted_of(database, merchant_id=merchant_id)
    return [(Shop(merchant_id, one.live), one.id) for one in await records_of(_Exhausted, rows)]
