"""Using a coupon at a checkout: its order gets another checkout, at the price that the coupon
leaves. So what a customer has seen never changes under them, whatever they do in another tab.

A coupon is used by the intent to pay (`begin_attempt`), and what comes to nothing frees it again.
Moves no money.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime

from paydesk.core.errors import Malformed
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.coupons.coupons import CouponRefused, discounted, read_code
from paydesk.domain.coupons.keeping import find_by_code
from paydesk.domain.merchants.customer_links import Link, LinkTo
from paydesk.domain.merchants.live_amounts import taken
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import Checkout, find_checkout
from paydesk.domain.payments.requests import COUPON
from paydesk.domain.subscriptions.discounting import agree_discounted
from paydesk.domain.subscriptions.subscription_terms import Terms

queries = load_statements(__package__ or "")


async def apply_coupon(database: Database, checkout: Checkout, code: str) -> Link:
    """The checkout of the same order at the price that a coupon leaves, in place of one it has.

    Raises: CouponRefused, saying why.
    """
    shop, terms = checkout.shop, checkout.terms
    if terms is None:
        raise CouponRefused("elsewhere", "coupons are for subscriptions")
    try:
        coupon = await find_by_code(database, shop, read_code(code))
    except Malformed:
        coupon = None
    if coupon is None:
        raise CouponRefused("unknown", f"there is no coupon {code[:40]}")
    reduced = discounted(terms.undiscounted, coupon)
    reduced = replace(reduced, price=taken(reduced.price, reduced.currency, live=shop.live))
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    base = checkout.coupon.without if checkout.coupon is not None else checkout.link
    digest = hashlib.sha256(f"coupon {coupon.id} of {base.seed}".encode()).digest()
    if not await queries.is_open(database, **side, id=coupon.id, request_digest=digest, at=checkout.now):
        raise CouponRefused("over", f"coupon {coupon.code} can't be used now")
    listed = await queries.list_version_of(database, **side, checkout_id=base.row_id)
    row_id = await queries.open_discounted(
        database,
        **side,
        checkout_id=base.row_id,
        coupon_id=coupon.id,
        request_digest=digest,
        package_version_id=await agree_discounted(database, shop, int(listed), reduced, now=checkout.now),
        first_amount=reduced.first_amount,
    )
    return Link(LinkTo.CHECKOUT, shop, int(row_id), digest.hex())


async def check_coupon(database: Database, shop: Shop, terms: Terms | None, code: str) -> None:
    """Whether a coupon is one for such a subscription, before there is a checkout of it.

    Raises: Malformed, naming the form's field.
    """
    try:
        if terms is None:
            raise CouponRefused("elsewhere", "coupons are for subscriptions")
        coupon = await find_by_code(database, shop, read_code(code, COUPON))
        if coupon is None:
            raise CouponRefused("unknown", f"there is no coupon {code[:40]}")
        discounted(terms.undiscounted, coupon)
    except CouponRefused as refused:
        raise Malformed(f"{COUPON}: {refused}", COUPON) from refused


async def apply_signed(database: Database, link: Link, code: str, real_now: datetime) -> Link | None:
    """The checkout at the price that the coupon of a shop's form leaves; None if it can't be used
    now, so that the customer pays the usual price.

    Raises: Malformed if the form names a coupon that is none, or none for it.
    """
    try:
        return await apply_coupon(database, await find_checkout(database, link, now=real_now), code)
    except CouponRefused as refused:
        if refused.why == "over":
            return None
        raise Malformed(f"{COUPON}: {refused}", COUPON) from refused


async def is_used_up(database: Database, checkout: Checkout, email: str) -> bool:
    """Whether a customer has used a checkout's coupon as often as one customer may."""
    if checkout.coupon is None:
        return False
    shop = checkout.shop
    return bool(
        await queries.is_used_up(
            database, merchant_id=shop.merchant_id, live=shop.live, checkout_id=checkout.id, email=email
        )
    )
