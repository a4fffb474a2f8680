"""What a merchant reads about payments: pages of them, and one with its attempts.
Moves no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import msgspec

from paydesk.core.errors import NotFound
from paydesk.core.money import Split
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import REPORTED, AttemptState, PaymentState

queries = load_statements(__package__ or "", "for_api.sql")


@dataclass(frozen=True, slots=True)
class SeenCard:
    """What may be shown of a card."""

    brand: str
    last4: str


@dataclass(frozen=True, slots=True)
class SeenPayment:
    """A payment with its customer and card; times are UTC.
    `decline_reason` is the last attempt's, or empty.

    `refunded` is what was given back so far; of an authorization that was let go, all of it.
    """

    id: int
    live: bool
    merchant_order_id: str
    state: PaymentState
    amount: Decimal
    currency: str
    split: Split
    refunded: Decimal
    subscription_id: int | None
    created_at: datetime
    paid_at: datetime | None
    first_name: str
    last_name: str
    username: str
    country: str
    email: str
    card: SeenCard
    decline_reason: str


@dataclass(frozen=True, slots=True)
class SeenAttempt:
    """One attempt to make a payment; times are UTC, `finished_at` is None
    while its outcome is not known.
    """

    id: int
    state: AttemptState
    amount: Decimal
    currency: str
    brand: str
    last4: str
    decline_reason: str
    created_at: datetime
    finished_at: datetime | None

    @property
    def card(self) -> SeenCard:
        """The card that it was made with."""
        return SeenCard(self.brand, self.last4)


@dataclass(frozen=True, slots=True)
class PaymentFilter:
    """Which payments: of some states, with an order reference, of an e-mail address,
    of a subscription.
    """

    states: frozenset[PaymentState] | None = None
    reference: str | None = None
    email: str | None = None
    subscription_id: int | None = None


class PaymentRow(msgspec.Struct, frozen=True):
    """A row of `payment_whole`."""

    merchant_id: int
    live: bool
    id: int
    merchant_order_id: str
    state: PaymentState
    amount: Decimal
    currency: str
    net: Decimal
    reserve: Decimal
    fees: Decimal
    subscription_id: int | None
    created_at: datetime
    paid_at: datetime | None
    first_name: str
    last_name: str
    username: str
    country: str
    email: str
    brand: str
    last4: str
    decline_reason: str
    refunded: Decimal


async def list_payments(database: Database, shop: Shop, wanted: PaymentFilter, page: Page) -> list[SeenPayment]:
    """A page of the shop's payments, newest first;
    the narrowest filter leads, by an index of its own.
    """
    states = sorted(wanted.states) if wanted.states is not None else None
    common = {"merchant_id": shop.merchant_id, "live": shop.live, **page.parameters()}
    more = {**common, "states": states, "email": wanted.email}
    if wanted.reference is not None:
        more |= {"reference": wanted.reference, "subscription_id": wanted.subscription_id}
        found = queries.of_reference(database, **more)
    elif wanted.subscription_id is not None:
        found = queries.of_subscription(database, **more, subscription_id=wanted.subscription_id)
    elif wanted.email is not None:
        found = queries.of_email(database, **more)
    elif states is not None and PaymentState.CAPTURED not in states:
        found = queries.in_states(database, **common, states=states)
    else:
        found = queries.by_time(database, **common, states=states)
    return [payment_of(row) for row in await records_of(PaymentRow, found)]


async def find_payment(database: Database, shop: Shop, payment_id: int) -> tuple[SeenPayment, list[SeenAttempt]]:
    """A payment with all attempts to make it, first to last.

    Raises: NotFound if the shop has no such payment in this mode.
    """
    row = record_if_any(
        PaymentRow, await queries.find(database, merchant_id=shop.merchant_id, live=shop.live, id=payment_id)
    )
    if row is None:
        raise NotFound(f"there is no payment {payment_id}")
    attempts = queries.attempts_of(database, merchant_id=shop.merchant_id, live=shop.live, payment_id=payment_id)
    return payment_of(row), await records_of(SeenAttempt, attempts)


async def which_payment(database: Database, shop: Shop, ids: Sequence[int]) -> int:
    """The first of some ids, by which a client may mean one payment, that the shop has;
    if it has none, the first.
    """
    found = await queries.which(database, merchant_id=shop.merchant_id, live=shop.live, ids=ids)
    return ids[0] if found is None else int(found)


def payment_of(row: PaymentRow) -> SeenPayment:
    """The payment in a row, as it is shown."""
    return SeenPayment(
        id=row.id,
        live=row.live,
        merchant_order_id=row.merchant_order_id,
        state=row.state,
        amount=row.amount,
        currency=row.currency,
        split=Split(row.amount if row.state in REPORTED else Decimal(0), row.net, row.reserve, row.fees),
        refunded=row.amount if row.state is PaymentState.VOIDED else row.refunded,
        subscription_id=row.subscription_id,
        created_at=row.created_at,
        paid_at=row.paid_at,
        first_name=row.first_name,
        last_name=row.last_name,
        username=row.username,
        country=row.country,
        email=row.email,
        card=SeenCard(row.brand, row.last4),
        decline_reason=row.decline_reason,
    )
