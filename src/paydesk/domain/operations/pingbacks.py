"""What an operator asks about pingbacks who knows an id, or wants to see everybody's. Moves no money."""

from __future__ import annotations

from dataclasses import dataclass

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.resending import Pingback
from paydesk.domain.pingbacks.states import PingbackState

queries = load_statements(__package__ or "", "pingbacks.sql")


@dataclass(frozen=True, slots=True)
class Listed:
    """A pingback and whose it is."""

    merchant_id: int
    pingback: Pingback


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
    return [
        Listed(
            row["merchant_id"],
            Pingback(
                **{**{name: row[name] for name in Pingback.__slots__}, "state": PingbackState(row["state"])},
            ),
        )
        async for row in rows
    ]


async def shop_of_pingback(database: Database, pingback_id: int) -> Shop:
    """The side of the merchant that a pingback belongs to.

    Raises: NotFound.
    """
    row = await queries.side_of(database, id=pingback_id)
    if row is None:
        raise NotFound(f"there is no pingback {pingback_id}; see: paydesk pingback list")
    return Shop(row["merchant_id"], row["live"])


async def exhausted_pingbacks(database: Database, merchant_id: int) -> list[tuple[Shop, int]]:
    """The merchant's pingbacks whose attempts all failed, oldest first, each with its side."""
    rows = queries.exhausted_of(database, merchant_id=merchant_id)
    return [(Shop(merchant_id, row["live"]), row["id"]) async for row in rows]
