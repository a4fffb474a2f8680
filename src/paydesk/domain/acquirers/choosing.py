"""Which account takes a payment: an order that was tried stays where it was, until it is certain
that nothing was taken there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from paydesk.core.errors import Unavailable
from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.domain.acquirers.accounts import queries
from paydesk.domain.acquirers.routing import Order, Step, list_rules, route
from paydesk.domain.merchants.shop import Shop

OPEN_ELSEWHERE: Final = "what became of the last attempt to pay is not certain yet; try again in a while"


@dataclass(frozen=True, slots=True)
class _Serving:
    name: str


@dataclass(frozen=True, slots=True)
class _Tried:
    """Where an order was tried last; `is_over` once nothing can be taken there any more."""

    acquirer: str | None
    is_over: bool


async def serving(
    database: Database, shop: Shop, currency: str | None, usual: str | None, known: Collection[str]
) -> list[str]:
    """The accounts that take new payments of a shop in a currency (None: in any), in the order in
    which they are asked; the usual one, of the settings, comes last.
    """
    rows = queries.serving(database, merchant_id=shop.merchant_id, live=shop.live, currency=currency)
    added = [one.name for one in await records_of(_Serving, rows) if one.name in known]
    return [*added, *([usual] if usual is not None else [])]


async def choose(
    database: Database, order: Order, *, usual: str | None, known: Collection[str], able: Collection[str], pads: bytes
) -> str | None:
    """The account of the next attempt to pay an order, None if nobody takes it.

    `known` are those that this process can ask, `able` those of them that can take it in the way in
    which it is to be paid; where none is, what is known decides. Raises: Unavailable if the account
    that the order was tried at serves no more, and may have taken money.
    """
    shop = order.shop
    named = {"merchant_id": shop.merchant_id, "live": shop.live, "merchant_order_id": order.reference}
    forgotten = await queries.was_forgotten_at(database, **named, pads=pads, names=sorted(known))
    if forgotten is not None and forgotten not in known:
        raise Unavailable(OPEN_ELSEWHERE)
    if forgotten is not None:
        return str(forgotten)
    serve = await serving(database, shop, order.currency, usual, known)
    serve = [name for name in serve if name in able] or serve
    tried = record_of(_Tried, await queries.tried_at(database, **named))
    if tried.acquirer in serve:
        return tried.acquirer
    if not tried.is_over:
        raise Unavailable(OPEN_ELSEWHERE)
    steps = route(order, await list_rules(database), serve)
    return steps[-1].account if steps and steps[-1].is_taken else None


async def preview(database: Database, order: Order, *, usual: str | None, known: Collection[str]) -> list[Step]:
    """Where an order that was not tried yet would go, and why. Moves no money."""
    return route(order, await list_rules(database), await serving(database, order.shop, order.currency, usual, known))
