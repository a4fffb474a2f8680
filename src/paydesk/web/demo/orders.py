"""Orders, the pingbacks that the shop received, and the decision what a genuine pingback means
for an order.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal, TypeAlias

import msgspec

from paydesk.web.demo.articles import Article, Plan, prices_of
from paydesk.web.demo.reversals import ToldReversal, amount_of, read_reversal, verdict_on
from paydesk_client.signature import Version

Standing: TypeAlias = Literal[
    "waiting",
    "authorized",
    "paid",
    "shipped",
    "subscribed",
    "ended",
    "voided",
    "refunded",
    "refunded_partly",
    "disputed",
]
"""How an order stands, by what pingbacks said and, for its shipment, by what Paydesk answered."""

_ENDINGS = {
    "subscription_cancelled": "Genuine: the subscription was cancelled. Nothing more is sent out.",
    "subscription_stopped": "Genuine: the card failed too often, so the subscription stopped. Nothing more is sent.",
    "subscription_expired": "Genuine: the agreed time of the subscription is over. Nothing more is sent out.",
}
"""Events that end a subscription, and what they mean for the shop (interface.md §6.2)."""

_PAUSES = {
    "subscription_paused": "Genuine: the subscription is paused. Nothing is sent out until it goes on.",
    "subscription_resumed": "Genuine: the subscription goes on. The next parcel goes out once it is paid.",
}
"""Events for those who ask for them: what they mean for the shop."""


class Order(msgspec.Struct, frozen=True, tag="order"):
    """What a visitor wants to buy; `amount` is in main units, `sign_version` signs its form
    and thus its pingbacks.

    With a `plan` it is a subscription, and `amount` is its first payment. The money of `shipped`
    goods is only held until the shop says that they are on their way.
    """

    reference: str
    description: str
    picture: str
    amount: Decimal
    currency: str
    sign_version: Version
    ordered_at: datetime
    plan: Plan | None = None
    shipped: bool = False


class ReceivedPingback(msgspec.Struct, frozen=True, tag="pingback"):
    """One pingback as it came in, genuine or not; its key is never in `headers`.

    `reference` is the order that it belongs to, or empty; `verdict` says in words what the shop
    made of it; `fulfils` is true for the one pingback on whose word the order was fulfilled,
    `renews` for the one of each later payment of a subscription. `payment`, `subscription` and
    `status` are ids and status as the pingback names them, `paid_at` is the time of the payment
    (UTC), `reversal` is what went back on the word of this pingback.
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
    paid_at: datetime | None = None
    reversal: ToldReversal | None = None


