"""Stripe's balance: its transactions with their fees, and the payouts that they are in.

What a transaction was is read from its reporting category, which Stripe names for accounting; its
type says the rest. Of payouts only automatic ones are traced: which transactions one that was made
by hand is of, Stripe can't say.

Of a direct debit Stripe writes a charge as soon as it is asked for, and a `charge_failure` of as
much if it comes to nothing; of what was captured in part by an API version before 2025-03-31 (an
account may have one, in Stripe's own pages), a charge of all that was held, and a
`partial_capture_reversal` of the rest. Both go back to the customer: no money was moved otherwise.
Later versions write a charge of what was captured alone.

Source: docs.stripe.com/api/balance_transactions, docs.stripe.com/api/payouts,
    docs.stripe.com/payouts/reconciliation, docs.stripe.com/reports/reporting-categories,
    docs.stripe.com/reports/balance-transaction-types;
    support.stripe.com/questions/changes-to-balance-transaction-behavior-for-partial-capture-and-payment-cancellation-flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

import msgspec

from paydesk.adapters.acquirers.balance import (
    BalanceLine,
    BankPayout,
    LineKind,
    LinePage,
    PayoutPage,
    PayoutState,
)
from paydesk.adapters.acquirers.stripe.amounts import main_units
from paydesk.adapters.acquirers.stripe.calls import Calls
from paydesk.adapters.acquirers.stripe.objects import KEY, VOID, Named, mark_of

_PAGE: Final = 100
_KINDS: Final = {
    "charge": LineKind.CAPTURE,
    "charge_failure": LineKind.REFUND,
    "partial_capture_reversal": LineKind.REFUND,
    "refund": LineKind.REFUND,
    "refund_failure": LineKind.REFUND_FAILURE,
    "dispute": LineKind.CHARGEBACK,
    "dispute_reversal": LineKind.CHARGEBACK_REVERSAL,
    "payout": LineKind.PAYOUT,
    "payout_reversal": LineKind.PAYOUT_RETURN,
    "fee": LineKind.FEE,
    "network_cost": LineKind.FEE,
    "tax": LineKind.FEE,
}
"""By reporting category; any other one is a movement of another kind."""
_STATES: Final = {
    "paid": PayoutState.ARRIVED,
    "failed": PayoutState.FAILED,
    "canceled": PayoutState.FAILED,
}
_OF_PURCHASES: Final = frozenset({LineKind.CAPTURE, LineKind.REFUND})
"""What carries our metadata where we made it."""


class Source(msgspec.Struct, frozen=True):
    """What a transaction is about: a charge, a refund, a dispute, a payout, …; `amount` in minor
    units.
    """

    id: str
    amount: int = 0
    amount_captured: int | None = None
    currency: str = ""
    payment_intent: Named | str | None = None
    metadata: dict[str, str] | None = None

    @property
    def purchase(self) -> str:
        """The PaymentIntent that it is of, empty if it is of none."""
        intent = self.payment_intent
        return (intent.id if isinstance(intent, Named) else intent) or ""

    def of_amount(self, settled: int, rate: float | None) -> Decimal:
        """What a transaction of an amount, exchanged at a rate, is of, in main units of its own
        currency: all of it, or what was captured, whichever is nearer.
        """
        units = self.amount
        if self.amount_captured and rate is not None:
            units = min(units, self.amount_captured, key=lambda one: abs(one * rate - abs(settled)))
        return main_units(units, self.currency)


class Transaction(msgspec.Struct, frozen=True):
    """A transaction of the balance; amounts in minor units."""

    id: str
    amount: int
    fee: int
    currency: str
    created: int
    type: str
    reporting_category: str
    exchange_rate: float | None = None
    source: Source | str | None = None


class TransactionList(msgspec.Struct, frozen=True):
    """A page of transactions."""

    data: list[Transaction]
    has_more: bool = False


class Trace(msgspec.Struct, frozen=True):
    """By what the operator's bank knows a payout."""

    value: str | None = None


