"""What stands with every purchase at an acquirer, so that one that our database forgot is known
by it.

An acquirer keeps little of ours (Stripe fields of 500 characters, others about 1 kB in all), so it
is packed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Final

import msgspec

MOST_BYTES: Final = 1000
"""What a packed mark may weigh at an acquirer that keeps about 1 kB."""

_FORM: Final = "paydesk1"
_KEPT_OF_LONG: Final = 100


class PurchaseKind(StrEnum):
    """What a purchase is for."""

    ORDER = "order"
    RENEWAL = "renewal"
    CARD = "card"
    """A new card of a subscription is checked."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Whose purchase it is, and what for.

    `deployment` and `epoch` tell this database from a copy of it and from what it was before a
    restore; `merchant` is the merchant's tag and not its id, which another may get; `order` is the
    shop's reference, `attempt` the number of the attempt to take the payment; `terms` is a digest
    of what the customer agreed to pay again and again.
    """

    deployment: str
    epoch: int
    merchant: str
    live: bool
    kind: PurchaseKind
    order: str
    payment_id: int = 0
    attempt: int = 0
    subscription_id: int = 0
    period: int = 0
    terms: str = ""

    def is_of(self, other: Mark) -> bool:
        """Whether both are for the same thing: this merchant's order,
        or this period of its renewal, and its terms.
        """
        mine, theirs = (
            (one.merchant, one.live, one.kind, one.period, one.terms, shortened(one.order)) for one in (self, other)
        )
        return mine == theirs


def packed(mark: Mark) -> str:
    """A mark in at most MOST_BYTES of UTF-8; an order's reference that is too long
    for it is shortened.
    """
    text = _packed(mark)
    if len(text.encode()) <= MOST_BYTES:
        return text
    return _packed(replace(mark, order=shortened(mark.order)))


def unpacked(text: str) -> Mark | None:
    """The mark in a text, None if it is none of ours."""
    try:
        form, *values = msgspec.json.decode(text, type=list[str | int | bool])
        if form != _FORM:
            return None
        return msgspec.convert(dict(zip(Mark.__slots__, values, strict=True)), Mark)
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError):
        return None


def shortened(order: str) -> str:
    """A reference as it is, or the beginning of a very long one with a digest of all of it."""
    if len(order) <= 2 * _KEPT_OF_LONG:
        return order
    return f"{order[:_KEPT_OF_LONG]}…{hashlib.sha256(order.encode()).hexdigest()[:32]}"


def fitting(order: str, fits: Callable[[str], bool]) -> str:
    """A reference, shortened if it does not fit as it is."""
    return order if fits(order) else shortened(order)


def _packed(mark: Mark) -> str:
    return msgspec.json.encode([_FORM, *asdict(mark).values()]).decode()
