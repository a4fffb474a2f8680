"""What a telling of a dispute means for the books: the next step to write down, or why none can be.
Pure, no I/O.

What the bank did is booked, whatever the payment's state: a step takes what was taken and is not
booked yet, or gives back what was returned, in the payment's currency. Sums only grow; a dispute
that is taken again was taken twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from enum import Enum

from paydesk.adapters.acquirers.disputes import Dispute, DisputeStatus
from paydesk.core.money import LARGEST, LEDGER_DIGITS, split_reversal
from paydesk.core.wording import noted
from paydesk.domain.chargebacks.states import AGAINST, ChargebackState
from paydesk.domain.payments.movement_effects import REVERSAL_STATUS, Reversible, funds_of, state_after
from paydesk.domain.payments.states import TAKEN, UNSETTLED, AttemptState, PaymentState

OPENED, REVERSED = "chargeback", "chargeback_reversed"
"""The events, beyond the three that are always there."""

ZERO = Decimal(0)
_LARGEST = 10 * LARGEST
"""More than any payment, of which a change of plan and items may be a part, besides its price."""
Entry = tuple[str, str, Decimal]
"""The kind of posting, an account, and what is debited to it (credits are negative)."""

_TAKES: Mapping[DisputeStatus, bool] = {
    DisputeStatus.INQUIRY: False,
    DisputeStatus.OPEN: True,
    DisputeStatus.WON: True,
    DisputeStatus.LOST: True,
    DisputeStatus.DROPPED: False,
}
"""Whether money moved, where the acquirer tells nothing but how it stands."""

_UNKNOWN = UNSETTLED


class ChargedBack(Reversible, frozen=True):
    """What a dispute is about, a row of `find_charged_back`:
    the payment, and the chargeback if it is known.

    `holds` says whether the disputed attempt is the one that holds the payment.
    """

    attempt_state: AttemptState
    holds: bool | None
    chargeback_fee: Decimal
    chargeback_id: int | None
    chargeback_payment_id: int | None
    chargeback_state: ChargebackState | None
    chargeback_amount: Decimal | None
    taken: Decimal | None
    returned: Decimal | None
    takes: int | None
    returns: int | None
    aside: bool | None
    told_at: datetime | None
    reference_id: int

    @property
    def in_books(self) -> InBooks:
        """What is booked of it."""
        sums = sums_of(self.chargeback_amount, self.taken, self.returned)
        return InBooks(self.currency, self.amount, self.charged_back, self.chargeback_state, sums, self.told_at)


class Verdict(Enum):
    """What a telling comes to that is no step."""

    KNOWN = "known"
    """Everything that it says is in the books."""
    DOUBTFUL = "doubtful"
    """It says less than is in the books, or is older:
    the acquirer has to be asked how the dispute stands."""


@dataclass(frozen=True, slots=True)
class Waits:
    """It can't be booked, for this reason; `soon` if that passes by itself."""

    reason: str
    soon: bool = False


OF_NOBODY = Waits(noted("no attempt to pay has the key that it names"))
"""Why one waits whose purchase nobody here has made: in another cell it may have been."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What is disputed, and was taken and returned in all, in the payment's currency."""

    amount: Decimal
    taken: Decimal
    returned: Decimal


@dataclass(frozen=True, slots=True)
class InBooks:
    """A payment, of which so much was charged back in all, and what is booked of one dispute: None
    if it is not known.
    """

    currency: str
    paid: Decimal
    charged_back: Decimal
    state: ChargebackState | None
    sums: Sums | None
    told_at: datetime | None


def sums_of(amount: Decimal | None, taken: Decimal | None, returned: Decimal | None) -> Sums | None:
    """What is booked of a chargeback, None if it is not known."""
    return None if amount is None or taken is None or returned is None else Sums(amount, taken, returned)


@dataclass(frozen=True, slots=True)
class ChargebackStep:
    """One step of a chargeback, as it is written over one revision of its payment.

    `sums` stand after it; `moved` is what it moves, and `event` tells of that (None: nothing
    moved); `payment_state` is None if the payment is not concerned.
    """

    state: ChargebackState
    sums: Sums
    event: str | None = None
    moved: Decimal = ZERO
    entries: tuple[Entry, ...] = ()
    fee: Decimal = ZERO
    charged_back: Decimal = ZERO
    pending_taken: Decimal = ZERO
    reserve_taken: Decimal = ZERO
    payment_state: PaymentState | None = None
    status: str = ""
    aside: bool = False
    reckoned: bool = False

    @property
    def against(self) -> bool:
        """Whether it ends the subscription behind the payment."""
        return self.state in AGAINST