class Payout(msgspec.Struct, frozen=True):
    """A payout; `amount` in minor units."""

    id: str
    amount: int
    currency: str
    created: int
    status: str
    reconciliation_status: str = ""
    trace_id: Trace | None = None


class PayoutList(msgspec.Struct, frozen=True):
    """A page of payouts."""

    data: list[Payout]
    has_more: bool = False


class StripeBalance:
    """Reads pages of Stripe's lists, the newest first; the cursor is the last object of the page
    before.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls: Final = calls

    async def lines(self, since: datetime, after: str) -> LinePage:
        """A page of transactions. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        return await self._transactions({"created": {"gte": int(since.timestamp())}}, after)

    async def lines_of(self, payout: str, after: str) -> LinePage:
        """A page of what a payout is of. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._transactions({"payout": payout}, after)

    async def payouts(self, since: datetime, after: str) -> PayoutPage:
        """A page of payouts. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        asked = _place(after) | {"created": {"gte": int(since.timestamp())}}
        page = await self._calls.ask(self._calls.v1.payouts.list_async(asked), PayoutList)
        return PayoutPage(tuple(map(_payout, page.data)), page.data[-1].id if page.has_more and page.data else "")

    async def with_keys(self, lines: Sequence[BalanceLine]) -> Sequence[BalanceLine]:
        """They have what Stripe knows. Moves no money."""
        return lines

    async def _transactions(self, which: dict[str, object], after: str) -> LinePage:
        asked = _place(after) | which | {"expand": ["data.source"]}
        page = await self._calls.ask(self._calls.v1.balance_transactions.list_async(asked), TransactionList)
        return LinePage(tuple(map(_line, page.data)), page.data[-1].id if page.has_more and page.data else "")


def _place(after: str) -> dict[str, object]:
    return {"limit": _PAGE, **({"starting_after": after} if after else {})}


def _line(one: Transaction) -> BalanceLine:
    """A transaction as a movement of the balance; one that is a fee itself costs what it takes."""
    currency = one.currency.upper()
    kind = _KINDS.get(one.reporting_category, LineKind.OTHER)
    source = one.source if isinstance(one.source, Source) else Source(one.source or "")
    amount, fee = main_units(one.amount, currency), main_units(one.fee, currency)
    if kind is LineKind.FEE:
        amount, fee = Decimal(0), fee - amount
    key = "" if one.reporting_category == "charge_failure" else _key(kind, source)
    exchanged = bool(source.currency) and source.currency.upper() != currency and kind not in _KEPT_WITHIN
    return BalanceLine(
        id=one.id,
        kind=kind,
        at=datetime.fromtimestamp(one.created, UTC),
        amount=amount,
        fee=fee,
        currency=currency,
        type=one.type,
        source=source.id,
        purchase=source.purchase,
        key=key,
        of_key=key if kind is LineKind.CAPTURE else "",
        of_amount=source.of_amount(one.amount, one.exchange_rate).copy_sign(amount) if exchanged else None,
        of_currency=source.currency.upper() if exchanged else "",
        is_ours=True if key else False if kind is LineKind.CAPTURE else None,
        deployment=mark.deployment if (mark := mark_of(source.metadata or {})) else "",
    )


_KEPT_WITHIN: Final = frozenset({LineKind.FEE, LineKind.PAYOUT, LineKind.PAYOUT_RETURN, LineKind.OTHER})
"""What is not of a customer's money in its own currency."""


def _key(kind: LineKind, source: Source) -> str:
    """Our key of a charge, which carries what its PaymentIntent does, or of a refund."""
    if kind not in _OF_PURCHASES or source.metadata is None:
        return ""
    return source.metadata.get(VOID, "") or source.metadata.get(KEY, "")


def _payout(one: Payout) -> BankPayout:
    currency = one.currency.upper()
    return BankPayout(
        reference=one.id,
        at=datetime.fromtimestamp(one.created, UTC),
        amount=main_units(one.amount, currency),
        currency=currency,
        state=_STATES.get(one.status, PayoutState.ON_ITS_WAY),
        is_traced=one.reconciliation_status == "completed",
        bank_reference=(one.trace_id.value if one.trace_id else None) or "",
    )