class Call(msgspec.Struct, frozen=True, tag="call"):
    """Something that the shop asked of Paydesk about an order, and what came of it in words.

    `what` is the call, `done` whether Paydesk did it, `answered` whether it answered at all;
    `reference_id` is that of a refund, which its pingback has too.
    """

    called_at: datetime
    reference: str
    what: Literal["shipment", "refund"]
    sent: str
    outcome: str
    done: bool
    answered: bool = True
    reference_id: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """An order, the genuine pingbacks about it and the shop's calls, oldest first."""

    order: Order
    pingbacks: tuple[ReceivedPingback, ...] = ()
    calls: tuple[Call, ...] = ()

    @property
    def paid(self) -> bool:
        """Whether a pingback, and nothing else, said that the order is paid."""
        return any(pingback.fulfils for pingback in self.pingbacks)

    @property
    def first_payment(self) -> str:
        """The id of the payment that fulfilled the order:
        a subscription's later pingbacks name it `recurring_id`.
        """
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

    def ship_by(self, time_to_ship: timedelta) -> datetime | None:
        """Until when Paydesk, which gives an order that is paid so long, holds its money, UTC."""
        paid = next((pingback for pingback in self.pingbacks if pingback.fulfils), None)
        return (paid.paid_at or paid.received_at) + time_to_ship if paid else None

    @property
    def shipped(self) -> bool:
        """Whether Paydesk knows that the goods are on their way."""
        return any(call.what == "shipment" and call.done for call in self.calls)

    @property
    def reversals(self) -> tuple[ToldReversal, ...]:
        """What went back, each once."""
        return tuple(pingback.reversal for pingback in self.pingbacks if pingback.reversal)

    @property
    def refunded(self) -> Decimal:
        """How much the customer got back by refunds, in main units."""
        back = {"refund": 1, "partial_refund": 1, "refund_failed": -1}
        return sum((one.amount * back.get(one.event, 0) for one in self.reversals), Decimal(0))

    @property
    def standing(self) -> Standing:
        """How the order stands; a subscription stands or falls as a whole, whatever became of one
        of its payments.
        """
        if self.order.plan is not None:
            return "ended" if self.ended else "subscribed" if self.paid else "waiting"
        events = [reversal.event for reversal in self.reversals]
        if events.count("chargeback") > events.count("chargeback_reversed"):
            return "disputed"
        if "refund" in events and "refund_failed" not in events:
            return "voided" if self.order.shipped and not self.shipped else "refunded"
        if self.refunded:
            return "refunded_partly"
        if self.order.shipped and self.paid:
            return "shipped" if self.shipped else "authorized"
        return "paid" if self.paid else "waiting"

    @property
    def refundable(self) -> bool:
        """Whether there may be money left that the shop can give back."""
        return self.standing in ("authorized", "paid", "shipped", "refunded_partly")

    @property
    def awaits(self) -> bool:
        """Whether more pingbacks may come."""
        return self.standing not in ("ended", "voided", "refunded")

    @property
    def awaits_soon(self) -> bool:
        """Whether a pingback is on its way: that of the payment,
        or of a refund that the shop asked for.
        """
        told = {reversal.reference_id for reversal in self.reversals}
        return not self.paid or any(call.reference_id and call.reference_id not in told for call in self.calls)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a genuine pingback means: a sentence, and what is to be done now."""

    verdict: str
    fulfils: bool = False
    renews: bool = False
    ends: bool = False
    reversal: ToldReversal | None = None


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
        shipped=article.shipped,
    )


def reference_of(payload: Mapping[str, object]) -> str:
    """The shop's own order reference that a payload names, or an empty string.

    A renewal has a reference of its own, which Paydesk makes of the first one and a number
    (interface.md §5.7).
    """
    of_first = _subscription(payload).get("init_merchant_order_id")
    return str(of_first or _payment_order(payload).get("merchant_order_id", "")).partition(":")[0]


def recurring_id_of(payload: Mapping[str, object]) -> str:
    """The id of the first payment of a payload's subscription, or an empty string
    (interface.md §5.7).
    """
    return str(_subscription(payload).get("recurring_id", ""))


def named_in(payload: Mapping[str, object]) -> dict[str, object]:
    """What a payload calls its payment and its subscription, as fields of `ReceivedPingback`."""
    told, subscription = _payment_order(payload), _subscription(payload)
    return {
        "paid_at": _date(told.get("date")),
        "payment": str(told.get("id", "")),
        "subscription": str(subscription.get("id", "")),
        "status": str(subscription.get("status", "")),
    }


def judge(payload: Mapping[str, object], sheet: Sheet | None) -> Judgement:
    """Decide what a genuine pingback means for the order that it names (interface.md §5.2, §6.1).

    Genuine says who speaks, not that the right amount was paid: the shop compares it with its own
    order. Pingbacks come at least once, so the second one about the same payment must
    change nothing.
    """
    if sheet is None:
        return Judgement("Genuine, but this shop has no such order.")
    event = str(payload.get("event"))
    if sheet.order.plan is not None and event in _ENDINGS:
        return Judgement(_ENDINGS[event], ends=True)
    if sheet.order.plan is not None and event in _PAUSES:
        return Judgement(_PAUSES[event])
    if (reversal := read_reversal(payload)) is not None:
        return _judge_reversal(reversal, sheet)
    if event != "payment":
        return Judgement("Genuine, but not about a payment received: noted, nothing else done.")
    told = _payment_order(payload)
    if told.get("status") != "successful":
        return Judgement("Genuine, but the payment was not successful: not fulfilled.")
    if sheet.order.plan is not None and str(told.get("merchant_order_id")) != sheet.order.reference:
        return _judge_renewal(told, sheet, sheet.order.plan)
    if told.get("paid_currency") != sheet.order.currency or amount_of(told.get("paid_amount")) != sheet.order.amount:
        return Judgement("Genuine, but the amount or currency is not that of the order: not fulfilled.")
    if sheet.paid:
        return Judgement("Genuine, and the order was fulfilled before: nothing more to do.")
    return Judgement("Genuine, and amount and currency are those of the order: fulfilled.", fulfils=True)


def _judge_renewal(told: Mapping[str, object], sheet: Sheet, plan: Plan) -> Judgement:
    """A later payment of a subscription: a price of the shop's, and each payment counts once."""
    paid = amount_of(told.get("paid_amount"))
    if told.get("paid_currency") != sheet.order.currency or paid not in prices_of(plan):
        return Judgement("Genuine, but the amount or currency is not that of the subscription: nothing sent out.")
    if any(one.renews and one.payment == str(told.get("id")) for one in sheet.pingbacks):
        return Judgement("Genuine, and this renewal was known before: nothing more to do.")
    return Judgement("Genuine, a renewal at the agreed price: the next parcel goes out.", renews=True)


def _judge_reversal(reversal: ToldReversal, sheet: Sheet) -> Judgement:
    """Money that went back counts once: pingbacks come at least once,
    and are known by their `reference_id`.
    """
    known = any((one.event, one.reference_id) == (reversal.event, reversal.reference_id) for one in sheet.reversals)
    return Judgement(verdict_on(reversal, known=known), reversal=None if known else reversal)


def _subscription(payload: Mapping[str, object]) -> Mapping[str, object]:
    told = payload.get("subscription")
    return told if isinstance(told, Mapping) else {}


def _payment_order(payload: Mapping[str, object]) -> Mapping[str, object]:
    told = payload.get("payment_order")
    return told if isinstance(told, Mapping) else {}


def _date(told: object) -> datetime | None:
    """A pingback's date, or None if it is none (interface.md §5.2)."""
    written = told.get("date") if isinstance(told, Mapping) else None
    try:
        return datetime.strptime(str(written), "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return None