def next_step(row: ChargedBack, told: Dispute, *, confirmed: bool) -> ChargebackStep | Waits | Verdict:
    """What is to be written next, `confirmed` if the acquirer was just asked for it."""
    problem = _why_not_yet(row) or _why_nonsense(row, told)
    if problem is not None:
        return problem
    books = row.in_books
    sums = _sums(books, told)
    state, before = _state(told, sums), books.sums
    if before is None:
        return _moving(row, Sums(sums.amount, ZERO, ZERO), sums, state, reckoned=_is_reckoned(row, told))
    grown = _grown(before, sums)
    if (state, grown) == (row.chargeback_state, before):
        return Verdict.KNOWN
    if not confirmed and (_is_older(books, told) or sums.taken < before.taken or sums.returned < before.returned):
        return Verdict.DOUBTFUL
    return _moving(row, before, grown, state)


def says_no_more(books: InBooks, told: Dispute) -> bool:
    """Whether the books have all that a telling says of a chargeback, or a later one."""
    if books.sums is None or _no_sum(told) is not None:
        return False
    sums = _sums(books, told)
    return _is_older(books, told) or (_state(told, sums), _grown(books.sums, sums)) == (books.state, books.sums)


def _is_older(books: InBooks, told: Dispute) -> bool:
    return books.told_at is not None and told.at < books.told_at


def _why_not_yet(row: ChargedBack) -> Waits | None:
    """Why a payment has to be waited for."""
    if row.chargeback_id is not None:
        return None
    if row.attempt_state in _UNKNOWN:
        return Waits(noted("the outcome of its payment is not known yet"), soon=True)
    if row.holds and row.state == PaymentState.AUTHORIZED:
        return Waits(noted("its payment is held and not captured, as far as we know"), soon=True)
    return None


def _why_nonsense(row: ChargedBack, told: Dispute) -> Waits | None:
    """What is wrong with a telling that no books can hold."""
    if (problem := _no_sum(told)) is not None:
        return problem
    if row.chargeback_payment_id not in (None, row.payment_id):
        return Waits(
            noted(
                "it was told of payment %(chargeback_payment_id)s before, and now of %(payment_id)s",
                chargeback_payment_id=row.chargeback_payment_id,
                payment_id=row.payment_id,
            )
        )
    if told.currency != row.currency and told.of_payment is None and row.amount == 0:
        return Waits(noted("it is in another currency than its payment, which cost nothing"))
    return None


def _no_sum(told: Dispute) -> Waits | None:
    """What is wrong with the sums of a telling, whatever it is about."""
    for name, amount in (("amount", told.amount), ("taken", told.taken or ZERO), ("returned", told.returned or ZERO)):
        if not amount.is_finite() or not 0 <= amount <= _LARGEST:
            return Waits(noted("its %(name)s %(amount)s is no sum of money", name=name, amount=amount))
    return Waits(noted("it is over nothing")) if told.amount == 0 else None


def _is_reckoned(row: ChargedBack, told: Dispute) -> bool:
    """Whether nobody told what the dispute is worth in the payment's currency."""
    return told.currency != row.currency and told.of_payment is None


def _sums(books: InBooks, told: Dispute) -> Sums:
    """What a telling says, in the payment's currency."""
    taken, returned = told.taken, told.returned
    if taken is None:
        taken = told.amount if _TAKES[told.status] else ZERO
    if returned is None:
        returned = taken if told.status is DisputeStatus.WON else ZERO
    whole = _worth(books, told)

    def part(amount: Decimal) -> Decimal:
        if amount == told.amount:
            return whole
        return (amount * whole / told.amount).quantize(LEDGER_DIGITS, ROUND_HALF_EVEN)

    return Sums(whole, part(taken), part(returned))


