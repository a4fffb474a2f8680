"""A change of a subscription, mostly one that comes later: what, when, and by whose wish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from paydesk.domain.subscriptions.subscription_terms import Package

NO_CARD: Final = "no_card"
"""By whom a subscription ends that began without a card, and has none when its trial is over."""


class ChangeType(StrEnum):
    """What becomes of a subscription once a change is due."""

    CANCEL = "cancel"
    """It ends with the period that is paid."""
    PLAN = "change"
    """Its next period is of another package, or at another price, or it is at once."""
    RESUME = "resume"
    """It is paused, and goes on then."""


class ChangeState(StrEnum):
    """Where a change stands."""

    OPEN = "open"
    DONE = "done"
    UNDONE = "undone"
    REPLACED = "replaced"
    """Another one came in its place."""
    OVERTAKEN = "overtaken"
    """The subscription ended another way before; the schema's trigger writes it."""


CHANGE_TRANSITIONS: Mapping[ChangeState, frozenset[ChangeState]] = {
    ChangeState.OPEN: frozenset(ChangeState) - {ChangeState.OPEN},
    **dict.fromkeys(frozenset(ChangeState) - {ChangeState.OPEN}, frozenset()),
}


@dataclass(frozen=True, slots=True)
class Change:
    """An open change: `due_at` is when it is carried out (UTC), None if only somebody's wish does;
    it holds since `since`. `package` is what it brings, if that is another plan.
    """

    type: ChangeType
    due_at: datetime | None
    since: datetime
    by: str
    package: Package | None = None
