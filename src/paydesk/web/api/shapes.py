"""What the API answers, in the interface's shapes:
from these types come the JSON and the OpenAPI document.

Amounts are JSON numbers as the decimals say them; times are Unix seconds, 0 when unset, but
for `date`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from paydesk.web.api.delivery_shapes import Delivery
from paydesk.web.api.refund_shapes import RefundLine

Seconds = Annotated[int, Meta(description="Unix seconds; 0 when unset.")]
Flag = Annotated[int, Meta(description="1 or 0.")]
Price = Annotated[str, Meta(description="A decimal number as text.", examples=["10.00"])]


class Error(msgspec.Struct, frozen=True):
    """Every refusal; the HTTP status is `code`."""

    success: bool
    type: Annotated[str, Meta(description="Always `error`.")]
    message: Annotated[str, Meta(description="What is wrong, and what was expected.")]
    code: int


class Date(msgspec.Struct, frozen=True):
    """A moment as PHP writes one."""

    date: Annotated[str, Meta(examples=["2026-11-20 09:44:16.000000"])]
    timezone_type: int
    timezone: str


class PaymentOrder(msgspec.Struct, frozen=True):
    """A payment as pingbacks show it."""

    id: int
    merchant_order_id: Annotated[str, Meta(description="Your order reference; a renewal's is `<first>:<n>`.")]
    payment_system: Annotated[
        int,
        Meta(
            description="1: card; 2: bank account; 3: another method; 4: bank transfer or direct debit that takes days."
        ),
    ]
    status: Annotated[
        str,
        Meta(
            description="`successful`: paid. `processing`: the outcome is not known yet. `challenged`: the customer "
            "confirms with their bank. `pending`: paid by a slow method, the money is sure in some days. `declined`: "
            "nothing was taken. `reversal_refunded`: all was given back, or the hold was let go. "
            "`reversal_refunded_partially`: a part was given back. `reversal_chargeback`: the customer's bank took it "
            "back."
        ),
    ]
    paid_amount: Annotated[Decimal, Meta(description="0 unless paid.")]
    paid_currency: str
    merchant_net_revenue: Decimal
    merchant_rolling_reserve: Decimal
    fees: Decimal
    date: Annotated[Date, Meta(description="When it was paid, or begun if it is not paid.")]


class User(msgspec.Struct, frozen=True):
    """The customer."""

    firstname: str
    lastname: str
    username: str
    country: str
    email: str


class Card(msgspec.Struct, frozen=True):
    """What may be shown of a card."""

    brand: str
    last4: str


class Attempt(msgspec.Struct, frozen=True):
    """One attempt to make a payment."""

    id: int
    status: Annotated[
        str,
        Meta(
            description="`approved`, `declined`, `processing`, `challenged`, `pending` (waits for the customer's "
            "bank), `failed` (the bank never saw it, or did not send the money of a pending one), "
            "`abandoned` (the customer did not confirm), `voiding` or `voided` (taken back)."
        ),
    ]
    amount: Decimal
    currency: str
    card: Card
    decline_reason: Annotated[str, Meta(description="Why the bank refused, such as `insufficient_funds`; else empty.")]
    created_at: Seconds
    finished_at: Seconds


class Payment(msgspec.Struct, frozen=True):
    """A payment with its customer and card."""

    payment_order: PaymentOrder
    user: User
    amount: Annotated[Decimal, Meta(description="What was asked for.")]
    currency: str
    captured: Annotated[
        bool, Meta(description="Whether the money was taken, not just held, whatever was given back since.")
    ]
    refunded_amount: Annotated[Decimal, Meta(description="What was given back so far.")]
    subscription_id: int | None
    card: Card
    decline_reason: Annotated[str, Meta(description="Why the last attempt was refused, or empty.")]
    created_at: Seconds
    paid_at: Seconds
    live: Annotated[bool, Meta(description="False for test data.")]


class PaymentWithAttempts(Payment, frozen=True):
    """A payment with all attempts to make it, first to last."""

    attempts: list[Attempt]
    delivery_status: Annotated[
        str, Meta(description="How far its goods are by `deliveries`: the furthest status, empty if nothing was said.")
    ]
    deliveries: Annotated[list[Delivery], Meta(description="What you said of its goods, first to last.")]
    refunds: Annotated[list[RefundLine], Meta(description="What was given back, or is on its way, first to last.")]


class Package(msgspec.Struct, frozen=True):
    """What a subscription is for; other terms under the same SKU are another version."""

    id: int
    sku_id: str
    name: str
    currency_code: str
    period_length: int
    period_type: str
    recurring_limit: int
    trial: Flag
    trial_price: Price
    trial_period_length: int
    trial_period_type: str
    price: Price
    discount_price: str | None
    active: Flag
    subscriptions_count: int


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription as pingbacks show it, and where its customer manages it."""

    id: int
    u_email: str
    recurring_id: Annotated[int, Meta(description="The id of its first payment.")]
    status: Annotated[
        str,
        Meta(description="`Trial`, `Active`, `Cancelled` or `Expired`; `Paused` if your account asks for that."),
    ]
    cancel_delay: Annotated[int, Meta(description="After how many seconds it ends that was asked to; 0 if not.")]
    currency_code: str
    trial: Flag
    trial_price: Price
    trial_period_length: int
    trial_period_type: str
    counter: Annotated[int, Meta(description="How many regular periods are paid.")]
    limit: Annotated[int, Meta(description="How many regular periods there are; 0 without end.")]
    failures: Annotated[int, Meta(description="How often the charge that is due has failed.")]
    period_length: int
    period_type: Annotated[str, Meta(description="`day`, `week`, `month` or `year`.")]
    billing_type: int
    price: Price
    date_active: Seconds
    date_start: Seconds
    date_next: Annotated[int, Meta(description="When the card is charged next, Unix seconds; 0 if never.")]
    date_end: Seconds
    date_paid: Seconds
    date_expired: Seconds
    date_cancelled: Seconds
    date_stopped: Seconds
    created_at: Seconds
    package_version_id: int
    change_request: Annotated[
        dict[str, Any] | None,
        Meta(
            description="What is to come: `type` is `cancel` (it ends `at`), `change` (its next period, `at`, is of "
            "this `package` and `price`) or `resume` (it is paused until `at`, 0 until it is resumed), with `since` "
            "and `requested_by`; null without."
        ),
    ]
    package: Package
    paid_number_counter: Annotated[int, Meta(description="How many payments were made.")]
    init_merchant_order_id: Annotated[str, Meta(description="The order reference of its first payment.")]
    portal_url: Annotated[
        str, Meta(description="Where its customer changes the card or cancels: give it to nobody else.")
    ]
    missed_periods: Annotated[
        int, Meta(description="How many periods fell due while nothing could be charged, and were skipped.")
    ]
    quantity: Annotated[
        int | msgspec.UnsetType, Meta(description="Of how many it is, from 2 on; `price` is of all of them.")
    ] = msgspec.UNSET
    unit_price: Annotated[str | msgspec.UnsetType, Meta(description="What one of several costs.")] = msgspec.UNSET


