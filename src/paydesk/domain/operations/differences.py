"""What an acquirer's own list and our books say otherwise of, and what was adopted of it,
as values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum

from paydesk.adapters.acquirers.listing import ListedPurchase, ListedRefund
from paydesk.core.storable import storable_text
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import LONGEST_REASON, Alarm
from paydesk.domain.payments.states import AttemptState, MovementKind, MovementState, PaymentState


class DifferenceKind(StrEnum):
    """Which of the two knows other than the other."""

    UNKNOWN_HERE = "unknown_here"
    UNKNOWN_THERE = "unknown_there"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """A purchase or refund of which the acquirer says other than our books;
    `reason` says what, in words.

    `why_kept` says why it can't be adopted, where that is known; `reason` ends with it.
    """

    acquirer: str
    what: str
    key: str
    reference: str
    reason: str
    kind: DifferenceKind
    merchant_id: int | None = None
    payment_id: int | None = None
    why_kept: str = ""

    @property
    def subject(self) -> str:
        """What it is called in the operator's list."""
        return subject_of(self.what, self.key or self.reference, self.acquirer)

    @property
    def fact(self) -> str:
        """What differs, whoever looked and whether anybody tried to adopt it."""
        return storable_text(self.reason.removesuffix(f": {self.why_kept}"), longest=LONGEST_REASON)

    @property
    def alarm(self) -> Alarm:
        """The line that it is in the operator's list."""
        details = {"reference": self.reference, "merchant": self.merchant_id, "payment": self.payment_id}
        details |= {"fact": self.fact} if self.why_kept else {}
        return Alarm(AlarmKind.not_reconciled, self.subject, self.reason, None, details)


Listed = ListedPurchase | ListedRefund
"""What an acquirer's list has."""


@dataclass(frozen=True, slots=True)
class BookedAttempt:
    """What our books have of a purchase; `holds` if its payment is this attempt's,
    `clock` is how far its shop's time is ahead.

    `given_back_otherwise`: its acquirer has it still, and its customer has the money in another
    way, as an operator said.
    """

    key: str
    merchant_id: int
    live: bool
    id: int
    payment_id: int
    state: AttemptState
    amount: Decimal
    currency: str
    holds: bool
    payment_state: PaymentState
    refunded: Decimal
    refunding: Decimal
    moving: bool
    clock: timedelta
    given_back_otherwise: bool = False


@dataclass(frozen=True, slots=True)
class BookedMovement:
    """What our books have of a capture, a void or a refund."""

    key: str
    merchant_id: int
    payment_id: int
    kind: MovementKind
    state: MovementState
    amount: Decimal
    currency: str


Booked = BookedAttempt | BookedMovement
"""What our books have of something listed."""


@dataclass(frozen=True, slots=True)
class Differing:
    """Something listed of which our books say otherwise; `booked` is what they have of it,
    or of a refund's purchase.
    """

    listed: Listed
    difference: Difference
    booked: Booked | None = None


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was written into our books because the acquirer knows it;
    `reason` says as what, in words.
    """

    acquirer: str
    what: str
    key: str
    reference: str
    reason: str
    merchant_id: int
    payment_id: int


@dataclass(frozen=True, slots=True)
class Ended:
    """What was ended at an acquirer because our books have forgotten it; `reason` says what that
    was, in words.
    """

    acquirer: str
    what: str
    key: str
    reference: str
    reason: str


@dataclass(slots=True)
class Reconciled:
    """What comparing with one acquirer's list came to.

    `foreign` were made by other software on the same account, `accepted` are differences that an
    operator took as they are.
    """

    acquirer: str
    purchases: int = 0
    refunds: int = 0
    foreign: int = 0
    adopted: list[Adopted] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    accepted: list[Difference] = field(default_factory=list)


def subject_of(what: str, key: str, acquirer: str) -> str:
    """What a purchase or refund at an acquirer is called."""
    return f"{what} {key} at {acquirer}"
