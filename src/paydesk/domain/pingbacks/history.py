"""What a merchant's server reads about pingbacks: pages of them, and one with its attempts. Moves no money."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from paydesk.core.errors import NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.pingbacks.resending import Pingback, PingbackAttempt, show_pingback
from paydesk.domain.pingbacks.states import PingbackState

queries = load_statements(__package__ or "", "history.sql")


@dataclass(frozen=True, slots=True)
class SeenPingback:
    """A pingback and the subscription that it is about; one about a payment names that in `pingback` instead."""

    pingback: Pingback
    subscription_id: int | None


@dataclass(frozen=True, slots=True)
class PingbackFilter:
    """Which pingbacks: of a state, about an order reference, about whoever has an e-mail address."""

    state: PingbackState | None = None
    reference: str | None = None
    email: str | None = None


async def browse_pingbacks(database: Database, shop: Shop, wanted: PingbackFilter, page: Page) -> list[SeenPingback]:
    """A page of the shop's pingbacks, newest first; the narrowest filter leads, by an index of its own."""
    return [_seen(row) async for row in _rows(database, shop, wanted, page)]


def _rows(database: Database, shop: Shop, wanted: PingbackFilter, page: Page) -> AsyncIterator[Mapping[str, Any]]:
    common = {"merchant_id": shop.merchant_id, "live": shop.live, **page.parameters()}
    found: AsyncIterator[Mapping[str, Any]]
    if wanted.reference is not None or wanted.email is not None:
        email = wanted.email.lower() if wanted.email is not None else None
        found = queries.about(database, **common, reference=wanted.reference, email=email, state=wanted.state)
    elif wanted.state is None or wanted.state is PingbackState.ACKNOWLEDGED:
        found = queries.by_time(database, **common, acknowledged=wanted.state is not None)
    else:
        found = queries.in_state(database, **common, state=wanted.state)
    return found


async def find_pingback(database: Database, shop: Shop, pingback_id: int) -> SeenPingback:
    """The shop's pingback with this id.

    Raises: NotFound if the shop has no such pingback in this mode.
    """
    row = await queries.find(database, merchant_id=shop.merchant_id, live=shop.live, id=pingback_id)
    if row is None:
        raise NotFound(f"there is no pingback {pingback_id}")
    return _seen(row)


async def find_with_attempts(
    database: Database, shop: Shop, pingback_id: int
) -> tuple[SeenPingback, list[PingbackAttempt]]:
    """The shop's pingback with its attempts, first to last; the private key in their headers is masked.

    Raises: NotFound if the shop has no such pingback in this mode.
    """
    seen = await find_pingback(database, shop, pingback_id)
    _, attempts = await show_pingback(database, shop, pingback_id)
    return seen, attempts


def _seen(row: Mapping[str, Any]) -> SeenPingback:
    values = {name: row[name] for name in Pingback.__slots__}
    return SeenPingback(Pingback(**{**values, "state": PingbackState(row["state"])}), row["subscription_id"])
