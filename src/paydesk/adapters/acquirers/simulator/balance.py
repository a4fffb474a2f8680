"""The balance that the simulated bank keeps for its account: what it charges for, and what it pays
out to the operator's own bank, every day.

A line is an operation of the record that took or gave back money; what it costs follows from the
terms that held when it was made, and which payout it is in from the places where payouts were cut.
So each is always told alike.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final

from paydesk.adapters.acquirers.balance import (
    BalanceLine,
    BankPayout,
    LineKind,
    LinePage,
    PayoutPage,
    PayoutState,
)
from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.simulator.balance_record import Payout, Terms
from paydesk.adapters.acquirers.simulator.listing import PAGE, place_after, place_of
from paydesk.adapters.acquirers.simulator.purchase_state import Standing, Status, standing_of
from paydesk.adapters.acquirers.simulator.record import Kind, Operation, Record
from paydesk.adapters.acquirers.simulator.remembering import key_of
from paydesk.adapters.acquirers.simulator.test_cards import APPROVED
from paydesk.core.wording import noted

_KINDS: Final = {
    Kind.AUTHORIZE: LineKind.CAPTURE,
    Kind.CHARGE: LineKind.CAPTURE,
    Kind.APPROVE: LineKind.CAPTURE,
    Kind.CAPTURE: LineKind.CAPTURE,
    Kind.VOID: LineKind.REFUND,
    Kind.REFUND: LineKind.REFUND,
    Kind.REFUND_FAILED: LineKind.REFUND_FAILURE,
    Kind.DISPUTE: LineKind.CHARGEBACK,
    Kind.DISPUTE_WON: LineKind.CHARGEBACK_REVERSAL,
}
_ADDS: Final = frozenset({LineKind.CAPTURE, LineKind.REFUND_FAILURE, LineKind.CHARGEBACK_REVERSAL})
_MOST: Final = 1000


class BalanceBook:
    """The balance in the record. Whoever reads it makes the payouts whose time has come."""

    def __init__(self, record: Record, now: Callable[[], datetime]) -> None:
        self._record = record
        self._now = now
        self._every = timedelta(days=1)

    def agree(self, terms: Terms, every: timedelta) -> None:
        """Charge by these terms from now on, and pay out so often."""
        self._every = every
        with self._record.transaction():
            self._record.balance.agree(terms)

    def lines(self, since: datetime, after: str) -> LinePage:
        """A page of movements. Raises: AcquirerRefused."""
        self._pay_out()
        found = self._record.balance.moved(place_of(after), PAGE, since=since)
        paid = [] if after else [_own_line(one) for one in self._record.balance.payouts(since, 0, _MOST)]
        return LinePage((*paid, *(line for _, line in self._written(found))), place_after(found))

    def payouts(self, since: datetime, after: str) -> PayoutPage:
        """A page of payouts. Raises: AcquirerRefused."""
        self._pay_out()
        rows = self._record.balance.payouts(since, place_of(after), PAGE)
        made = (
            BankPayout(one.reference, one.at, one.amount, one.currency, PayoutState.ARRIVED, is_traced=True)
            for one in rows
        )
        return PayoutPage(tuple(made), str(rows[-1].id) if len(rows) == PAGE else "")

    def lines_of(self, payout: str, after: str) -> LinePage:
        """A page of the movements of a payout, its own last. Raises: AcquirerRefused."""
        made = self._record.balance.payout(payout)
        if made is None:
            raise AcquirerRefused(noted("there is no such payout"))
        found = self._record.balance.moved(max(place_of(after), made.after_seq), PAGE, until=made.last_seq)
        lines = [line for _, line in self._written(found) if line.currency == made.currency]
        following = place_after(found)
        return LinePage((*lines, *([] if following else [_own_line(made)])), following)

    def _written(self, operations: Sequence[Operation]) -> Iterator[tuple[int, BalanceLine]]:
        """Operations as movements of the balance, each by its place; without what moved none."""
        terms = self._record.balance.terms()
        for one in operations:
            history = self._record.of_purchase(one.of_key or "")
            before = standing_of(each for each in history if each.seq < one.seq)
            if _took(one, before):
                charged = next((each for after, each in terms if after < one.seq), Terms())
                yield one.seq, _line(one, charged, standing_of(history))

    def _pay_out(self) -> None:
        """Pay out what was moved in the periods that are over, by currency."""
        midnight = (now := self._now()).replace(hour=0, minute=0, second=0, microsecond=0)
        boundary = midnight + (now - midnight) // self._every * self._every
        balance = self._record.balance
        if balance.is_cut(boundary):
            return
        with self._record.transaction():
            last, before, carried = balance.last_before(boundary), balance.last_cut(), balance.carried()
            if balance.is_cut(boundary):
                return
            sums = {currency: (after, Decimal(0)) for currency, after in carried.items()}
            place = min([before, *carried.values()])
            while found := balance.moved(place, _MOST, until=last):
                place = found[-1].seq
                for seq, line in self._written(found):
                    after, total = sums.get(line.currency, (before, Decimal(0)))
                    if seq > after:
                        sums[line.currency] = after, total + line.net
            balance.cut(boundary, max(last, before), sums)


class AskedBalance:
    """The balance behind the acquirer interface; the bank takes its time for each question."""

    def __init__(self, book: BalanceBook, ask: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        self._book = book
        self._ask = ask

    async def lines(self, since: datetime, after: str) -> LinePage:
        """A page of movements. Moves no money. Raises: AcquirerRefused."""
        page: LinePage = await self._ask(partial(self._book.lines, since, after))
        return page

    async def payouts(self, since: datetime, after: str) -> PayoutPage:
        """A page of payouts. Moves no money. Raises: AcquirerRefused."""
        page: PayoutPage = await self._ask(partial(self._book.payouts, since, after))
        return page

    async def lines_of(self, payout: str, after: str) -> LinePage:
        """A page of the movements of a payout. Moves no money. Raises: AcquirerRefused."""
        page: LinePage = await self._ask(partial(self._book.lines_of, payout, after))
        return page

    async def with_keys(self, lines: Sequence[BalanceLine]) -> Sequence[BalanceLine]:
        """They have them. Moves no money."""
        return lines


def _took(one: Operation, before: Standing | None) -> bool:
    """Whether an operation moved money, rather than holding it or letting go of it."""
    if not one.amount:
        return False
    match one.kind:
        case Kind.AUTHORIZE | Kind.CHARGE:
            return one.capture and one.result == APPROVED
        case Kind.APPROVE:
            return before is not None and before.capture
        case Kind.VOID:
            return before is not None and before.status is Status.APPROVED and before.captured > 0
    return True


def _line(one: Operation, terms: Terms, standing: Standing | None) -> BalanceLine:
    """An operation that moved money as a movement of the balance."""
    kind = _KINDS[one.kind]
    key = one.of_key if kind is LineKind.CAPTURE else one.key
    return BalanceLine(
        id=f"line_{one.seq}",
        kind=kind,
        at=one.at,
        amount=one.amount if kind in _ADDS else -one.amount,
        fee=terms.fee(kind, one.amount, one.currency),
        currency=one.currency,
        type=one.kind,
        source=one.reference,
        purchase=standing.reference if standing else "",
        key=key_of(key or ""),
        of_key=key_of(one.of_key or ""),
        is_ours=True,
    )


def _own_line(made: Payout) -> BalanceLine:
    """What a payout itself moved."""
    return BalanceLine(
        id=f"line_{made.reference}",
        kind=LineKind.PAYOUT,
        at=made.at,
        amount=-made.amount,
        fee=Decimal(0),
        currency=made.currency,
        type="payout",
        source=made.reference,
        is_ours=True,
    )
