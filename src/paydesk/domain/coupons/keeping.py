"""A shop's coupons: making, listing, and switching them off. Their terms never change."""

from __future__ import annotations

from datetime import datetime

from paydesk.core.errors import Conflict, NotFound
from paydesk.core.paging import Page
from paydesk.core.wording import plural, worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.coupons.coupons import Coupon, CouponTerms
from paydesk.domain.merchants.live_amounts import require_taken
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "")

MOST_COUPONS = 10_000
"""Of one side of a shop."""


async def make_coupon(database: Connection, shop: Shop, terms: CouponTerms, *, now: datetime) -> Coupon:
    """Make a coupon, which can be used at once or from its first day on; the same one that is there
    already is not made again. Moves no money.

    Raises: Conflict if the code is another coupon's, there are too many, or a live one takes off
        more decimals than acquirers take.
    """
    if terms.amount is not None and terms.currency is not None:
        require_taken(shop, terms.currency, terms.amount)
    made = await queries.make_coupon(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        code=terms.code,
        percent=terms.percent,
        amount=terms.amount,
        currency=terms.currency,
        periods=terms.periods,
        valid_from=terms.valid_from,
        valid_until=terms.valid_until,
        most_uses=terms.most_uses,
        most_per_customer=terms.most_per_customer,
        skus=list(terms.skus),
        most=MOST_COUPONS,
        now=now,
    )
    if made is not None:
        return await find_coupon(database, shop, int(made))
    known = await find_by_code(database, shop, terms.code)
    if known is None:
        raise Conflict(
            plural("there is %(count)s coupon already", "there are %(count)s coupons already", count=MOST_COUPONS)
        )
    if not _is(known, terms):
        raise Conflict(
            worded("there is a coupon %(code)s already; its terms can't be changed, take another code", code=terms.code)
        )
    return known


def _is(known: Coupon, terms: CouponTerms) -> bool:
    """Whether a coupon is just what is asked for."""
    names = (name for name in CouponTerms.__slots__ if name != "skus")
    return all(getattr(known, name) == getattr(terms, name) for name in names) and tuple(known.skus) == terms.skus


async def list_coupons(database: Database, shop: Shop, page: Page) -> list[Coupon]:
    """A shop's coupons, newest first."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    return await records_of(Coupon, queries.list_coupons(database, **side, **page.parameters()))


async def find_coupon(database: Connection, shop: Shop, coupon_id: int) -> Coupon:
    """One of a shop's coupons. Raises: NotFound."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    found = record_if_any(Coupon, await queries.find_coupon(database, **side, id=coupon_id))
    if found is None:
        raise NotFound(f"there is no coupon {coupon_id}")
    return found


async def find_by_code(database: Connection, shop: Shop, code: str) -> Coupon | None:
    """The coupon of a code; None if there is none."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    return record_if_any(Coupon, await queries.find_by_code(database, **side, code=code))


async def switch_coupon(database: Connection, shop: Shop, coupon_id: int, *, on: bool) -> Coupon:
    """Let a coupon be used, or not any more; who has used it keeps what they agreed to.
    Moves no money.

    Raises: NotFound.
    """
    await queries.switch_coupon(database, merchant_id=shop.merchant_id, live=shop.live, id=coupon_id, active=on)
    return await find_coupon(database, shop, coupon_id)
