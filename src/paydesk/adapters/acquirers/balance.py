"""What an acquirer tells of the balance that it keeps for us: each movement of it with the fee that
was kept of it, and the payouts from it to the operator's bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Protocol


class LineKind(StrEnum):
    """What moved a balance."""

    CAPTURE = "capture"
    REFUND = "refund"
    REFUND_FAILURE = "refund_failure"
    """A refund came back, since the customer's bank did not take it."""
    CHARGEBACK = "chargeback"
    CHARGEBACK_REVERSAL = "chargeback_reversal"
    FEE = "fee"
    """A fee of its own, of no payment or beside it."""
    PAYOUT = "payout"
    """Money left for the operator's bank."""
    PAYOUT_RETURN = "payout_return"
    """That came back: the bank did not take it."""
    OTHER = "other"


class PayoutState(StrEnum):
    """How a payout to the operator's bank stands."""

    ON_ITS_WAY = "on_its_way"
    ARRIVED = "arrived"
    FAILED = "failed"
    """The bank did not take it, or it was taken back; one that had arrived may fail yet."""


@dataclass(frozen=True, slots=True)
class BalanceLine:
    """A movement of the balance, named by the acquirer's own `id`, which it keeps for ever.

    `amount` is what the movement adds before fees, negative for what is taken, and `fee` what is
    kept of it (negative for what is given back), both in main units of `currency`, that of the
    balance. `of_amount` and `of_currency` are what it was where that is another currency, else None
    and "". `source` is the acquirer's reference of the refund, chargeback or payout that it is
    about, `purchase` that of the purchase. `key` is our key of the movement, `of_key` that of its
    purchase, empty as far as the acquirer does not tell. `is_ours` is false for what other software
    on the same account made, None if the acquirer does not tell; `deployment` is whose it is by its
    mark, empty if that is not told. `type` is its own word for it.
    """

    id: str
    kind: LineKind
    at: datetime
    amount: Decimal
    fee: Decimal
    currency: str
    type: str = ""
    source: str = ""
    purchase: str = ""
    key: str = ""
    of_key: str = ""
    of_amount: Decimal | None = None
    of_currency: str = ""
    is_ours: bool | None = None
    deployment: str = ""

    @property
    def net(self) -> Decimal:
        """What it adds to the balance in the end."""
        return self.amount - self.fee


@dataclass(frozen=True, slots=True)
class LinePage:
    """Movements; `next` is the cursor after them, empty on the last page."""

    lines: tuple[BalanceLine, ...]
    next: str


@dataclass(frozen=True, slots=True)
class BankPayout:
    """A payout to the operator's bank; `at` (UTC) is when it was made, `amount` is in main units of
    `currency`.

    `is_traced` says that the acquirer tells which lines it is of, and has all of them: `lines_of`
    may be asked. `bank_reference` is what the bank statement has, as far as that is told.
    """

    reference: str
    at: datetime
    amount: Decimal
    currency: str
    state: PayoutState
    is_traced: bool
    bank_reference: str = ""


@dataclass(frozen=True, slots=True)
class PayoutPage:
    """Payouts; `next` is the cursor after them, empty on the last page."""

    payouts: tuple[BankPayout, ...]
    next: str


class Balance(Protocol):
    """The balance that an acquirer keeps for us. No method moves money.

    Raises (all methods): OutcomeUnknown when no trustworthy answer came back; AcquirerRefused if it
    may not be asked.
    """

    async def lines(self, since: datetime, after: str) -> LinePage:
        """The movements made since a time (UTC), after a cursor, "" to begin; also those of other
        software on the same account.
        """

    async def payouts(self, since: datetime, after: str) -> PayoutPage:
        """The payouts made since a time (UTC), as they stand now, after a cursor, "" to begin."""

    async def lines_of(self, payout: str, after: str) -> LinePage:
        """The movements that a payout is of, after a cursor, "" to begin; its own line may be
        among them.
        """

    async def with_keys(self, lines: Sequence[BalanceLine]) -> Sequence[BalanceLine]:
        """The same lines with our keys, and whether they are ours, as far as the acquirer knows
        that and its list did not tell.
        """
