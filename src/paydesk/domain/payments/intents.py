"""A capture, void or refund whose intent is committed, as it is carried out and recorded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import MovementKind


@dataclass(frozen=True, slots=True)
class Movement:
    """A capture, void or refund whose intent is committed;
    `of_key` and `reference` name its purchase at the bank.

    `number` counts the janitor's questions; `clock` is how far the shop's time is ahead of real
    time; `answered` if whoever asked for it waits for its outcome and is told; `paid_at` is when a
    payment was paid that is given back now.
    """

    shop: Shop
    id: int
    payment_id: int
    kind: MovementKind
    amount: Decimal
    currency: str
    key: str
    acquirer: str
    of_key: str
    reference: str
    created_at: datetime
    number: int = 0
    alerted: bool = False
    clock: timedelta = timedelta(0)
    answered: bool = False
    paid_at: datetime | None = None


class MovementRow(msgspec.Struct, frozen=True):
    """A movement to be carried out, as all statements give it that begin or claim one."""

    merchant_id: int
    live: bool
    id: int
    payment_id: int
    kind: MovementKind
    amount: Decimal
    currency: str
    idempotency_key: str
    acquirer: str
    created_at: datetime
    lookups: int
    alerted_at: datetime | None
    of_key: str
    reference: str
    clock: timedelta
    paid_at: datetime | None


def movement_of(row: MovementRow) -> Movement:
    """The movement of a row."""
    return Movement(
        shop=Shop(row.merchant_id, row.live),
        id=row.id,
        payment_id=row.payment_id,
        kind=row.kind,
        amount=row.amount,
        currency=row.currency,
        key=row.idempotency_key,
        acquirer=row.acquirer,
        of_key=row.of_key,
        reference=row.reference,
        created_at=row.created_at - row.clock,
        number=row.lookups,
        alerted=row.alerted_at is not None,
        clock=row.clock,
        paid_at=row.paid_at,
    )
