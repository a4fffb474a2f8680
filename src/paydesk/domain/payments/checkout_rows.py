"""What the database knows of a checkout: its form and its shop, and what only few have besides."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from paydesk.core.periods import Unit
from paydesk.database.pool import Database
from paydesk.database.records import record_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.line_items import LineItems
from paydesk.domain.payments.states import PaymentState

queries = load_statements(__package__ or "", "checkout_rows.sql")


class CheckoutRow(msgspec.Struct, frozen=True):
    """A row of `find_checkout`; with `is_plain` nothing is behind it."""

    merchant_id: int
    live: bool
    id: int
    seed: str
    merchant_order_id: str
    amount: Decimal
    currency: str
    description: str
    success_url: str
    line_items: LineItems | None
    email: str
    first_name: str
    last_name: str
    country: str
    created_at: datetime
    expires_at: datetime
    merchant_name: str
    app_schemes: list[str]
    merchant_confirmed: bool
    city: str | None
    zip: str | None
    branded_at: datetime | None
    has_logo: bool
    imprint: list[str] | None
    clock: timedelta
    suspended: bool
    shipped_goods: bool
    saves_cards: bool
    slow_methods: bool
    merchant_email: str
    charge_for: str | None
    charge_limit: str | None
    is_plain: bool


class Behind(msgspec.Struct, frozen=True):
    """A row of `find_behind_checkout`: where nobody has paid yet, all of the payment is null.

    What a payment or a subscription has at all is typed as if it were there.
    """

    merchant_id: int
    live: bool
    currency: str
    sold_out: bool
    payment_id: int | None
    payment_state: PaymentState | None
    paying_checkout_id: int | None
    attempt_id: int | None
    idempotency_key: str
    acquirer: str
    not_after: datetime
    decline_reason: str
    challenge_url: str
    client_address: str
    attempt_amount: Decimal
    attempt_currency: str
    acquirer_reference: str
    page_ends_at: datetime | None
    page_looked_at: datetime | None
    slow: bool
    sure_by: datetime | None
    given_back: bool
    entered_email: str
    entered_country: str
    entered_holder: str
    entered_month: int
    entered_year: int
    package_version_id: int | None
    package_id: int
    sku_id: str
    subscriptions_count: int
    package_name: str
    price: Decimal
    period_length: int
    period_unit: Unit
    trial_price: Decimal
    trial_length: int
    trial_unit: Unit
    payment_limit: int
    list_price: Decimal | None
    discount_periods: int | None
    quantity: int
    coupon_code: str
    undiscounted_id: int | None
    undiscounted_seed: str
    types_coupons: bool
    needs_card: bool
    coupon_over: bool


async def read_checkout(
    database: Database, shop: Shop, checkout_id: int | None
) -> tuple[CheckoutRow, Behind | None] | None:
    """A shop's checkout, and what is behind it if anything can be; None if there is no such one, or
    it was deleted in between.
    """
    of = {"merchant_id": shop.merchant_id, "live": shop.live, "checkout_id": checkout_id}
    found = await queries.find_checkout(database, **of)
    if found is None:
        return None
    row = record_of(CheckoutRow, found)
    if row.is_plain:
        return row, None
    behind = await queries.find_behind_checkout(database, **of)
    return None if behind is None else (row, record_of(Behind, behind))
