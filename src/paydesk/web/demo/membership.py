"""Where a subscriber changes the subscription at the shop itself: each wish is previewed and then
carried out by the shop's server, through the client library.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException

from paydesk.web.demo.articles import offers_of
from paydesk.web.demo.orders import Sheet
from paydesk_client import ApiError, Gateway

PLANS: Final = ("usual", "double", "yearly")
DEEDS: Final = ("pause", "resume", "end", "undo")
_LONGEST_KEY: Final = 64


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What would come of a wish, in the words of the API's preview; moments are UTC."""

    charged_now: Decimal
    next_amount: Decimal
    next_at: datetime | None
    comes_at: datetime | None


class _Change(msgspec.Struct):
    at: int


class _Charge(msgspec.Struct):
    status: str


class _Answer(msgspec.Struct):
    charged_now: str
    next_charge_amount: str
    next_charge_at: int
    change_request: _Change | None
    charge: _Charge | None


@dataclass(frozen=True, slots=True)
class Membership:
    """The subscription of an order; `gateway` has the key pair that it was sold under."""

    gateway: Gateway
    sheet: Sheet

    async def foresee(self, wish: str, when: str) -> Foreseen:
        """What would come of a wish; nothing is changed.

        Raises: HTTPException with what Paydesk answered, or 400 for a wish that is none.
        """
        answer = await self._ask(self._call(wish, when, preview=True))
        return Foreseen(
            charged_now=Decimal(answer.charged_now),
            next_amount=Decimal(answer.next_charge_amount),
            next_at=_moment(answer.next_charge_at),
            comes_at=_moment(answer.change_request.at) if answer.change_request else None,
        )

    async def carry_out(self, wish: str, when: str, key: str) -> bool:
        """Whether a wish is carried out; False while the bank has not answered. One key does it
        once.

        Raises: as `foresee`.
        """
        key = key.strip()[:_LONGEST_KEY] or fresh_key()
        answer = await self._ask(self._call(wish, when, preview=False, idempotency_key=key))
        return answer.charge is None or answer.charge.status != "processing"

    def _call(self, wish: str, when: str, **how: Any) -> Callable[[], dict[str, Any]]:
        subscriptions, named = self.gateway.subscriptions(), self.sheet.subscription
        deeds: Mapping[str, Callable[..., dict[str, Any]]] = {
            "pause": subscriptions.pause,
            "resume": subscriptions.resume,
            "end": subscriptions.cancel_later,
            "undo": subscriptions.undo,
        }
        if wish in deeds:
            return partial(deeds[wish], named, **how)
        plan = self.sheet.order.plan
        offer = next((one for one in offers_of(plan) if one.wish == wish), None) if plan else None
        if offer is None:
            raise HTTPException(400, "The shop does not offer that. Go back and choose again.")
        if when == "now":
            how |= {"now": True, "proration_behavior": "charge_now"}
        how |= {"price": offer.unit_price, "quantity": offer.quantity, "period": offer.period}
        return partial(subscriptions.change, named, **how)

    async def _ask(self, call: Callable[[], dict[str, Any]]) -> _Answer:
        """Call Paydesk off the loop, as the library blocks."""
        try:
            return msgspec.convert(await asyncio.to_thread(call), _Answer)
        except ApiError as error:
            status = error.status if error.status in (HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.CONFLICT) else 502
            raise HTTPException(status, f"Nothing was changed. Paydesk answered {error}") from error


def fresh_key() -> str:
    """A key under which a wish is carried out once."""
    return secrets.token_urlsafe(16)


def _moment(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
