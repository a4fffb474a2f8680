"""Mollie's balances: their transactions with what was deducted, and the settlements that paid them
out.

An API key may not read them: an access token of the organization with `balances.read` and
`settlements.read` may. What a settlement is of are the transactions between it and the one before.

A payment that fails after it was written to the balance (a direct debit) is taken off it again by a
`failed-payment` of as much: its money goes back, and none was moved otherwise.

Source: docs.mollie.com/reference/list-balances, /list-balance-transactions, /list-settlements,
    /get-settlement, /get-payment, /pagination.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
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
from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.mollie.calls import Calls
from paydesk.adapters.acquirers.mollie.looking import PAGE, place
from paydesk.adapters.acquirers.mollie.objects import Amount, Listed, Payment, moment, written
from paydesk.core.wording import noted

_KINDS: Final = {
    "payment": LineKind.CAPTURE,
    "capture": LineKind.CAPTURE,
    "failed-payment": LineKind.REFUND,
    "refund": LineKind.REFUND,
    "returned-refund": LineKind.REFUND_FAILURE,
    "chargeback": LineKind.CHARGEBACK,
    "chargeback-reversal": LineKind.CHARGEBACK_REVERSAL,
    "outgoing-transfer": LineKind.PAYOUT,
    "outgoing-custom-amount-transfer": LineKind.PAYOUT,
    "canceled-outgoing-transfer": LineKind.PAYOUT_RETURN,
    "canceled-transfer": LineKind.PAYOUT_RETURN,
    "returned-transfer": LineKind.PAYOUT_RETURN,
    "payment-fee": LineKind.FEE,
    "failed-payment-fee": LineKind.FEE,
    "reimbursement-fee": LineKind.FEE,
    "balance-charge-fee": LineKind.FEE,
    "bank-charged-failure-fee": LineKind.FEE,
    "managed-fee": LineKind.FEE,
    "returned-managed-fee": LineKind.FEE,
    "fee-prepayment": LineKind.FEE,
    "invoice-compensation": LineKind.FEE,
    "invoice-rounding-compensation": LineKind.FEE,
}
_STATES: Final = {"paidout": PayoutState.ARRIVED, "failed": PayoutState.FAILED}
_AT_ONCE: Final = 8
"""How many payments are asked for at once."""
_MOST_PARTS: Final = 200
"""How far back a settlement's transactions are looked for, in parts of the list."""


class Withheld(msgspec.Struct, frozen=True):
    """What was deducted and is no fee."""

    repayments: Amount | None = None
    reservations: Amount | None = None

    @property
    def amount(self) -> Decimal:
        """How much that is, positive."""
        return -sum((one.amount for one in (self.repayments, self.reservations) if one), Decimal(0))


class Transaction(msgspec.Struct, frozen=True, rename="camel"):
    """A transaction of a balance; its `context` names what it is about."""

    id: str
    type: str
    result_amount: Amount
    initial_amount: Amount
    created_at: str
    deduction_details: Withheld | None = None
    context: dict[str, object] | None = None

    def about(self, name: str) -> str:
        """One of the names in its context, empty without one; it may stand below the type, too."""
        context = self.context or {}
        nested = next((one for one in context.values() if isinstance(one, dict)), {})
        return written(context, name) or written(nested, name)


class _Transactions(msgspec.Struct, frozen=True):
    balance_transactions: list[Transaction] = []


class _TransactionList(Listed, frozen=True):
    embedded: _Transactions = msgspec.field(name="_embedded", default=_Transactions())  # type: ignore[assignment]


class _Balance(msgspec.Struct, frozen=True):
    id: str


class _Balances(msgspec.Struct, frozen=True):
    balances: list[_Balance] = []


class _BalanceList(msgspec.Struct, frozen=True):
    embedded: _Balances = msgspec.field(name="_embedded", default=_Balances())


class Settlement(msgspec.Struct, frozen=True, rename="camel"):
    """A payout to the operator's bank."""

    id: str
    status: str
    amount: Amount
    balance_id: str = ""
    created_at: str = ""
    settled_at: str | None = None
    reference: str | None = None


class _Settlements(msgspec.Struct, frozen=True):
    settlements: list[Settlement] = []


class _SettlementList(Listed, frozen=True):
    embedded: _Settlements = msgspec.field(name="_embedded", default=_Settlements())  # type: ignore[assignment]


