"""The envelope of a pingback: names and order of its fields are fixed
(interface.md §5.1, §5.2, §5.3).

It is stored as JSON text without `pingback_ts`, which each attempt adds anew (stamping.py). Amounts
are JSON numbers as the decimals say them: `-0.2608`, no binary noise, no trailing zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

import msgspec
from msgspec import UNSET, UnsetType

from paydesk.core.money import Split, plain_number
from paydesk.core.payment_systems import CARDS

_PHP_ZONE_BY_NAME = 3


class PaymentReport(msgspec.Struct, frozen=True, gc=False):
    """A successful payment, as it is told to the merchant; `at` is when it was paid, UTC.
    `payment_system` is the number of what it was paid with.
    """

    payment_id: int
    merchant_order_id: str
    currency: str
    split: Split
    at: datetime
    first_name: str
    last_name: str
    username: str
    country: str
    email: str
    payment_system: int = CARDS


@dataclass(frozen=True, slots=True)
class ReversalReport:
    """What is told of a refund, void or chargeback:
    `status` is the order's now, `reference_id` is its own id.

    Amounts are in the payment's currency; those that don't belong to the event are None.
    `disputed_amount` is set for a chargeback in another currency, and in that.
    """

    event: str
    status: str
    reference_id: int
    refund_amount: Decimal | None = None
    total_refunded_amount: Decimal | None = None
    chargeback_amount: Decimal | None = None
    reason: str | None = None
    disputed_amount: Decimal | None = None
    disputed_currency: str | None = None


class _Date(msgspec.Struct, frozen=True):
    date: str
    timezone_type: int
    timezone: str


class _PaymentOrder(msgspec.Struct, frozen=True):
    id: int
    merchant_order_id: str
    payment_system: int | UnsetType
    status: str
    paid_amount: Decimal
    paid_currency: str
    merchant_net_revenue: Decimal
    merchant_rolling_reserve: Decimal
    fees: Decimal
    date: _Date
    reference_id: int | UnsetType = UNSET
    refund_amount: Decimal | UnsetType = UNSET
    total_refunded_amount: Decimal | UnsetType = UNSET
    chargeback_amount: Decimal | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    disputed_amount: Decimal | UnsetType = UNSET
    disputed_currency: str | UnsetType = UNSET


class _User(msgspec.Struct, frozen=True):
    firstname: str
    lastname: str
    username: str
    country: str
    email: str


class _PaymentEnvelope(msgspec.Struct, frozen=True):
    event: str
    payment_order: _PaymentOrder
    user: _User
    subscription: dict[str, object] | UnsetType
    with_risk_check: bool | UnsetType


_encoder = msgspec.json.Encoder(decimal_format="number")


class _SubscriptionEnvelope(msgspec.Struct, frozen=True):
    event: str
    subscription: dict[str, object]


def subscription_envelope(event: str, subscription: dict[str, object]) -> str:
    """The pingback of a subscription's end, as JSON text without `pingback_ts`
    (interface.md §6.2).
    """
    return _encoder.encode(_SubscriptionEnvelope(event, subscription)).decode()


def payment_envelope(report: PaymentReport, subscription: dict[str, object] | None = None) -> str:
    """The `payment` pingback, one-time or for a subscription, as JSON text without `pingback_ts`.

    A subscription's payment_order has no `payment_system`, its envelope no `with_risk_check`
    (interface.md §6.1).
    """
    envelope = _PaymentEnvelope(
        event="payment",
        payment_order=_order(report, "successful", one_time=not subscription),
        user=_User(
            firstname=report.first_name,
            lastname=report.last_name,
            username=report.username,
            country=report.country,
            email=report.email,
        ),
        subscription=subscription or UNSET,
        with_risk_check=UNSET if subscription else False,
    )
    return _encoder.encode(envelope).decode()


class _ReversalEnvelope(msgspec.Struct, frozen=True):
    event: str
    payment_order: _PaymentOrder


def reversal_envelope(report: PaymentReport, reversal: ReversalReport, *, one_time: bool) -> str:
    """The pingback of a refund, void or chargeback, as JSON text without `pingback_ts`
    (interface.md §6.3).
    """
    order = msgspec.structs.replace(
        _order(report, reversal.status, one_time=one_time),
        reference_id=reversal.reference_id,
        refund_amount=_number(reversal.refund_amount),
        total_refunded_amount=_number(reversal.total_refunded_amount),
        chargeback_amount=_number(reversal.chargeback_amount),
        reason=UNSET if reversal.reason is None else reversal.reason,
        disputed_amount=_number(reversal.disputed_amount),
        disputed_currency=UNSET if reversal.disputed_currency is None else reversal.disputed_currency,
    )
    return _encoder.encode(_ReversalEnvelope(reversal.event, order)).decode()


def _number(amount: Decimal | None) -> Decimal | UnsetType:
    return UNSET if amount is None else plain_number(amount)


def _order(report: PaymentReport, status: str, *, one_time: bool) -> _PaymentOrder:
    split = report.split
    return _PaymentOrder(
        id=report.payment_id,
        merchant_order_id=report.merchant_order_id,
        payment_system=report.payment_system if one_time else UNSET,
        status=status,
        paid_amount=plain_number(split.paid),
        paid_currency=report.currency,
        merchant_net_revenue=plain_number(split.net),
        merchant_rolling_reserve=plain_number(split.reserve),
        fees=plain_number(split.fees),
        date=_date(report.at),
    )


@lru_cache(maxsize=16)
def _date(at: datetime) -> _Date:
    """A moment as PHP shows it; what is paid in one batch is paid at one."""
    return _Date(f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}", _PHP_ZONE_BY_NAME, "UTC")
