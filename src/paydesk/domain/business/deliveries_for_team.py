"""What a merchant looks at before packing parcels: orders that wait, and what was confirmed.
Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.paging import EARLIEST, LARGEST_ID, Place
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.deliveries.delivery_status import DeliveryStatus
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import MovementKind, PaymentState

queries = load_statements(__package__ or "", "deliveries_for_team.sql")


@dataclass(frozen=True, slots=True)
class WaitingOrder:
    """An authorized order: voided unless shipped before `ship_by` (UTC);
    `moving` is a capture or void in progress.
    """

    payment_id: int
    merchant_order_id: str
    amount: Decimal
    currency: str
    ship_by: datetime
    paid_at: datetime | None
    moving: MovementKind | None
    first_name: str
    last_name: str
    email: str
    country: str
    description: str


@dataclass(frozen=True, slots=True)
class ListedDelivery:
    """One confirmation with its order; `at` is UTC,
    `state` is where the order's payment stands now.
    """

    id: int
    status: DeliveryStatus
    carrier: str
    tracking_id: str
    tracking_url: str
    at: datetime
    payment_id: int
    merchant_order_id: str
    state: PaymentState
    amount: Decimal
    currency: str


async def orders_to_ship(
    database: Database, shop: Shop, *, after: Place | None = None, most: int
) -> list[WaitingOrder]:
    """Orders that wait to be shipped, soonest deadline first; a page continues after the last one's
    (ship_by, id).
    """
    begin = after or Place(EARLIEST, 0)
    rows = queries.orders_to_ship(
        database, merchant_id=shop.merchant_id, live=shop.live, after_at=begin.at, after_id=begin.id, most=most
    )
    return await records_of(WaitingOrder, rows)


async def newest_deliveries(
    database: Database, shop: Shop, *, before: int = LARGEST_ID, most: int
) -> list[ListedDelivery]:
    """Confirmations, newest first, those with an id below `before`."""
    rows = queries.newest_deliveries(
        database, merchant_id=shop.merchant_id, live=shop.live, before_id=before, most=most
    )
    return await records_of(ListedDelivery, rows)
