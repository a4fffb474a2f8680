"""What a merchant's server reads about pingbacks: pages of them, and one with its attempts.
Moves no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paydesk.core.errors import NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.reasons import Why, why
from paydesk.domain.pingbacks.resending_by_hand import Pingback, PingbackAttempt, find_tried_pingback
from paydesk.domain.pingbacks.states import PingbackState

queries = load_statements(__package__ or "", "for_api.sql")

USUAL_EVENT = "payment"
"""What nearly every pingback tells; the others have an index of their own."""


@dataclass(frozen=True, slots=True)
class SeenPingback(Pingback):
    """A pingback with the subscription that it is about; one about a payment names that instead."""

    subscription_id: int | None


@dataclass(frozen=True, slots=True)
class _LastAttempt:
    pingback_id: int
    status: int | None
    error: str
    response_body: str


@dataclass(frozen=True, slots=True)
class PingbackFilter:
    """Which pingbacks: of a state, about an order reference, about whoever has an e-mail address,
    of an event.
    """

    state: PingbackState | None = None
    reference: str | None = None
    email: str | None = None
    event: str | None = None


async def list_pingbacks(database: Database, shop: Shop, wanted: PingbackFilter, page: Page) -> list[SeenPingback]:
    """A page of the shop's pingbacks, newest first;
    the narrowest filter leads, by an index of its own.
    """
    common = {"merchant_id": shop.merchant_id, "live": shop.live, **page.parameters()}
    state, event = wanted.state, wanted.event
    is_usual = state is None or state is PingbackState.ACKNOWLEDGED
    if wanted.reference is not None or wanted.email is not None:
        about = {"reference": wanted.reference, "email": wanted.email}
        found = queries.about(database, **common, **about, event=event, state=state)
    elif is_usual and (event is None or event == USUAL_EVENT):
        found = queries.by_time(database, **common, acknowledged=state is not None, payments=event is not None)
    elif is_usual:
        found = queries.of_event(database, **common, event=event, acknowledged=state is not None)
    elif event is None or state in (PingbackState.DUE, PingbackState.MUTED):
        found = queries.in_state(database, **common, state=state, event=event)
    else:
        found = queries.failed_of_event(database, **common, state=state, event=event)
    return await records_of(SeenPingback, found)


async def why_failed(database: Database, shop: Shop, pingback_ids: Sequence[int]) -> dict[int, Why]:
    """Why the last attempt of each of these failed; those that were acknowledged, or never sent,
    are missing.
    """
    rows = queries.last_attempts(database, merchant_id=shop.merchant_id, live=shop.live, ids=pingback_ids)
    reasons = {
        last.pingback_id: why(last.status, last.error, last.response_body)
        for last in await records_of(_LastAttempt, rows)
    }
    return {pingback_id: reason for pingback_id, reason in reasons.items() if reason is not None}


async def find_pingback(database: Database, shop: Shop, pingback_id: int) -> SeenPingback:
    """The shop's pingback with this id.

    Raises: NotFound if the shop has no such pingback in this mode.
    """
    found = record_if_any(
        SeenPingback, await queries.find(database, merchant_id=shop.merchant_id, live=shop.live, id=pingback_id)
    )
    if found is None:
        raise NotFound(f"there is no pingback {pingback_id}")
    return found


async def find_with_attempts(
    database: Database, shop: Shop, pingback_id: int
) -> tuple[SeenPingback, list[PingbackAttempt]]:
    """The shop's pingback with its attempts, first to last;
    the private key in their headers is masked.

    Raises: NotFound if the shop has no such pingback in this mode.
    """
    seen = await find_pingback(database, shop, pingback_id)
    _, attempts = await find_tried_pingback(database, shop, pingback_id)
    return seen, attempts