class SentPingback(msgspec.Struct, frozen=True):
    """One request to your server, as it was sent, and what it answered."""

    number: int
    at: Seconds
    url: str
    request_headers: Annotated[dict[str, str], Meta(description="The private key in `X-ApiKey` is masked.")]
    request_body: str
    status: Annotated[int | None, Meta(description="The HTTP status, null if there was no answer.")]
    response_body: Annotated[str, Meta(description="Its beginning.")]
    error: str
    duration_ms: int


class Pingback(msgspec.Struct, frozen=True):
    """A pingback and where it stands."""

    id: int
    event: str
    status: Annotated[
        str,
        Meta(
            description="`due`: will be sent at `due_at`. `acknowledged`: your server answered `ok`. `exhausted`: all "
            "attempts failed. `waiting`: there is no URL to send it to. `muted`: your account doesn't want this event."
        ),
    ]
    payment_id: int | None
    subscription_id: int | None
    url: str | None
    sign_version: str
    format: Annotated[str, Meta(description="`json` or `form`.")]
    attempts_count: int
    due_at: Seconds
    created_at: Seconds
    finished_at: Seconds
    payload: Annotated[
        msgspec.Raw,
        Meta(description="What is sent, but for `pingback_ts`.", extra_json_schema={"type": "object"}),
    ]
    live: Annotated[bool, Meta(description="False for test data.")]


class PingbackWithAttempts(Pingback, frozen=True):
    """A pingback with all requests so far, first to last."""

    attempts: list[SentPingback]


class PaymentList(msgspec.Struct, frozen=True):
    """A page of payments, newest first."""

    success: bool
    data: list[Payment]
    next_cursor: Annotated[str | None, Meta(description="Continues the list; null at its end.")]


class SubscriptionList(msgspec.Struct, frozen=True):
    """A page of subscriptions, newest first."""

    success: bool
    data: list[Subscription]
    next_cursor: Annotated[str | None, Meta(description="Continues the list; null at its end.")]


class PingbackList(msgspec.Struct, frozen=True):
    """A page of pingbacks, newest first."""

    success: bool
    data: list[Pingback]
    next_cursor: Annotated[str | None, Meta(description="Continues the list; null at its end.")]


class OnePayment(msgspec.Struct, frozen=True):
    """A payment was found."""

    success: bool
    data: PaymentWithAttempts


class OneSubscription(msgspec.Struct, frozen=True):
    """A subscription as it stands now."""

    success: bool
    data: Subscription


class OnePingback(msgspec.Struct, frozen=True):
    """A pingback as it stands now."""

    success: bool
    data: PingbackWithAttempts


class ClockEvent(msgspec.Struct, frozen=True):
    """Something that happened while the clock was moved, and what it concerned."""

    at: Seconds
    what: Annotated[
        str,
        Meta(
            description="`payment`, `payment_declined`, `payment_failed`, `subscription_stopped`, "
            "`subscription_expired`, `subscription_cancelled`, `subscription_resumed`, "
            "`payment_arrived` or `payment_not_arrived` (what was pending), "
            "`payment_voided`, `chargeback`, `settlement`, `reserve_release`, "
            "`pingback_acknowledged` or `pingback_failed`."
        ),
    ]
    subscription_id: int | None
    payment_id: int | None
    pingback_id: int | None


class ClockJourney(msgspec.Struct, frozen=True):
    """What happened on the way."""

    started_at: Seconds
    now: Annotated[int, Meta(description="The time of the test data now, Unix seconds.")]
    events: Annotated[list[ClockEvent], Meta(description="In order; the first 1,000.")]
    counts: Annotated[dict[str, int], Meta(description="How often each kind happened.")]
    unsettled: Annotated[list[int], Meta(description="Subscriptions with a charge whose outcome is not known yet.")]
    pingbacks_in_hand: Annotated[int, Meta(description="Pingbacks that are still being sent.")]


class ClockAdvanced(msgspec.Struct, frozen=True):
    """The clock was moved."""

    success: bool
    data: ClockJourney


ANSWERS = (PaymentList, OnePayment, SubscriptionList, OneSubscription, PingbackList, OnePingback, ClockAdvanced, Error)
