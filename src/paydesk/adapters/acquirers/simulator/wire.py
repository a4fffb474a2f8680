"""How the simulated bank and its remote client write questions and answers as JSON;
amounts are strings.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final

import msgspec

from paydesk.adapters.acquirers.disputes import Dispute, EvidenceKind
from paydesk.adapters.acquirers.instruments import Instrument
from paydesk.adapters.acquirers.interface import (
    Approved,
    Captured,
    Challenged,
    Declined,
    DeclineReason,
    Earlier,
    Finding,
    Moved,
    MovementFinding,
    NothingHeld,
    Pending,
    Refused,
    Release,
    UnderWay,
    Voided,
)
from paydesk.adapters.acquirers.marks import Mark


class Movement(msgspec.Struct, frozen=True):
    """A capture or a refund; `number` is what the caller calls a refund."""

    key: str
    reference: str
    amount: Decimal
    currency: str
    number: int = 0


class AboutKey(msgspec.Struct, frozen=True):
    """A question about the purchase under `of_key`;
    `key` is the question's own where it moves money.
    """

    of_key: str
    key: str = ""


class AboutPage(msgspec.Struct, frozen=True):
    """A question about a page."""

    reference: str


class AboutKept(msgspec.Struct, frozen=True):
    """An instrument that is kept."""

    reference: str


class After(msgspec.Struct, frozen=True):
    """A question for the disputes after a cursor."""

    cursor: str


class Since(msgspec.Struct, frozen=True):
    """A question for what was made since a time, after a cursor."""

    since: datetime
    cursor: str


class AboutPayout(msgspec.Struct, frozen=True):
    """A question for the movements of a payout, after a cursor."""

    payout: str
    cursor: str


class AboutDispute(msgspec.Struct, frozen=True):
    """A question for one dispute."""

    reference: str


class DisputeAnswer(msgspec.Struct, frozen=True):
    """How a dispute stands, if there is one."""

    dispute: Dispute | None


class Claim(msgspec.Struct, frozen=True):
    """A customer's wish to have the money of the purchase under `of_key` back."""

    of_key: str
    reason: str


class Decided(msgspec.Struct, frozen=True):
    """The end of a dispute."""

    reference: str
    won: bool


class Evidence(msgspec.Struct, frozen=True):
    """The merchant's side of a dispute."""

    reference: str
    text: str
    files: dict[EvidenceKind, str] = {}


class Failure(msgspec.Struct, frozen=True):
    """The end of a refund that the customer's bank did not take."""

    reference: str
    reason: str


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the bank says: one of the interface's findings, or the reference of a movement
    or dispute.
    """

    kind: str
    reference: str = ""
    network_reference: str = ""
    reason: DeclineReason | None = None
    why: str = ""
    amount: Decimal | None = None
    until: datetime | None = None
    instrument: Instrument | None = None
    hold_until: datetime | None = None


class EarlierAnswer(msgspec.Struct, frozen=True):
    """The purchase that was made under a key, if there is one; `finding` says how it stands."""

    finding: Answer | None = None
    amount: Decimal = Decimal(0)
    currency: str = ""
    capture: bool = False
    mark: Mark | None = None


class Refusal(msgspec.Struct, frozen=True):
    """Why the bank did not do what was asked (HTTP status 409), whether its key stands
    for something else, and whether it knows no such page.
    """

    refused: str
    key_used: bool = False
    no_page: bool = False


DONE: Final = "done"


def answer_of(finding: Release) -> Answer:
    """Write a finding down; the address of a challenge page is left to the reader,
    who knows where the bank is.
    """
    match finding:
        case Approved(reference, network_reference, until, instrument, held):
            return Answer("approved", reference, network_reference, until=until, instrument=instrument, hold_until=held)
        case Captured(reference, amount):
            return Answer("captured", reference, amount=amount)
        case Declined(reason, until):
            return Answer("declined", reason=reason, until=until)
        case Challenged(reference, _, until):
            return Answer("challenged", reference, until=until)
        case Pending(reference, until):
            return Answer("pending", reference, until=until)
        case Voided():
            return Answer("voided")
        case NothingHeld():
            return Answer("not_found")
        case UnderWay():
            return Answer("under_way")


def finding_of(answer: Answer) -> Finding:
    """Read a finding back. Raises: ValueError if it is none."""
    match answer:
        case Answer(kind="approved"):
            return Approved(
                answer.reference, answer.network_reference, answer.until, answer.instrument, answer.hold_until
            )
        case Answer(kind="declined", reason=DeclineReason() as reason):
            return Declined(reason, answer.until)
        case Answer(kind="challenged"):
            return Challenged(answer.reference, url="", until=answer.until)
        case Answer(kind="pending"):
            return Pending(answer.reference, answer.until)
        case Answer(kind="voided"):
            return Voided()
        case Answer(kind="not_found"):
            return NothingHeld()
    raise ValueError(f'"{answer.kind}" is not an answer of the bank')


def release_of(answer: Answer) -> Release:
    """Read back what a void came to. Raises: ValueError if it is none of that."""
    match answer:
        case Answer(kind="captured", amount=Decimal() as amount):
            return Captured(answer.reference, amount)
        case Answer(kind="under_way"):
            return UnderWay()
    return finding_of(answer)


def earlier_answer_of(earlier: Earlier | None) -> EarlierAnswer:
    """Write down what was found of older times."""
    if earlier is None:
        return EarlierAnswer()
    finding = answer_of(earlier.finding)
    return EarlierAnswer(finding, earlier.amount, earlier.currency, earlier.capture, earlier.mark)


def earlier_of(answer: EarlierAnswer) -> Earlier | None:
    """Read back what was found of older times. Raises: ValueError if it is none of that."""
    if answer.finding is None:
        return None
    return Earlier(finding_of(answer.finding), answer.amount, answer.currency, answer.capture, answer.mark)


def movement_answer_of(finding: MovementFinding) -> Answer:
    """Write down what became of a capture, void or refund."""
    match finding:
        case Moved(reference, amount):
            return Answer("moved", reference, amount=amount)
        case Refused(reason):
            return Answer("refused", why=reason)
        case NothingHeld():
            return Answer("not_found")
        case UnderWay():
            return Answer("under_way")


def movement_finding_of(answer: Answer) -> MovementFinding:
    """Read back what became of a capture, void or refund.

    Raises: ValueError if it is none of that.
    """
    match answer:
        case Answer(kind="moved"):
            return Moved(answer.reference, answer.amount)
        case Answer(kind="refused"):
            return Refused(answer.why)
        case Answer(kind="not_found"):
            return NothingHeld()
        case Answer(kind="under_way"):
            return UnderWay()
    raise ValueError(f'"{answer.kind}" is not an answer of the bank')
