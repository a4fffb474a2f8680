"""What the API answers about money given back."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import msgspec
from msgspec import Meta


class Refunded(msgspec.Struct, frozen=True):
    """Money given back, and where that leaves the order."""

    id: Annotated[int, Meta(description="The `payment_order.id`.")]
    reference_id: Annotated[int, Meta(description="The refund's own id, also in its pingback.")]
    status: Annotated[
        str,
        Meta(
            description="`reversal_refunded`: all is given back. `reversal_refunded_partially`: a part is. "
            "`processing`: the bank has not answered yet; a pingback follows."
        ),
    ]
    merchant_order_id: Annotated[str, Meta(description="Your order reference.")]
    currency: str
    refund_amount: Annotated[Decimal, Meta(description="What this refund gives back.")]
    total_refunded_amount: Annotated[Decimal, Meta(description="What was given back of the order in all so far.")]


class OneRefund(msgspec.Struct, frozen=True):
    """Money is given back, or on its way."""

    success: bool
    data: Refunded


class RefundLine(msgspec.Struct, frozen=True):
    """One refund of a payment, or the hold that was let go."""

    reference_id: int
    amount: Decimal
    status: Annotated[
        str, Meta(description="`successful`, `processing` (the bank has not answered yet) or `refused` (by the bank).")
    ]
    at: Annotated[int, Meta(description="When it was made, Unix seconds.")]


REFUND_ANSWERS = (OneRefund,)
