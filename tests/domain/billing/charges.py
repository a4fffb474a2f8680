"""A shop that charges a saved card without its customer, and what the bank says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.domain.billing.charging_saved import Charged, Wanted, charge_saved
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

Charges = Callable[[], list[Standing]]


def power(card: int, order: str = "power-1", amount: str = "20.00", **other: Any) -> Wanted:
    return replace(Wanted(card, order, Decimal(amount), "USD", "Power for your car"), **other)


async def charge(desk: Desk, shop: Shop, wanted: Wanted, key: str = "key-1", **later: float) -> Charged:
    return await charge_saved(desk, shop, wanted, request_key=key, now=utc_now() + timedelta(**later))


def taken(charges: Charges) -> list[Decimal]:
    """What the bank has taken after the payment that saved the card."""
    return [one.captured for one in charges()][1:]