def _worth(books: InBooks, told: Dispute) -> Decimal:
    """The disputed amount in the payment's currency.

    Where the acquirer does not say it, the dispute is taken to be over all that no other dispute
    has taken: too much rather than too little is kept from being paid out, and an operator hears
    of it.
    """
    if told.currency == books.currency:
        return told.amount.quantize(LEDGER_DIGITS, ROUND_HALF_EVEN)
    if told.of_payment is not None:
        return told.of_payment.quantize(LEDGER_DIGITS, ROUND_HALF_EVEN)
    if books.sums is not None:
        return books.sums.amount
    left = books.paid - books.charged_back
    return left if left > 0 else books.paid


def _state(told: Dispute, sums: Sums) -> ChargebackState:
    """How it stands; money that is gone is neither an inquiry nor dropped."""
    state = ChargebackState(told.status)
    if sums.taken <= sums.returned:
        return state
    gone = {ChargebackState.INQUIRY: ChargebackState.OPEN, ChargebackState.DROPPED: ChargebackState.LOST}
    return gone.get(state, state)


def _grown(before: Sums, told: Sums) -> Sums:
    """Sums that never shrink and leave the bank with what it has by the telling."""
    taken, returned = max(before.taken, told.taken), max(before.returned, told.returned)
    missing = (told.taken - told.returned) - (taken - returned)
    return Sums(told.amount, taken + max(missing, ZERO), returned + max(-missing, ZERO))


def _moving(
    row: ChargedBack, before: Sums, after: Sums, state: ChargebackState, *, reckoned: bool = False
) -> ChargebackStep:
    """The step from one state of the sums towards another: what was taken comes first."""
    aside = row.aside if row.aside is not None else not (row.holds and row.state in TAKEN)
    if after.taken > before.taken:
        return _taking(row, before, after, state, aside=aside, reckoned=reckoned)
    if after.returned > before.returned:
        return _returning(row, before, after, state, aside=aside)
    return ChargebackStep(state, Sums(after.amount, before.taken, before.returned), aside=aside, reckoned=reckoned)


def _taking(
    row: ChargedBack, before: Sums, after: Sums, state: ChargebackState, *, aside: bool, reckoned: bool
) -> ChargebackStep:
    """The bank took money: out of reserve, pending, then available money,
    with a fee on top the first time.
    """
    moved = after.taken - before.taken
    fee = ZERO if row.takes else row.chargeback_fee
    charges = (("chargeback_fee", "available", fee), ("chargeback_fee", "fees", -fee)) if fee else ()
    step = ChargebackStep(
        state=state if after.returned == before.returned else ChargebackState.OPEN,
        sums=Sums(after.amount, after.taken, before.returned),
        event=OPENED,
        moved=moved,
        entries=(("chargeback", "acquirer", -moved), ("chargeback", "available", moved), *charges),
        fee=fee,
        status=REVERSAL_STATUS[PaymentState.CHARGED_BACK],
        aside=aside,
        reckoned=reckoned,
    )
    if aside:
        return step
    parts = split_reversal(funds_of(row), moved, fees_returned=False)
    return replace(
        step,
        entries=(
            ("chargeback", "acquirer", -moved),
            ("chargeback", "pending", parts.pending),
            ("chargeback", "available", parts.available),
            ("chargeback", "reserve", parts.reserve),
            *charges,
        ),
        charged_back=moved,
        pending_taken=parts.pending,
        reserve_taken=parts.reserve,
        payment_state=state_after(row.amount, row.refunded, row.charged_back + moved),
    )


def _returning(row: ChargedBack, before: Sums, after: Sums, state: ChargebackState, *, aside: bool) -> ChargebackStep:
    """The bank gave money back: it becomes available. The fee is kept."""
    moved = after.returned - before.returned
    stands = row.state
    if not aside:
        stands = state_after(row.amount, row.refunded, row.charged_back - moved)
    return ChargebackStep(
        state=state,
        sums=Sums(after.amount, before.taken, after.returned),
        event=REVERSED,
        moved=moved,
        entries=(("chargeback_reversal", "acquirer", moved), ("chargeback_reversal", "available", -moved)),
        charged_back=ZERO if aside else -moved,
        payment_state=None if aside else stands,
        status=REVERSAL_STATUS.get(stands, str(stands)),
        aside=aside,
    )
