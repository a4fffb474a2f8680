"""The states of a chargeback and the one table of allowed transitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class ChargebackState(StrEnum):
    """Where a chargeback stands; what it took and returned is kept beside, since a bank moves money
    when it likes.
    """

    INQUIRY = "inquiry"
    """The bank asks what the charge was for; no money has moved, and the merchant may answer."""
    OPEN = "open"
    """The money is gone, or about to go; the merchant may give evidence."""
    WON = "won"
    """The bank believed the merchant, and the money comes back."""
    LOST = "lost"
    """The bank believed the customer; a part may have come back (partly won)."""
    DROPPED = "dropped"
    """It ended before any money moved."""


TRANSITIONS: Mapping[ChargebackState, frozenset[ChargebackState]] = {
    ChargebackState.INQUIRY: frozenset(
        {ChargebackState.OPEN, ChargebackState.WON, ChargebackState.LOST, ChargebackState.DROPPED}
    ),
    ChargebackState.OPEN: frozenset({ChargebackState.WON, ChargebackState.LOST, ChargebackState.DROPPED}),
    ChargebackState.WON: frozenset({ChargebackState.OPEN, ChargebackState.LOST}),
    ChargebackState.LOST: frozenset({ChargebackState.OPEN, ChargebackState.WON}),
    ChargebackState.DROPPED: frozenset({ChargebackState.OPEN, ChargebackState.LOST, ChargebackState.WON}),
}
"""What we know of; a bank that says otherwise is believed, since it has the money."""

AGAINST = frozenset({ChargebackState.OPEN, ChargebackState.LOST})
"""The customer wants out: a subscription behind it ends."""


class EvidenceState(StrEnum):
    """What became of handing the merchant's evidence to the bank."""

    NONE = ""
    """It was not tried; or older code did, then there is evidence all the same."""
    SENDING = "sending"
    """It is under way, or its process died over it."""
    SENT = "sent"
    REFUSED = "refused"
    """The bank did not take it; another may be sent."""
    UNKNOWN = "unknown"
    """The bank's answer was lost: it is asked before anything is sent again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How the merchant's answer to a chargeback stands; times are real, UTC, and so is `read_at`,
    the time of the reading.
    """

    respond_by: datetime | None
    evidence_draft: str
    evidence_state: EvidenceState
    evidence_key: str
    evidence_tried_at: datetime | None
    read_at: datetime

    @property
    def is_late(self) -> bool:
        """Whether the bank's time for it is over."""
        return self.respond_by is not None and self.respond_by <= self.read_at

    def is_unknown(self, patience: timedelta) -> bool:
        """Whether nobody knows if the bank has it: the answer was lost, or awaited for too long."""
        if self.evidence_state is EvidenceState.SENDING:
            return self.evidence_tried_at is None or self.evidence_tried_at + patience < self.read_at
        return self.evidence_state is EvidenceState.UNKNOWN
