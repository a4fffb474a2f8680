"""What was said of an order's goods, as it is read again. Moves no money."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.deliveries.delivery_status import DeliveryStatus, GoodsType
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "")

MOST = 1000
"""Lines of a timeline that are shown."""


@dataclass(frozen=True, slots=True)
class SeenDelivery:
    """One line of an order's timeline; times are UTC. Unknown texts are empty, the rest is None."""

    id: int
    status: DeliveryStatus
    type: GoodsType
    carrier: str
    tracking_id: str
    tracking_url: str
    refundable: bool | None
    notify_user: bool | None
    product_description: str
    details: str
    reason: str
    estimated_at: datetime | None
    attachments: list[str | dict[str, str]]
    shipping_address: dict[str, str] | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    status: DeliveryStatus
    type: GoodsType
    carrier: str
    tracking_id: str
    tracking_url: str
    refundable: bool | None
    notify_user: bool | None
    product_description: str
    details: str
    reason: str
    estimated_at: datetime | None
    attachments: str
    shipping_address: str | None
    created_at: datetime


async def read_timeline(database: Database, shop: Shop, payment_id: int) -> list[SeenDelivery]:
    """All that was said of an order's goods, first to last; nothing if there is no such payment."""
    rows = queries.deliveries_of(
        database, merchant_id=shop.merchant_id, live=shop.live, payment_id=payment_id, most=MOST
    )
    return [_seen(row) for row in await records_of(_Row, rows)]


def _seen(row: _Row) -> SeenDelivery:
    return SeenDelivery(
        id=row.id,
        status=row.status,
        type=row.type,
        carrier=row.carrier,
        tracking_id=row.tracking_id,
        tracking_url=row.tracking_url,
        refundable=row.refundable,
        notify_user=row.notify_user,
        product_description=row.product_description,
        details=row.details,
        reason=row.reason,
        estimated_at=row.estimated_at,
        attachments=msgspec.json.decode(row.attachments),
        shipping_address=None if row.shipping_address is None else msgspec.json.decode(row.shipping_address),
        created_at=row.created_at,
    )
