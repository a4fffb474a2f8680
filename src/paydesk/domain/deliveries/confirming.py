"""Confirming a delivery: it is recorded, and a shipment takes the money that was held
(interface.md §7.4).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import partial

import msgspec

from paydesk.core.errors import Busy, Conflict, Malformed, NotFound
from paydesk.core.money import plain_number
from paydesk.core.wording import worded
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.database.surely import drawn_key, surely
from paydesk.domain.deliveries.confirmations import Delivery, NamedOrder
from paydesk.domain.deliveries.delivery_status import TAKES_MONEY
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.intents import MovementRow, movement_of
from paydesk.domain.payments.movements import Refused, carry_out, find_intent, first_look
from paydesk.domain.payments.states import TAKEN, MovementKind, PaymentState

queries = load_statements(__package__ or "")

PATIENCE = 10.0
"""Seconds that the same confirmation, sent twice at once, waits for what comes of the first."""

_SOON = 0.05
_UNSURE = (
    "it is not known whether the delivery was recorded: the database went away over it. Send the same confirmation "
    "again: it counts once, and takes the money once"
)


class Result(StrEnum):
    """What a confirmation came to."""

    RECORDED = "recorded"
    """It is kept, and moved no money: there was none to take, or it is still held."""
    CAPTURED = "captured"
    """The money that was held is taken."""
    PROCESSING = "processing"
    """It is kept; whether the money is taken is not known yet, and will be found out."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A confirmation that was accepted; `at` (UTC) is when it came for the first time."""

    delivery_id: int
    payment_id: int
    merchant_order_id: str
    result: Result
    at: datetime


@dataclass(frozen=True, slots=True)
class _Found:
    """The order of a confirmation as it stands; `delivery_id` if the same confirmation
    came before.
    """

    payment_id: int
    merchant_order_id: str
    state: PaymentState
    amount: Decimal
    currency: str
    ship_by: datetime | None
    taken_at_once: bool
    moving: str | None
    quantity: str | None
    delivery_id: int | None
    delivered_at: datetime | None


async def confirm(desk: Desk, shop: Shop, order: NamedOrder, delivery: Delivery, *, now: datetime) -> Confirmed:
    """Record a delivery; one that takes the money of an authorization captures it, once.
    Moves money.

    The same confirmation again changes nothing and gets the same answer. `now` is the shop's
    time, UTC.

    Raises: NotFound if the shop has no such order; Malformed if id and reference are of different
        orders, or only a part is shipped; Conflict if the order is not paid, was voided or is too
        late to ship, and, with the acquirer's reason, if it would not capture; Held; Unsure if
        nobody can say whether it was written down.
    Source: interface.md §7.4 and §8.6.
    """
    takes_money = (delivery.status, delivery.type) in TAKES_MONEY
    until = time.monotonic() + PATIENCE
    in_vain = False
    while not in_vain:
        in_vain = time.monotonic() > until
        found = await _find(desk, shop, order, delivery)
        _refuse_part(order, found)
        _refuse_state(found, takes_money=takes_money, now=now)
        to_capture = takes_money and found.state is PaymentState.AUTHORIZED
        if found.delivery_id is not None and (not to_capture or (found.moving is not None and in_vain)):
            return _confirmed(found, takes_money=takes_money)
        if found.delivery_id is not None and found.moving is not None:
            # The same confirmation is on its way, or another that captures: its answer is
            # this one's.
            await asyncio.sleep(_SOON)
            continue
        if to_capture:
            await desk.gate.require()
        if await _record(desk, shop, found, delivery, takes_money=takes_money, now=now):
            return _confirmed(await _find(desk, shop, order, delivery), takes_money=takes_money)
    raise Busy(worded("the order is changing all the time; try again"))


async def _record(
    desk: Desk, shop: Shop, found: _Found, delivery: Delivery, *, takes_money: bool, now: datetime
) -> bool:
    """Write the delivery down and capture if that is now to be done;
    true if a capture was asked for. Moves money.

    Raises: Conflict with the acquirer's reason.
    """
    key = drawn_key()

    async def write(connection: Connection) -> MovementRow | None:
        return record_if_any(
            MovementRow,
            await queries.record_delivery(
                connection,
                merchant_id=shop.merchant_id,
                live=shop.live,
                payment_id=found.payment_id,
                takes_money=takes_money,
                pads=desk.pads,
                request_key=key,
                lookup_at=first_look(),
                now=now,
                digest=delivery.digest(),
                **_columns(delivery),
            ),
        )

    look = partial(find_intent, shop=shop, request_key=key)
    row = await surely(desk.database, write, look, unsure=_UNSURE)
    if row is None:
        return False
    outcome = await carry_out(desk, movement_of(row), now=now)
    if isinstance(outcome, Refused):
        raise Conflict(
            worded(
                "the delivery is recorded, but the bank would not capture the payment: %(reason)s; it is "
                "still authorized, and sending the confirmation again tries again",
                reason=outcome.reason,
            )
        )
    return True


