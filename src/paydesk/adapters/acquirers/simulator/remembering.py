"""What the simulated bank knows again by an idempotency key, and for how long;
its list forgets nothing.

A key that is used anew after it was forgotten has another name in the record, the key and its
turn: `key~2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

import msgspec

from paydesk.adapters.acquirers.instruments import Instrument
from paydesk.adapters.acquirers.interface import (
    Approved,
    Challenged,
    Declined,
    Earlier,
    Finding,
    Outcome,
    Pending,
    Voided,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator.holding import hold_until
from paydesk.adapters.acquirers.simulator.purchase_state import Standing, Status, standing_of
from paydesk.adapters.acquirers.simulator.record import Kind, Operation, Record
from paydesk.adapters.acquirers.simulator.test_cards import NOT_COMING, ON_ITS_WAY

KEY_LIFETIME: Final = timedelta(hours=24)
"""How long the bank knows an idempotency key again, as the acquirers of this world do."""

TRANSFER_TAKES: Final = timedelta(days=2)
"""How long a transfer or a debit takes, if nobody lets the time pass before."""

_TURN: Final = "~"

_Answered = TypeVar("_Answered", Finding, Outcome)


def name_of(record: Record, key: str, *, now: datetime) -> str:
    """The name of a key in the record; a new one if the key was last used so long ago
    that it is forgotten.
    """
    turn, name = 1, key
    while (used := record.decided(name)) is not None and used.at < now - KEY_LIFETIME:
        turn += 1
        name = f"{key}{_TURN}{turn}"
    return name


def key_of(name: str) -> str:
    """The key behind a name in the record."""
    return name.partition(_TURN)[0]


def listed(record: Record, key: str) -> Standing | None:
    """How the purchase that was ever made under a key stands;
    of several one that took money, else the newest.
    """
    found, name = list[Standing](), key
    while (standing := standing_of(record.of_purchase(name))) is not None:
        found.insert(0, standing)
        name = f"{key}{_TURN}{len(found) + 1}"
    taken = [standing for standing in found if standing.status is Status.APPROVED]
    return next(iter(taken + found), None)


def look_back(record: Record, key: str) -> Earlier | None:
    """The purchase that was ever made under a key; Voided for a key that was only used up."""
    standing = listed(record, key)
    if standing is None:
        return None
    kept = record.mark(standing.key)
    finding = Voided() if standing.status is Status.BLOCKED else told(record, standing, standing.finding())
    return Earlier(finding, standing.amount, standing.currency, standing.capture, kept[1] if kept else None)


def told(record: Record, standing: Standing, answer: _Answered) -> _Answered:
    """An answer with until when its purchase was to be taken, and its hold ends, and what a page
    was paid with.
    """
    if isinstance(answer, Pending):
        return replace(answer, until=sure_by(record.of_purchase(standing.key)))
    if isinstance(answer, Approved) and (paid_with := record.instrument(standing.key)):
        instrument = msgspec.json.decode(paid_with, type=Instrument)
        answer = replace(answer, instrument=instrument, hold_until=hold_until(record, standing))
    kept = record.mark(standing.key)
    if kept is None or not isinstance(answer, Approved | Declined | Challenged):
        return answer
    return replace(answer, until=kept[0])


def left_for(done: Sequence[Operation]) -> Operation:
    """The transfer or debit that a purchase waits for, or waited for."""
    debits = {ON_ITS_WAY, NOT_COMING}
    return next(one for one in reversed(done) if one.kind is Kind.PAGE_PENDING or one.result in debits)


def sure_by(done: Sequence[Operation]) -> datetime:
    """When that is over, by the bank's own clock."""
    return left_for(done).at + TRANSFER_TAKES


def is_for_the_same(record: Record, name: str, purchase: Purchase) -> bool:
    """Whether a repeated purchase says that it is for the same as the first."""
    kept = record.mark(name)
    return kept is None or kept[1] == purchase.mark
