"""What the API answers about a merchant's money; amounts are JSON numbers,
negative where something was taken.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import msgspec
from msgspec import Meta

from paydesk.web.api.shapes import Seconds

Cursor = Annotated[str | None, Meta(description="Continues the list; null at its end.")]


class ReserveRelease(msgspec.Struct, frozen=True):
    """A part of the reserve that becomes available."""

    day: Annotated[str, Meta(description="The day in your time zone.", examples=["2026-11-20"])]
    amount: Decimal


class Balance(msgspec.Struct, frozen=True):
    """What you have in one currency."""

    currency: str
    pending: Annotated[Decimal, Meta(description="Captured, and not settled yet.")]
    available: Annotated[Decimal, Meta(description="To be paid out; negative if more was taken back than you had.")]
    reserve: Annotated[Decimal, Meta(description="Held back for a time, in case customers want their money back.")]
    reserve_releases: list[ReserveRelease]


class BalanceSheet(msgspec.Struct, frozen=True):
    """Your balances, one for each currency."""

    success: bool
    data: list[Balance]


class Posting(msgspec.Struct, frozen=True):
    """One change of your balances: `gross` + `fees` = `pending` + `available` + `reserve`."""

    id: int
    kind: Annotated[
        str,
        Meta(
            description="`capture`, `settlement`, `reserve_release`, `refund`, `refund_failure`, `chargeback`, "
            "`chargeback_fee`, `chargeback_reversal` or `payout`."
        ),
    ]
    at: Seconds
    payment_id: int | None
    payout_id: int | None
    currency: str
    gross: Annotated[Decimal, Meta(description="What customers paid or got back, or what was paid out.")]
    fees: Annotated[Decimal, Meta(description="Fees; negative when you pay them.")]
    pending: Decimal
    available: Decimal
    reserve: Decimal


class PostingList(msgspec.Struct, frozen=True):
    """A page of your ledger, newest first."""

    success: bool
    data: list[Posting]
    next_cursor: Cursor


class Payout(msgspec.Struct, frozen=True):
    """Money that was sent to you."""

    id: int
    currency: str
    amount: Decimal
    reference: Annotated[str, Meta(description="What your bank statement shows.")]
    at: Seconds


class PayoutList(msgspec.Struct, frozen=True):
    """A page of payouts, newest first."""

    success: bool
    data: list[Payout]
    next_cursor: Cursor


class Chargeback(msgspec.Struct, frozen=True):
    """Money that a customer's bank took back."""

    id: Annotated[int, Meta(description="The `reference_id` of its pingbacks.")]
    payment_id: int
    merchant_order_id: str
    subscription_id: int | None
    status: Annotated[
        str,
        Meta(
            description="`open`, `won` (the money comes back) or `lost` (a part may have come back); `inquiry`: the "
            "bank only asks, no money has moved; `dropped`: it ended before any money moved."
        ),
    ]
    amount: Annotated[Decimal, Meta(description="What is disputed; may be more than was paid.")]
    currency: Annotated[str, Meta(description="The payment's.")]
    taken: Annotated[Decimal, Meta(description="What the bank took so far.")]
    returned: Annotated[Decimal, Meta(description="What the bank gave back of that so far.")]
    disputed_amount: Annotated[Decimal, Meta(description="`amount` in the dispute's own currency.")]
    disputed_currency: str
    fee: Annotated[Decimal, Meta(description="What the chargeback cost besides; it is kept if you win.")]
    reason: str
    evidence: str
    evidence_at: Seconds
    opened_at: Seconds
    closed_at: Seconds
    live: bool


class ChargebackList(msgspec.Struct, frozen=True):
    """A page of chargebacks, newest first."""

    success: bool
    data: list[Chargeback]
    next_cursor: Cursor


class OneChargeback(msgspec.Struct, frozen=True):
    """A chargeback as it stands now."""

    success: bool
    data: Chargeback


BALANCE_ANSWERS = (BalanceSheet, PostingList, PayoutList, ChargebackList, OneChargeback)