def _columns(delivery: Delivery) -> dict[str, object]:
    address = delivery.shipping_address
    names = (
        "status", "type", "carrier", "tracking_id", "tracking_url", "refundable", "notify_user", "product_description",
        "details", "reason", "estimated_at",
    )  # fmt: skip
    return {
        **{name: getattr(delivery, name) for name in names},
        "attachments": msgspec.json.encode(delivery.attachments).decode(),
        "shipping_address": None if address is None else msgspec.json.encode(address).decode(),
    }


async def _find(desk: Desk, shop: Shop, order: NamedOrder, delivery: Delivery) -> _Found:
    """The order as it stands.

    Raises: NotFound, Malformed if id and reference don't belong together, Conflict if the reference
        has two payments.
    """
    asked = queries.find_order(
        desk.database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        payment_id=order.payment_id,
        reference=order.reference,
        digest=delivery.digest(),
    )
    rows = await records_of(_Found, asked)
    if not rows:
        raise NotFound(
            f"there is no payment {order.payment_id}"
            if order.payment_id is not None
            else f'there is no order "{order.reference}"'
        )
    if len(rows) > 1:
        raise Conflict(f'"{order.reference}" is the reference of two payments; send payment_order_id')
    found = rows[0]
    if order.reference is not None and found.merchant_order_id != order.reference:
        raise Malformed(
            f"payment_order_id {found.payment_id} and merchant_reference_id don't belong together; send one of them",
            "merchant_reference_id",
        )
    return found


def _refuse_part(order: NamedOrder, found: _Found) -> None:
    """Refuse a partial shipment: an authorization is captured once, and whole.

    Raises: Malformed.
    """
    only_whole = (
        "a partial shipment can't be confirmed, since the whole payment is captured at once; "
        "confirm when all is shipped"
    )
    if order.amount is not None and order.amount != found.amount:
        paid = f"{plain_number(found.amount)} {found.currency}"
        if order.amount < found.amount:
            raise Malformed(
                f"amount is less than the order's {paid}: {only_whole}",
                "amount",
            )
        raise Malformed(f"amount is more than the order's {paid}; leave it out or send the order's", "amount")
    if order.quantity is not None and order.quantity < _quantity(found):
        raise Malformed(
            f"quantity is less than the order's {_quantity(found)}: {only_whole}",
            "quantity",
        )


def _quantity(found: _Found) -> Decimal:
    """How many the checkout's form ordered, if it said so."""
    try:
        ordered = Decimal(found.quantity or 1)
    except InvalidOperation:
        return Decimal(1)
    return ordered if ordered.is_finite() else Decimal(1)


def _refuse_state(found: _Found, *, takes_money: bool, now: datetime) -> None:
    """Refuse what comes too late, or before there is anything to deliver.

    Raises: Conflict.
    """
    named = worded('order "%(order)s" (payment %(payment)s)', order=found.merchant_order_id, payment=found.payment_id)
    if found.state is PaymentState.VOIDED:
        raise Conflict(
            worded("%(named)s was voided and its money released to the customer; don't ship it", named=named)
        )
    if found.state is not PaymentState.AUTHORIZED and found.state not in TAKEN:
        raise Conflict(f"{named} is not paid: it is {found.state}")
    if not takes_money or found.state is not PaymentState.AUTHORIZED:
        return
    if found.moving == MovementKind.VOID:
        raise Conflict(worded("%(named)s is being voided; don't ship it", named=named))
    if found.moving is None and found.ship_by is not None and found.ship_by <= now:
        by = f"{found.ship_by.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        raise Conflict(
            worded("%(named)s was to be shipped by %(by)s and will be voided; don't ship it", named=named, by=by)
        )


def _confirmed(found: _Found, *, takes_money: bool) -> Confirmed:
    if not takes_money or found.taken_at_once:
        result = Result.RECORDED
    else:
        result = Result.CAPTURED if found.state in TAKEN else Result.PROCESSING
    assert found.delivery_id is not None
    assert found.delivered_at is not None
    return Confirmed(found.delivery_id, found.payment_id, found.merchant_order_id, result, found.delivered_at)
