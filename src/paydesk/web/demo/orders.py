"""Orders, the pingbacks that the shop received, and the decision what a genuine pingback means for an order."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from paydesk.web.demo.articles import Article, Plan
from paydesk_client.signature import Version

_ENDINGS = {
    "subscription_cancelled": "Genuine: the subscription was cancelled. Nothing more is sent out.",
    "subscription_stopped": "Genuine: the card failed too often, so the subscription stopped. Nothing more is sent.",
    "subscription_expired": "Genuine: the agreed time of the subscription is over. Nothing more is sent out.",
}
"""Events that end a subscription, and what they mean for the shop (spec: Events)."""


class Order(msgspec.Struct, frozen=True, tag="order"):
    """What a visitor wants to buy; `amount` is in main units, `sign_version` signs its form and thus its pingbacks.

    With a `plan` it is a subscription, and `amount` is its first payment.
    """

    reference: str
    description: str
    picture: str
    amount: Decimal
    currency: str
    sign_version: Version
    ordered_at: datetime
    plan: Plan | None = None


class Received(msgspec.Struct, frozen=True, tag="pingback"):
    """One pingback as it came in, genuine or not; its key is never in `headers`.

    `reference` is the order that it belongs to, or empty; `verdict` says in words what the shop made of it; `fulfils`
    is true for the one pingback on whose word the order was fulfilled, `renews` for the one of each later payment of a
    subscription. `payment`, `subscription` and `status` are ids and status as the pingback names them.
    """

    received_at: datetime
    version: str
    headers: tuple[tuple[str, str], ...]
    body: str
    genuine: bool
    verdict: str
    reference: str = ""
    fulfils: bool = False
    renews: bool = False
    payment: str = ""
    subscription: str = ""
    status: str = ""
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """An order and the genuine pingbacks about it, oldest first."""

    order: Order
    pingbacks: tuple[Received, ...] = ()

    @property
    def paid(self) -> bool:
        """Whether a pingback, and nothing else, said that the order is paid."""
        return any(pingback.fulfils for pingback in self.pingbacks)

    @property
    def first_payment(self) -> str:
        """The id of the payment that fulfilled the order: a subscription's later pingbacks name it `recurring_id`."""
        return next((pingback.payment for pingback in self.pingbacks if pingback.fulfils), "")

    @property
    def renewals(self) -> int:
        """How many payments of the subscription came after the first."""
        return sum(pingback.renews for pingback in self.pingbacks)

    @property
    def subscription(self) -> str:
        """Paydesk's id of the subscription, or empty."""
        return next((pingback.subscription for pingback in self.pingbacks if pingback.subscription), "")

    @property
    def ended(self) -> bool:
        """Whether a pingback said that the subscription is over."""
        return any(pingback.ends for pingback in self.pingbacks)

    @property
    def awaits(self) -> bool:
        """Whether more pingbacks are to come."""
        return not self.paid or (self.order.plan is not None and not self.ended)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a genuine pingback means: a sentence, and what is to be done now."""

    verdict: str
    fulfils: bool = False
    renews: bool = False
    ends: bool = False


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
        plan=article.plan,
    )


def reference_of(payload: Mapping[str, Any]) -> str:
    """The shop's own order reference that a payload names, or an empty string.

    A renewal has a reference of its own, which Paydesk makes, and names the first one too (wire.md §2).
    """
    of_first = _subscription(payload).get("init_merchant_order_id")
    return str(of_first or _payment_order(payload).get("merchant_order_id", ""))


def recurring_id_of(payload: Mapping[str, Any]) -> str:
    """The id of the first payment of the subscription that a payload is about, or an empty string (wire.md §2)."""
    return str(_subscription(payload).get("recurring_id", ""))


def named_in(payload: Mapping[str, Any]) -> dict[str, str]:
    """What a payload calls its payment and its subscription, as fields of `Received`."""
    told, subscription = _payment_order(payload), _subscription(payload)
    return {
        "payment": str(told.get("id", "")),
        "subscription": str(subscription.get("id", "")),
        "status": str(subscription.get("status", "")),
    }


def judge(payload: Mapping[str, Any], sheet: Sheet | None) -> Judgement:
    """Decide what a genuine pingback means for the order that it names (spec: Events, payment_order).

    Genuine says who speaks, not that the right amount was paid: the shop compares it with its own order. Pingbacks
    come at least once, so the second one about the same payment must change nothing.
    """
    if sheet is None:
        return Judgement("Genuine, but this shop has no such order.")
    event = str(payload.get("event"))
    if sheet.order.plan is not None and event in _ENDINGS:
        return Judgement(_ENDINGS[event], ends=True)
    if event != "payment":
        return Judgement("Genuine, but not about a payment received: noted, nothing else done.")
    told = _payment_order(payload)
    if told.get("status") != "successful":
        return Judgement("Genuine, but the payment was not successful: not fulfilled.")
    if sheet.order.plan is not None and str(told.get("merchant_order_id")) != sheet.order.reference:
        return _judge_renewal(told, sheet, sheet.order.plan)
    if told.get("paid_currency") != sheet.order.currency or _amount(told.get("paid_amount")) != sheet.order.amount:
        return Judgement("Genuine, but the amount or currency is not that of the order: not fulfilled.")
    if sheet.paid:
        return Judgement("Genuine, and the order was fulfilled before: nothing more to do.")
    return Judgement("Genuine, and amount and currency are those of the order: fulfilled.", fulfils=True)


def _judge_renewal(told: Mapping[str, Any], sheet: Sheet, plan: Plan) -> Judgement:
    """A later payment of a subscription: the plan's price, and each payment counts once."""
    if told.get("paid_currency") != sheet.order.currency or _amount(told.get("paid_amount")) != plan.price:
        return Judgement("Genuine, but the amount or currency is not that of the subscription: nothing sent out.")
    if any(one.renews and one.payment == str(told.get("id")) for one in sheet.pingbacks):
        return Judgement("Genuine, and this renewal was known before: nothing more to do.")
    return Judgement("Genuine, a renewal at the agreed price: the next parcel goes out.", renews=True)


def _subscription(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    told = payload.get("subscription")
    return told if isinstance(told, Mapping) else {}


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
