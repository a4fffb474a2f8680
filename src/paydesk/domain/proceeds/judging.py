"""What a line of an acquirer's balance says against our books. Pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from paydesk.adapters.acquirers.balance import LineKind, PayoutState
from paydesk.core.money import minor_digits, written
from paydesk.core.wording import noted
from paydesk.domain.payments.found_movements import key_by_hand
from paydesk.domain.payments.states import UNSETTLED, AttemptState, MovementState
from paydesk.domain.proceeds.findings import Finding, FindingKind

_OPEN = UNSETTLED | {AttemptState.VOIDING}
_PATIENCE = timedelta(days=1)
"""What our books don't know yet is waited for so long: disputes are read after they were taken."""
_UNDONE = ":void"
"""What the key of a purchase ends with that was undone, since it must not have been."""

LINE_FINDINGS = frozenset(
    {
        FindingKind.UNKNOWN_HERE,
        FindingKind.STATE_DIFFERS,
        FindingKind.AMOUNT_DIFFERS,
        FindingKind.CURRENCY_DIFFERS,
        FindingKind.FEE_DIFFERS,
        FindingKind.UNEXPLAINED,
    }
)
PAYOUT_FINDINGS = frozenset({FindingKind.SUM_DIFFERS, FindingKind.PAYOUT_CURRENCY, FindingKind.PAYOUT_FAILED})


@dataclass(frozen=True, slots=True)
class EnteredLine:
    """A line as it was entered.

    `of_purchase` is what all lines of its purchase come to before fees, `of_source` those of them
    that are of the same refund; `purchase_key` and `purchase_is_ours` are those of the line that
    took it, as far as there is one, and `refund_key` that of the refund that came back.
    """

    id: str
    kind: LineKind
    type: str
    at: datetime
    currency: str
    amount: Decimal
    fee: Decimal
    of_amount: Decimal | None
    of_currency: str
    source: str
    purchase: str
    key: str
    of_key: str
    is_ours: bool | None
    payout: str | None
    of_purchase: Decimal
    of_source: Decimal
    purchase_key: str | None
    purchase_is_ours: bool | None
    refund_key: str | None

    @property
    def moved(self) -> tuple[Decimal, str]:
        """What the customer's money was that it moved, in that money's own currency."""
        return (self.amount, self.currency) if self.of_amount is None else (self.of_amount, self.of_currency)

    @property
    def taken_under(self) -> str:
        """The key of its purchase, empty if nobody knows it."""
        return self.of_key or self.purchase_key or ""


@dataclass(frozen=True, slots=True)
class BookedAttempt:
    """What our books have of a purchase."""

    key: str
    merchant_id: int
    live: bool
    payment_id: int
    state: AttemptState
    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class BookedRefund:
    """What our books have of a refund."""

    key: str
    merchant_id: int
    live: bool
    payment_id: int
    state: MovementState
    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class BookedChargeback:
    """What our books have of a chargeback; `amount` is what is disputed, in `currency`, and what
    was taken and given back is in the payment's.
    """

    reference: str
    merchant_id: int
    live: bool
    payment_id: int
    amount: Decimal
    currency: str
    taken: Decimal
    returned: Decimal


Booked = BookedAttempt | BookedRefund | BookedChargeback


