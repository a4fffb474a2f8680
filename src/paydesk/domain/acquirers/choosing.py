"""Which account takes a payment: an order that was tried stays where it was, until it is certain
that nothing was taken there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
    """Where an order was tried last; `is_over` once nothing can be taken there any more, and which
    accounts surely began nothing for it.
    """

    acquirer: str | None
    is_over: bool
    began_nothing: list[str]


@dataclass(frozen=True, slots=True)
class Choice:
    """The account of an attempt, None if nobody takes it, and by what it was chosen."""

    account: str | None
    by: str = ""


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
    database: Database,
    order: Order,
    *,
    usual: str | None,
    known: Collection[str],
    able: Collection[str],
    out: Mapping[str, str],
    pads: bytes,
) -> Choice:
    """The account of the next attempt to pay an order.

    `known` are those that this process can ask, `able` those of them that can take it in the way in
    which it is to be paid; where none is, what is known decides. `out` are those that fail, with
    the reason: they are left out where another one may serve. Raises: Unavailable if the account
    that the order was tried at serves no more, and may have taken money.
    """
    shop = order.shop
    named = {"merchant_id": shop.merchant_id, "live": shop.live, "merchant_order_id": order.reference}
    forgotten = await queries.was_forgotten_at(database, **named, pads=pads, names=sorted(known))
    if forgotten is not None and forgotten not in known:
        raise Unavailable(OPEN_ELSEWHERE)
    if forgotten is not None:
        return Choice(str(forgotten), "a forgotten purchase")
    serve = await serving(database, shop, order.currency, usual, known)
    serve = [name for name in serve if name in able] or serve
    tried = record_of(_Tried, await queries.tried_at(database, **named))
    left = _left_out(serve, out, tried.began_nothing)
    stays = tried.acquirer in serve and not (tried.is_over and tried.acquirer in left)
    if stays:
        return Choice(tried.acquirer, "tried before")
    if not tried.is_over:
        raise Unavailable(OPEN_ELSEWHERE)
    steps = route(order, await list_rules(database), serve, left)
    taken = steps[-1] if steps and steps[-1].is_taken else None
    return Choice(taken.account, taken.what) if taken else Choice(None)


def _left_out(serve: Sequence[str], out: Mapping[str, str], began_nothing: Collection[str]) -> dict[str, str]:
    """The accounts that are passed over, with the reason: those that began nothing for this order
    come last, and those that fail after all others; never all.
    """
    left = {name: f"it is out of turn: {why}" for name, why in out.items() if name in serve}
    left |= {name: "it began nothing for this order" for name in began_nothing if name in serve}
    if all(name in left for name in serve):
        left = {name: why for name, why in left.items() if name in began_nothing}
    return {} if all(name in left for name in serve) else left


async def preview(
    database: Database, order: Order, *, usual: str | None, known: Collection[str], out: Mapping[str, str]
) -> list[Step]:
    """Where an order that was not tried yet would go, and why. Moves no money."""
    serve = await serving(database, order.shop, order.currency, usual, known)
    return route(order, await list_rules(database), serve, _left_out(serve, out, ()))
