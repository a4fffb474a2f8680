"""Orders, the pingbacks that the shop received, and the decision what a genuine pingback means for an order."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from paydesk.web.demo.articles import Article
from paydesk_client.signature import Version


class Order(msgspec.Struct, frozen=True, tag="order"):
    """What a visitor wants to buy; `amount` is in main units, `sign_version` signs its form and thus its pingback."""

    reference: str
    description: str
    picture: str
    amount: Decimal
    currency: str
    sign_version: Version
    ordered_at: datetime


class Received(msgspec.Struct, frozen=True, tag="pingback"):
    """One pingback as it came in, genuine or not; its key is never in `headers`.

    `reference` is the order that it belongs to, or empty; `verdict` says in words what the shop made of it; `fulfils`
    is true for the one pingback on whose word the order was fulfilled.
    """

    received_at: datetime
    version: str
    headers: tuple[tuple[str, str], ...]
    body: str
    genuine: bool
    verdict: str
    reference: str = ""
    fulfils: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """An order and the genuine pingbacks about it, oldest first."""

    order: Order
    pingbacks: tuple[Received, ...] = ()

    @property
    def paid(self) -> bool:
        """Whether a pingback, and nothing else, said that the order is paid."""
        return any(pingback.fulfils for pingback in self.pingbacks)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a genuine pingback means: a sentence, and whether the order is to be fulfilled now."""

    verdict: str
    fulfils: bool = False


def new_order(article: Article, sign_version: Version, now: datetime) -> Order:
    """Make an order with a reference of its own that nobody can guess."""
    return Order(
        reference=f"order-{secrets.token_hex(8)}",
        description=article.name,
        picture=article.picture,
        amount=article.price,
        currency=article.currency,
        sign_version=sign_version,
        ordered_at=now,
    )


def reference_of(payload: Mapping[str, Any]) -> str:
    """The shop's own order reference that a payload names, or an empty string."""
    return str(_payment_order(payload).get("merchant_order_id", ""))


def judge(payload: Mapping[str, Any], sheet: Sheet | None) -> Judgement:
    """Decide what a genuine pingback means for the order that it names (spec: Events, payment_order).

    Genuine says who speaks, not that the right amount was paid: the shop compares it with its own order. Pingbacks
    come at least once, so the second one about the same payment must change nothing.
    """
    if sheet is None:
        return Judgement("Genuine, but this shop has no such order.")
    if payload.get("event") != "payment":
        return Judgement("Genuine, but not about a payment received: noted, nothing else done.")
    told = _payment_order(payload)
    if told.get("status") != "successful":
        return Judgement("Genuine, but the payment was not successful: not fulfilled.")
    if told.get("paid_currency") != sheet.order.currency or _amount(told.get("paid_amount")) != sheet.order.amount:
        return Judgement("Genuine, but the amount or currency is not that of the order: not fulfilled.")
    if sheet.paid:
        return Judgement("Genuine, and the order was fulfilled before: nothing more to do.")
    return Judgement("Genuine, and amount and currency are those of the order: fulfilled.", fulfils=True)


def _payment_order(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    told = payload.get("payment_order")
    return told if isinstance(told, Mapping) else {}


def _amount(told: object) -> Decimal | None:
    """The amount as a JSON number or the text of a form, or None if it is neither."""
    try:
        amount = Decimal(str(told))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None