@dataclass(frozen=True, slots=True)
class Fee:
    """What a payment costs by an account's contract, in one currency."""

    currency: str
    rate: Decimal
    fixed: Decimal

    def of(self, amount: Decimal) -> Decimal:
        """The fee of an amount, rounded as money is."""
        exact = amount * self.rate / 100 + self.fixed
        return exact.quantize(Decimal(1).scaleb(-minor_digits(self.currency)), ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Books:
    """What our books have of some lines; `forgotten` are keys of test sides that were emptied."""

    attempts: Mapping[str, BookedAttempt] = field(default_factory=dict)
    refunds: Mapping[str, BookedRefund] = field(default_factory=dict)
    chargebacks: Mapping[str, BookedChargeback] = field(default_factory=dict)
    forgotten: frozenset[str] = frozenset()
    fees: Mapping[str, Fee] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a line says: what is booked of it, and what differs; `is_open` if nobody knows yet."""

    booked: Booked | None = None
    findings: tuple[Finding, ...] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class EnteredPayout:
    """A payout as it stands: its lines come to `total`, and some are in `others`."""

    reference: str
    at: datetime
    currency: str
    amount: Decimal
    state: PayoutState
    lines_read: bool
    total: Decimal
    lines: int
    others: list[str]


_WAIT = Verdict(is_open=True)


def judge(line: EnteredLine, books: Books, *, now: datetime) -> Verdict:
    """Compare a line with our books; `now` is real time, UTC."""
    match line.kind:
        case LineKind.CAPTURE:
            return _capture(line, books, now)
        case LineKind.REFUND | LineKind.REFUND_FAILURE:
            return _refund(line, books, now)
        case LineKind.CHARGEBACK | LineKind.CHARGEBACK_REVERSAL:
            return _chargeback(line, books, now)
        case LineKind.OTHER if not (line.purchase and not line.of_purchase) and line.is_ours is not False:
            return _found(
                line,
                None,
                FindingKind.UNEXPLAINED,
                noted("%(amount)s were moved as %(type)s", amount=_moved(line), type=line.type or "another"),
            )
    return Verdict(books.attempts.get(line.taken_under))


def _capture(line: EnteredLine, books: Books, now: datetime) -> Verdict:
    attempt = books.attempts.get(line.taken_under)
    if attempt is None:
        return _unknown(line, books, now)
    if attempt.state in _OPEN:
        return _WAIT
    if attempt.state is not AttemptState.APPROVED:
        reason = noted(
            "%(amount)s were taken, and its attempt is %(state)s in our books", amount=_moved(line), state=attempt.state
        )
        return _not_so(line, attempt, reason, now)
    findings = [*_sums(line, attempt, {attempt.amount}), *_fee(line, books)]
    return _verdict(line, attempt, findings)


def _refund(line: EnteredLine, books: Books, now: datetime) -> Verdict:
    key = line.refund_key if line.kind is LineKind.REFUND_FAILURE else line.key
    refund = books.refunds.get(key or key_by_hand(line.source))
    if refund is None:
        undone = books.attempts.get((key or "").removesuffix(_UNDONE)) if (key or "").endswith(_UNDONE) else None
        purchase = undone or books.attempts.get(line.taken_under)
        if purchase is not None and (undone or not line.of_purchase) and purchase.state is not AttemptState.APPROVED:
            return _WAIT if purchase.state in _OPEN else Verdict(purchase)
        if line.purchase and not line.of_source:
            # Made in the acquirer's own pages, and back before a comparison read of it.
            return Verdict(purchase)
        return _unknown(line, books, now)
    if refund.state is MovementState.PROCESSING:
        return _WAIT
    wanted = {LineKind.REFUND: MovementState.DONE, LineKind.REFUND_FAILURE: MovementState.FAILED}[line.kind]
    if refund.state not in (wanted, MovementState.FAILED):
        reason = noted(
            "%(amount)s were moved as %(kind)s, and it is %(state)s in our books",
            amount=_moved(line),
            kind=line.kind,
            state=refund.state,
        )
        return _not_so(line, refund, reason, now)
    return _verdict(line, refund, list(_sums(line, refund, {refund.amount})))


def _chargeback(line: EnteredLine, books: Books, now: datetime) -> Verdict:
    chargeback = books.chargebacks.get(line.source)
    if chargeback is None:
        return _unknown(line, books, now)
    sums = {chargeback.amount, chargeback.taken, chargeback.returned}
    return _verdict(line, chargeback, list(_sums(line, chargeback, sums)))


def _unknown(line: EnteredLine, books: Books, now: datetime) -> Verdict:
    """What a line is whose movement our books don't have."""
    if line.taken_under in books.forgotten or line.key in books.forgotten:
        return Verdict()
    purchase = books.attempts.get(line.taken_under)
    came_and_went = purchase is None and line.purchase and not line.of_purchase
    if line.is_ours is False or line.purchase_is_ours is False or came_and_went:
        return Verdict()
    if now < line.at + _PATIENCE:
        return _WAIT
    reason = noted(
        "%(amount)s were moved as %(kind)s (%(source)s), and our books don't know it",
        amount=_moved(line),
        kind=line.kind,
        source=line.source or line.purchase,
    )
    return _found(line, purchase, FindingKind.UNKNOWN_HERE, reason)


def _not_so(line: EnteredLine, booked: Booked, reason: str, now: datetime) -> Verdict:
    """What a line is that our books say otherwise of, unless all of its purchase went back."""
    if isinstance(booked, BookedAttempt) and line.purchase and not line.of_purchase:
        return Verdict(booked)
    if now < line.at + _PATIENCE:
        return _WAIT
    return _found(line, booked, FindingKind.STATE_DIFFERS, reason)


def _sums(line: EnteredLine, booked: Booked, sums: set[Decimal]) -> Iterator[tuple[FindingKind, str]]:
    amount, currency = line.moved
    if currency != booked.currency:
        yield (
            FindingKind.CURRENCY_DIFFERS,
            noted(
                "it is in %(currency)s, and in %(booked_currency)s in our books",
                currency=currency,
                booked_currency=booked.currency,
            ),
        )
    elif abs(amount) not in sums:
        ours = _money(booked.amount, currency)
        yield (
            FindingKind.AMOUNT_DIFFERS,
            noted("it is of %(amount)s, and of %(ours)s in our books", amount=_money(abs(amount), currency), ours=ours),
        )


def _fee(line: EnteredLine, books: Books) -> Iterator[tuple[FindingKind, str]]:
    """What differs of the fee, where the contract's is set; changing money costs what it costs."""
    fee = books.fees.get(line.currency)
    if fee is not None and line.of_amount is None and (due := fee.of(line.amount)) != line.fee:
        told, wanted = _money(line.fee, line.currency), _money(due, line.currency)
        yield (
            FindingKind.FEE_DIFFERS,
            noted("its fee is %(told)s, and %(wanted)s by the contract", told=told, wanted=wanted),
        )


def judge_payout(payout: EnteredPayout) -> tuple[Finding, ...]:
    """Compare a payout with its lines, where the acquirer has told them all."""
    found = []
    if payout.state is PayoutState.FAILED:
        found.append(
            (FindingKind.PAYOUT_FAILED, noted("%(amount)s came back", amount=_money(payout.amount, payout.currency)))
        )
    if payout.lines_read and payout.others:
        others = ", ".join(sorted(payout.others))
        found.append(
            (
                FindingKind.PAYOUT_CURRENCY,
                noted("it is in %(currency)s, and has lines in %(others)s", currency=payout.currency, others=others),
            )
        )
    if payout.lines_read and payout.total != payout.amount:
        paid, total = _money(payout.amount, payout.currency), _money(payout.total, payout.currency)
        reason = noted(
            "it is of %(paid)s, and the sum of its lines (%(lines)s) is %(total)s",
            paid=paid,
            lines=payout.lines,
            total=total,
        )
        found.append((FindingKind.SUM_DIFFERS, reason))
    return tuple(Finding(kind, payout.reference, reason, payout.reference) for kind, reason in found)


def _verdict(line: EnteredLine, booked: Booked, differing: list[tuple[FindingKind, str]]) -> Verdict:
    whose = (booked.merchant_id, booked.live, booked.payment_id)
    return Verdict(booked, tuple(Finding(kind, line.id, reason, line.payout, *whose) for kind, reason in differing))


def _found(line: EnteredLine, booked: Booked | None, kind: FindingKind, reason: str) -> Verdict:
    whose = (booked.merchant_id, booked.live, booked.payment_id) if booked else (None, None, None)
    return Verdict(booked, (Finding(kind, line.id, reason, line.payout, *whose),))


def _moved(line: EnteredLine) -> str:
    amount, currency = line.moved
    return _money(abs(amount), currency)


def _money(amount: Decimal, currency: str) -> str:
    return f"{written(amount, currency)} {currency}"
