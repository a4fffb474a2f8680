"""What a shop may say of an order's goods, the way that goods usually take,
and which word takes the money.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum


class DeliveryStatus(StrEnum):
    """What a confirmation says (interface.md §8.6)."""

    ORDER_PLACED = "order_placed"
    """The shop has begun with the order."""
    ORDER_SHIPPED = "order_shipped"
    """A carrier has the goods."""
    DELIVERED = "delivered"
    """The customer has them."""


class GoodsType(StrEnum):
    """What kind of goods; only physical ones have a carrier."""

    PHYSICAL = "physical"
    DIGITAL = "digital"


DELIVERY_TRANSITIONS: Mapping[DeliveryStatus, frozenset[DeliveryStatus]] = {
    DeliveryStatus.ORDER_PLACED: frozenset({DeliveryStatus.ORDER_SHIPPED, DeliveryStatus.DELIVERED}),
    DeliveryStatus.ORDER_SHIPPED: frozenset({DeliveryStatus.DELIVERED}),
    DeliveryStatus.DELIVERED: frozenset(),
}
"""Where an order's goods may go from each place; word that comes late is kept,
and moves them nowhere."""

TAKES_MONEY = frozenset(
    {
        (DeliveryStatus.ORDER_SHIPPED, GoodsType.PHYSICAL),
        (DeliveryStatus.ORDER_SHIPPED, GoodsType.DIGITAL),
        (DeliveryStatus.DELIVERED, GoodsType.DIGITAL),
    }
)
"""What captures an authorization (interface.md §7.4);
nobody ships what is digital, so its arrival counts."""


def furthest(said: Iterable[DeliveryStatus]) -> DeliveryStatus | None:
    """Where an order's goods are by all that was said, in whatever order; None if nothing was."""
    reached: DeliveryStatus | None = None
    for status in said:
        if reached is None or status in DELIVERY_TRANSITIONS[reached]:
            reached = status
    return reached
