"""The states of a chargeback and the one table of allowed transitions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class ChargebackState(StrEnum):
    """Where a chargeback stands."""

    OPEN = "open"
    """The money is gone; the merchant may give evidence."""
    WON = "won"
    """The bank believed the merchant, and the money came back."""
    LOST = "lost"
    """It is final."""


TRANSITIONS: Mapping[ChargebackState, frozenset[ChargebackState]] = {
    ChargebackState.OPEN: frozenset({ChargebackState.WON, ChargebackState.LOST}),
    ChargebackState.WON: frozenset(),
    ChargebackState.LOST: frozenset(),
}
