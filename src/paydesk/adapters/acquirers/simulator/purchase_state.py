"""How a purchase stands at the simulated bank: a pure reading of the record's operations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Final, Literal

from paydesk.adapters.acquirers.disputes import DisputeStatus
from paydesk.adapters.acquirers.interface import (
    Approved,
    Challenged,
    Declined,
    DeclineReason,
    Finding,
    NothingHeld,
    Outcome,
    Pending,
    Voided,
)
from paydesk.adapters.acquirers.simulator.record import MARK_LENGTH, Kind, Operation
from paydesk.adapters.acquirers.simulator.test_cards import APPROVED, CHALLENGED, NOT_COMING, ON_ITS_WAY

Decision = Literal["approve", "reject", "close"]
"""What a customer may press on a challenge's page."""
_OPENING: Final = frozenset({Kind.AUTHORIZE, Kind.CHARGE, Kind.CHALLENGE, Kind.PAGE})


class Status(StrEnum):
    """The states of a purchase; BLOCKED is a key that was voided before any purchase arrived
    under it.
    """

    BLOCKED = "blocked"
    CHALLENGED = "challenged"
    PENDING = "pending"
    APPROVED = "approved"
    DECLINED = "declined"
    VOIDED = "voided"


@dataclass(frozen=True, slots=True)
class Standing:
    """One purchase as it is now; amounts are in the main unit of `currency`.

    `charged_back` is what a dispute took that is open or lost; `dispute` names the latest one.
    """

    key: str
    status: Status
    amount: Decimal = Decimal(0)
    currency: str = ""
    last4: str = ""
    card_token: str = ""
    capture: bool = False
    reference: str = ""
    reason: DeclineReason | None = None
    captured: Decimal = Decimal(0)
    refunded: Decimal = Decimal(0)
    charged_back: Decimal = Decimal(0)
    dispute: str = ""
    dispute_status: DisputeStatus | None = None
    first_answer: Outcome | None = None

    @property
    def net(self) -> Decimal:
        """The money that the customer is rid of."""
        return self.captured - self.refunded - self.charged_back

    @property
    def held(self) -> Decimal:
        """The money that is authorized and not yet captured."""
        waiting = self.status is Status.APPROVED and not self.captured
        return self.amount if waiting else Decimal(0)

    def is_for(self, asked: Operation) -> bool:
        """Whether a repeated key asks for what was decided under it."""
        before = (self.amount, self.currency, self.card_token[:MARK_LENGTH], self.capture)
        return before == (asked.amount, asked.currency, asked.card_token, asked.capture)

    def finding(self) -> Finding:
        """What the bank answers when asked about the key;
        the address of a challenge page is added outside.
        """
        if self.reason is not None:
            return Declined(self.reason)
        if self.status is Status.APPROVED:
            return approval(self.reference)
        if self.status is Status.CHALLENGED:
            return Challenged(self.reference, url="")
        if self.status is Status.PENDING:
            return Pending(self.reference)
        return Voided() if self.status is Status.VOIDED else NothingHeld()


@dataclass(frozen=True, slots=True)
class Challenge:
    """What the challenge page shows: the purchase, where it leads back to, and how it stands."""

    reference: str
    amount: Decimal
    currency: str
    last4: str
    return_url: str
    status: Status


def approval(reference: str) -> Approved:
    """The answer to an approved purchase."""
    return Approved(reference, network_reference=f"network_{reference}")


def standing_of(operations: Iterable[Operation]) -> Standing | None:
    """How a purchase stands after `operations`, all of the same `of_key`, in order;
    None if it never was.
    """
    standing: Standing | None = None
    for operation in operations:
        standing = _after(standing, operation)
    return standing


def _after(standing: Standing | None, operation: Operation) -> Standing | None:
    """The standing after one more operation."""
    if operation.kind in _OPENING:
        return _opened(operation)
    if operation.kind is Kind.REFUSE:
        return _after_refusal(standing, operation)
    if standing is None:
        return Standing(operation.of_key or "", Status.BLOCKED) if operation.kind is Kind.VOID else None
    match operation.kind:
        case Kind.APPROVE:
            taken = standing.amount if standing.capture else Decimal(0)
            last4 = operation.last4 or standing.last4
            return replace(standing, status=Status.APPROVED, reference=operation.reference, captured=taken, last4=last4)
        case Kind.PAGE_PENDING | Kind.REJECT:
            return _after_customer(standing, operation)
        case Kind.CAPTURE:
            return replace(standing, captured=operation.amount)
        case Kind.REFUND:
            return replace(standing, refunded=standing.refunded + operation.amount)
        case Kind.REFUND_FAILED:
            return replace(standing, refunded=standing.refunded - operation.amount)
        case Kind.VOID | Kind.END if standing.status in {Status.APPROVED, Status.CHALLENGED, Status.PENDING}:
            return replace(standing, status=Status.VOIDED, captured=Decimal(0))
    return _after_dispute(standing, operation)


def _after_customer(standing: Standing, operation: Operation) -> Standing:
    """The standing after its customer chose a transfer, or they or their account said no."""
    if operation.kind is Kind.PAGE_PENDING:
        return replace(standing, status=Status.PENDING, reference=operation.reference)
    return replace(standing, status=Status.DECLINED, reason=DeclineReason(operation.result))


def _after_dispute(standing: Standing, operation: Operation) -> Standing:
    """The standing after an opening or ending of a dispute;
    evidence and anything else leave it as it is.
    """
    match operation.kind:
        case Kind.DISPUTE:
            taken, reference = operation.amount, operation.reference
            return replace(standing, charged_back=taken, dispute=reference, dispute_status=DisputeStatus.OPEN)
        case Kind.DISPUTE_WON:
            return replace(standing, charged_back=Decimal(0), dispute_status=DisputeStatus.WON)
        case Kind.DISPUTE_LOST:
            return replace(standing, dispute_status=DisputeStatus.LOST)
    return standing


def _opened(operation: Operation) -> Standing:
    """The standing of a purchase that was just decided."""
    opened = Standing(
        key=operation.of_key or "",
        status=Status.APPROVED,
        amount=operation.amount,
        currency=operation.currency,
        last4=operation.last4,
        card_token=operation.card_token,
        capture=operation.capture,
        reference=operation.reference,
    )
    if operation.result == APPROVED:
        taken = operation.amount if operation.capture else Decimal(0)
        return replace(opened, captured=taken, first_answer=approval(operation.reference))
    if operation.result == CHALLENGED:
        challenged = Challenged(operation.reference, url="")
        return replace(opened, status=Status.CHALLENGED, first_answer=challenged)
    if operation.result in {ON_ITS_WAY, NOT_COMING}:
        return replace(opened, status=Status.PENDING, first_answer=Pending(operation.reference))
    reason = DeclineReason(operation.result)
    return replace(opened, status=Status.DECLINED, reason=reason, first_answer=Declined(reason))


def _after_refusal(standing: Standing | None, operation: Operation) -> Standing | None:
    """A purchase that came too late is declined for good; any other refusal changes nothing."""
    undecided = standing is None or standing.status is Status.BLOCKED
    if operation.result == DeclineReason.TOO_LATE and undecided:
        return _opened(operation)
    return standing