class MollieBalance:
    """Reads the balances by an access token, and whose payments they are of by the API key; of
    test payments where that is one for tests.
    """

    def __init__(self, calls: Calls, token_calls: Calls, *, for_tests: bool) -> None:
        self._calls: Final = calls
        self._by_token: Final = token_calls
        self._mode: Final = {"testmode": True} if for_tests else {}

    async def lines(self, since: datetime, after: str) -> LinePage:
        """A page of transactions, balance by balance, the newest first; the cursor is where the
        next part begins. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        ask = partial(self._by_token.sdk.balances.list_async, limit=PAGE, **self._mode)
        names = [one.id for one in (await self._by_token.ask(ask, _BalanceList)).embedded.balances]
        name, _, begin = after.partition(" ")
        if name and name not in names:
            raise AcquirerRefused(noted("this is no place in Mollie's balances"))
        if not names:
            return LinePage((), "")
        name = name or names[0]
        part = await self._part(name, begin)
        found = part.embedded.balance_transactions
        young = [one for one in found if moment(one.created_at) >= since]
        later = names[names.index(name) + 1 :]
        following = f"{name} {part.next}" if part.next and len(young) == len(found) else ""
        return LinePage(tuple(_lines(young)), following or (f"{later[0]} " if later else ""))

    async def payouts(self, since: datetime, after: str) -> PayoutPage:
        """A page of settlements, those that are not closed left out. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        if self._mode:
            return PayoutPage((), "")  # Nothing is paid out of test payments.
        ask = partial(self._by_token.sdk.settlements.list_async, **place(after))
        part = await self._by_token.ask(ask, _SettlementList)
        found = [(_payout(one), one.status) for one in part.embedded.settlements]
        young = [one for one, status in found if one.at >= since or status == "open"]
        closed = tuple(one for one, status in found if one.at >= since and status != "open")
        return PayoutPage(closed, part.next if len(young) == len(found) else "")

    async def lines_of(self, payout: str, after: str) -> LinePage:
        """All transactions between a settlement and the one before. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        ask = partial(self._by_token.sdk.settlements.get_async, settlement_id=payout)
        balance = (await self._by_token.ask(ask, Settlement)).balance_id or "primary"
        taken: list[Transaction] = []
        begin = ""
        for _ in range(_MOST_PARTS):
            part = await self._part(balance, begin)
            for one in part.embedded.balance_transactions:
                is_transfer = _KINDS.get(one.type) is LineKind.PAYOUT
                if taken and is_transfer:
                    return LinePage(tuple(_lines(taken)), "")
                if taken or (is_transfer and one.about("settlementId") == payout):
                    taken.append(one)
            begin = part.next
            if not begin:
                return LinePage(tuple(_lines(taken)), "")
        raise AcquirerRefused(
            noted("the settlement %(payout)s is too far back in Mollie's balance", payout=payout[:40])
        )

    async def with_keys(self, lines: Sequence[BalanceLine]) -> Sequence[BalanceLine]:
        """The lines with what their payments carry: one question for each payment. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        wanted = sorted({one.purchase for one in lines if one.purchase})
        gate = asyncio.Semaphore(_AT_ONCE)

        async def find(name: str) -> Payment | None:
            async with gate:
                ask = partial(self._calls.sdk.payments.get_async, payment_id=name, embed="refunds")
                return await self._calls.look(ask, Payment)

        found = dict(zip(wanted, await asyncio.gather(*map(find, wanted)), strict=True))
        return [_with_key(one, found[one.purchase]) if one.purchase else one for one in lines]

    async def _part(self, balance: str, begin: str) -> _TransactionList:
        ask = partial(
            self._by_token.sdk.balances.list_transactions_async, balance_id=balance, **place(begin), **self._mode
        )
        return await self._by_token.ask(ask, _TransactionList)


def _lines(transactions: Sequence[Transaction]) -> list[BalanceLine]:
    """Transactions as movements; what is withheld of one and is no fee is a movement of its own."""
    lines = []
    for one in transactions:
        line, withheld = _line(one), one.deduction_details.amount if one.deduction_details else Decimal(0)
        lines.append(line)
        if withheld:
            rest = replace(line, id=f"{one.id} withheld", kind=LineKind.OTHER, type="withheld")
            lines.append(replace(rest, amount=-withheld, fee=Decimal(0)))
    return lines


def _line(one: Transaction) -> BalanceLine:
    kind = _KINDS.get(one.type, LineKind.OTHER)
    withheld = one.deduction_details.amount if one.deduction_details else Decimal(0)
    amount = one.initial_amount.amount
    fee = amount - one.result_amount.amount - withheld
    if kind is LineKind.FEE:
        amount, fee = Decimal(0), fee - amount
    purchase, chargeback = one.about("paymentId"), one.about("chargebackId")
    names = ("refundId", "settlementId", "captureId", "paymentId")
    return BalanceLine(
        id=one.id,
        kind=kind,
        at=moment(one.created_at),
        amount=amount,
        fee=fee,
        currency=one.initial_amount.currency,
        type=one.type,
        # As disputes are called in our books.
        source=f"{purchase}.{chargeback}" if chargeback else next(filter(None, map(one.about, names)), ""),
        purchase=purchase,
    )


def _with_key(line: BalanceLine, payment: Payment | None) -> BalanceLine:
    """A line with the keys that its payment, and its refund, carry."""
    if payment is None:
        return replace(line, is_ours=False)
    refunds = payment.embedded.refunds if payment.embedded else []
    refund = next((one for one in refunds if one.id == line.source), None)
    key = payment.key if line.kind is LineKind.CAPTURE else ""
    amount = payment.amount if line.kind is LineKind.CAPTURE else refund.amount if refund else None
    if refund is not None:
        key = refund.listed_key
    exchanged = amount is not None and amount.currency != line.currency
    return replace(
        line,
        key=key,
        of_key=payment.key,
        is_ours=bool(payment.key),
        deployment=payment.mark.deployment if payment.mark else "",
        of_amount=amount.amount.copy_sign(line.amount) if amount is not None and exchanged else None,
        of_currency=amount.currency if amount is not None and exchanged else "",
    )


def _payout(one: Settlement) -> BankPayout:
    return BankPayout(
        reference=one.id,
        at=moment(one.settled_at or one.created_at),
        amount=one.amount.amount,
        currency=one.amount.currency,
        state=_STATES.get(one.status, PayoutState.ON_ITS_WAY),
        is_traced=one.status == "paidout",
        bank_reference=one.reference or "",
    )
