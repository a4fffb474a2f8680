"""What the API answers about deliveries: from these types come the JSON
and the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Seconds = Annotated[int, Meta(description="Unix seconds; 0 when unset.")]


class DeliveryConfirmed(msgspec.Struct, frozen=True):
    """What a confirmation came to."""

    id: Annotated[int, Meta(description="Names this line of the order's timeline.")]
    payment_order_id: int
    merchant_reference_id: Annotated[str, Meta(description="Your order reference.")]
    status: Annotated[
        str,
        Meta(
            description="`captured`: the money that was held is taken. `processing`: recorded; the bank has not said "
            "yet whether the money is taken, and that follows. `recorded`: recorded, no money moved."
        ),
    ]
    created_at: Annotated[int, Meta(description="When it came for the first time, Unix seconds.")]


class OneDelivery(msgspec.Struct, frozen=True):
    """The confirmation is accepted."""

    success: bool
    data: DeliveryConfirmed


class Delivery(msgspec.Struct, frozen=True):
    """One line of an order's timeline; what was not said is empty or null."""

    id: int
    status: Annotated[str, Meta(description="`order_placed`, `order_shipped` or `delivered`.")]
    type: Annotated[str, Meta(description="`physical` or `digital`.")]
    carrier_type: Annotated[str, Meta(description="The carrier's name.")]
    carrier_tracking_id: str
    carrier_tracking_url: Annotated[str, Meta(description="As given, or derived for a known carrier.")]
    refundable: bool | None
    notify_user: bool | None
    product_description: str
    details: str
    reason: str
    estimated_delivery: Seconds
    attachments: list[str | dict[str, str]]
    shipping_address: dict[str, str] | None
    created_at: Seconds


DELIVERY_ANSWERS = (OneDelivery,)
