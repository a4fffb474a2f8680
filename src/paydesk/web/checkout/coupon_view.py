"""What a checkout's pages know of coupons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CouponView:
    """Where a coupon is typed, empty if none may be; of one that is used its code, and where the
    order is paid without it.
    """

    url: str = ""
    code: str = ""
    without: str = ""


NO_COUPON = CouponView()

COUPON_OVER = "coupon=over"
"""The query by which a page is asked for that says so of the coupon which a form brought."""
