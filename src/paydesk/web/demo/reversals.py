"""Pingbacks that say that money went back: refunds, voids and chargebacks
(interface.md §6.3, §6.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

import msgspec

_MEANINGS = {
    "refund": "Genuine: all of the money went back to the customer.",
    "partial_refund": "Genuine: a part of the money went back to the customer.",
    "refund_failed": "Genuine: a refund came back, the customer has not got it. Pay it another way.",
    "chargeback": "Genuine: the customer’s bank took the money back. Gather evidence, send nothing more.",
    "chargeback_reversed": "Genuine: the dispute is won, the money is back with the shop.",
}
"""Events about money that went back, and what they mean for the shop."""


class ToldReversal(msgspec.Struct, frozen=True):
    """What such a pingback says; `reference_id` is its own for each refund and chargeback,
    so a shop counts it once.
    """

    event: str
    reference_id: str
    amount: Decimal


def read_reversal(payload: Mapping[str, object]) -> ToldReversal | None:
    """The reversal that a genuine payload is about, or None if it is about something else
    or can't be counted.
    """
    event, told = str(payload.get("event")), payload.get("payment_order")
    if event not in _MEANINGS or not isinstance(told, Mapping):
        return None
    amount = amount_of(told.get("refund_amount", told.get("chargeback_amount")))
    reference_id = str(told.get("reference_id", ""))
    return ToldReversal(event, reference_id, amount) if amount is not None and reference_id else None


def verdict_on(reversal: ToldReversal, *, known: bool) -> str:
    """What a reversal means for the shop, in words; `known` if an earlier pingback told of it."""
    if known:
        return "Genuine, and the shop knew of it by its reference_id: nothing more to do."
    return _MEANINGS[reversal.event]


def amount_of(told: object) -> Decimal | None:
    """The amount as a JSON number or the text of a form, or None if it is neither."""
    try:
        amount = Decimal(str(told))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None
