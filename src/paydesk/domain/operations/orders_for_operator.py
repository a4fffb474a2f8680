"""What an operator reads of one payment, subscription or checkout of a merchant, to help with it:
what the acquirer calls it, what became of it and what was told. Moves no money.

That somebody looked at what a customer did stands in the merchant's audit log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.searching import FoundCheckout, FoundPayment, FoundSubscription
from paydesk.domain.payments.states import AttemptState, MovementKind, MovementState, PaymentState
from paydesk.domain.pingbacks.states import PingbackState

queries = load_statements(__package__ or "", "orders_for_operator.sql")

MOST = 50
"""How many lines of a kind are shown."""


@dataclass(frozen=True, slots=True)
class WholePayment(FoundPayment):
    """A payment with its customer and how its money is divided, in its currency."""

    email: str
    customer: str
    country: str
    subscription_id: int | None
    net: Decimal
    reserve: Decimal
    fees: Decimal
    refunded: Decimal
    charged_back: Decimal
    checkout_id: int | None
    paid_at: datetime | None
    settled_at: datetime | None
    description: str


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt to pay; `acquirer_reference` is empty until the acquirer gave one."""

    id: int
    state: AttemptState
    acquirer: str
    acquirer_reference: str
    amount: Decimal
    currency: str
    decline_reason: str
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Move:
    """A capture, a void or a refund; `refusal` says why the acquirer would not."""

    id: int
    kind: MovementKind
    state: MovementState
    acquirer: str
    acquirer_reference: str
    amount: Decimal
    currency: str
    refusal: str
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Told:
    """A pingback about a payment."""

    id: int
    event: str
    state: PingbackState
    attempts: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Disputed:
    """A chargeback of a payment."""

    id: int
    state: ChargebackState
    amount: Decimal
    currency: str
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class PaymentStory:
    """A payment with all that happened to it, each kind first to last."""

    payment: WholePayment
    tries: Sequence[Try]
    moves: Sequence[Move]
    told: Sequence[Told]
    disputed: Sequence[Disputed]


@dataclass(frozen=True, slots=True)
class WholeSubscription(FoundSubscription):
    """A subscription with its customer and card; `failures` counts charges in a row that failed."""

    date_next: datetime | None
    date_end: datetime | None
    failures: int
    email: str
    customer: str
    brand: str
    last4: str
    acquirer: str


@dataclass(frozen=True, slots=True)
class Charged:
    """A payment of a subscription."""

    id: int
    merchant_order_id: str
    state: PaymentState
    amount: Decimal
    currency: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WholeCheckout(FoundCheckout):
    """A checkout with what is bought there."""

    description: str


async def find_payment_story(
    database: Database, actor: Actor, merchant_id: int, payment_id: int, *, now: datetime
) -> PaymentStory:
    """A payment with its story; `now` is real time, for the audit log. Raises: NotFound."""
    found = record_if_any(WholePayment, await queries.payment(database, merchant_id=merchant_id, id=payment_id))
    if found is None:
        raise NotFound(f"merchant {merchant_id} has no payment {payment_id}")
    shop = Shop(merchant_id, found.live)

    story = PaymentStory(
        found,
        await records_of(
            Try,
            queries.tries(database, merchant_id=merchant_id, live=shop.live, payment_id=payment_id, most=MOST),
        ),
        await records_of(
            Move,
            queries.moves(database, merchant_id=merchant_id, live=shop.live, payment_id=payment_id, most=MOST),
        ),
        await records_of(
            Told,
            queries.told_of_payment(
                database, merchant_id=merchant_id, live=shop.live, payment_id=payment_id, most=MOST
            ),
        ),
        await records_of(
            Disputed,
            queries.disputed(database, merchant_id=merchant_id, live=shop.live, payment_id=payment_id, most=MOST),
        ),
    )
    await _note(database, actor, shop, f"payment {payment_id}", now)
    return story


async def find_subscription_story(
    database: Database, actor: Actor, merchant_id: int, subscription_id: int, *, now: datetime
) -> tuple[WholeSubscription, Sequence[Charged]]:
    """A subscription with its newest payments; `now` is real time, for the audit log.

    Raises: NotFound.
    """
    row = await queries.subscription(database, merchant_id=merchant_id, id=subscription_id)
    found = record_if_any(WholeSubscription, row)
    if found is None:
        raise NotFound(f"merchant {merchant_id} has no subscription {subscription_id}")
    rows = queries.charged(
        database, merchant_id=merchant_id, live=found.live, subscription_id=subscription_id, most=MOST
    )
    charged = await records_of(Charged, rows)
    await _note(database, actor, Shop(merchant_id, found.live), f"subscription {subscription_id}", now)
    return found, charged


async def find_checkout_for_operator(database: Database, merchant_id: int, checkout_id: int) -> WholeCheckout:
    """A checkout, which says nothing of a customer. Raises: NotFound."""
    found = record_if_any(WholeCheckout, await queries.checkout(database, merchant_id=merchant_id, id=checkout_id))
    if found is None:
        raise NotFound(f"merchant {merchant_id} has no checkout {checkout_id}")
    return found


async def _note(database: Database, actor: Actor, shop: Shop, subject: str, now: datetime) -> None:
    async with database.acquire() as connection, connection.transaction():
        await record(connection, actor, Action.customer_looked_at, now=now, shop=shop, subject=subject)
