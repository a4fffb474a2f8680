"""The states of a chargeback and the one table of allowed transitions."""

from __future__ import annotations

from collections.abc import Mapping
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
