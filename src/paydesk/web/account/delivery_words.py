"""What the account calls the statuses of deliveries."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.deliveries.delivery_status import DeliveryStatus
from paydesk.web.texts import mark

DELIVERY_STATUSES: Mapping[DeliveryStatus, str] = {
    DeliveryStatus.ORDER_SHIPPED: mark("Shipped"),
    DeliveryStatus.DELIVERED: mark("Arrived"),
    DeliveryStatus.ORDER_PLACED: mark("In preparation"),
}
