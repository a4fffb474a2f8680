"""Chargebacks as a merchant's server and an operator see them, and whose they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "")


@dataclass(frozen=True, slots=True)
class Chargeback:
    """A chargeback over `amount`; times are UTC,
    `id` is the `reference_id` of its pingbacks.

    `taken` and `returned` are what the bank took and gave back so far; like `amount` and `fee` they
    are in `currency`, the payment's. `disputed_amount` is `amount` in the chargeback's own.
    """

    id: int
    payment_id: int
    merchant_order_id: str
    subscription_id: int | None
    state: ChargebackState
    amount: Decimal
    currency: str
    taken: Decimal
    returned: Decimal
    disputed_amount: Decimal
    disputed_currency: str
    fee: Decimal
    reason: str
    evidence: str
    evidence_at: datetime | None
    opened_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class PurchaseKey:
    """A payment's purchase: at which acquirer, and under which key."""

    acquirer: str
    key: str


@dataclass(frozen=True, slots=True)
class _Row:
    """A chargeback with its payment; disputed_amount and disputed_currency are null
    where they are the payment's.
    """

    id: int
    payment_id: int
    state: ChargebackState
    amount: Decimal
    currency: str
    taken: Decimal
    returned: Decimal
    disputed_amount: Decimal | None
    disputed_currency: str | None
    fee: Decimal
    reason: str
    evidence: str
    evidence_at: datetime | None
    opened_at: datetime
    closed_at: datetime | None
    acquirer: str
    acquirer_reference: str
    merchant_order_id: str
    subscription_id: int | None


async def list_chargebacks(
    database: Database, shop: Shop, state: ChargebackState | None, page: Page
) -> list[Chargeback]:
    """A page of the shop's chargebacks, newest first."""
    rows = queries.list_chargebacks(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        state=state and str(state),
        **page.parameters(),
    )
    return [_chargeback(row) for row in await records_of(_Row, rows)]


async def find_chargeback(database: Database, shop: Shop, chargeback_id: int) -> Chargeback:
    """The shop's chargeback with this id.

    Raises: NotFound.
    """
    return _chargeback(await _row(database, shop, chargeback_id))


async def shop_of_chargeback(database: Database, chargeback_id: int) -> Shop:
    """Whose chargeback it is, for an operator.

    Raises: NotFound.
    """
    for shop in await records_of(Shop, queries.shops_of(database, id=chargeback_id)):
        return shop
    raise NotFound(f"there is no chargeback {chargeback_id}; see: paydesk chargeback list")


async def purchase_of(database: Database, shop: Shop, payment_id: int) -> PurchaseKey:
    """The purchase of a shop's payment, for an operator.

    Raises: NotFound.
    """
    row = await queries.purchase_of(database, merchant_id=shop.merchant_id, live=shop.live, payment_id=payment_id)
    if (purchase := record_if_any(PurchaseKey, row)) is None:
        raise NotFound(f"there is no payment {payment_id}")
    return purchase


async def find_by_reference(database: Database, shop: Shop, acquirer: str, reference: str) -> Chargeback | None:
    """The chargeback that an acquirer calls by this name, None while it is not recorded."""
    row = record_if_any(
        _Row,
        await queries.find_by_reference(
            database, merchant_id=shop.merchant_id, live=shop.live, acquirer=acquirer, acquirer_reference=reference
        ),
    )
    return _chargeback(row) if row else None


async def reference_of(database: Database, shop: Shop, chargeback_id: int) -> tuple[str, str]:
    """The acquirer of a chargeback and its own name for it.

    Raises: NotFound.
    """
    row = await _row(database, shop, chargeback_id)
    return row.acquirer, row.acquirer_reference


async def _row(database: Database, shop: Shop, chargeback_id: int) -> _Row:
    row = record_if_any(
        _Row, await queries.find(database, merchant_id=shop.merchant_id, live=shop.live, id=chargeback_id)
    )
    if row is None:
        raise NotFound(f"there is no chargeback {chargeback_id}")
    return row


def _chargeback(row: _Row) -> Chargeback:
    return Chargeback(
        id=row.id,
        payment_id=row.payment_id,
        merchant_order_id=row.merchant_order_id,
        subscription_id=row.subscription_id,
        state=row.state,
        amount=row.amount,
        currency=row.currency,
        taken=row.taken,
        returned=row.returned,
        disputed_amount=row.amount if row.disputed_amount is None else row.disputed_amount,
        disputed_currency=row.disputed_currency or row.currency,
        fee=row.fee,
        reason=row.reason,
        evidence=row.evidence,
        evidence_at=row.evidence_at,
        opened_at=row.opened_at,
        closed_at=row.closed_at,
    )
