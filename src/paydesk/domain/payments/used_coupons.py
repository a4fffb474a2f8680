"""The coupon that a checkout's price comes of."""

from __future__ import annotations

from dataclasses import dataclass

from paydesk.domain.merchants.customer_links import Link, LinkTo
from paydesk.domain.merchants.shop import Shop


@dataclass(frozen=True, slots=True)
class UsedCoupon:
    """What a checkout's price comes of: the code of its coupon, and the checkout of the same order
    without it.
    """

    code: str
    without: Link


def coupon_of(shop: Shop, code: str, without_id: int | None, without_seed: str) -> UsedCoupon | None:
    """The coupon of a checkout, by the id and seed of that without it; None if it has none."""
    return None if without_id is None else UsedCoupon(code, Link(LinkTo.CHECKOUT, shop, without_id, without_seed))
