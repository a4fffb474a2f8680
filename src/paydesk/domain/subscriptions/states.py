"""The states of a subscription, with the one table of allowed transitions (spec: States and transitions)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class SubscriptionState(StrEnum):
    """The spec's `status`."""

    TRIAL = "Trial"
    """The trial runs; the first regular charge ends it."""
    ACTIVE = "Active"
    CANCELLED = "Cancelled"
    """No charge ever again: cancelled by somebody, or stopped after its retries failed."""
    EXPIRED = "Expired"
    """All agreed payments were made and the last period is over."""


SUBSCRIPTION_TRANSITIONS: Mapping[SubscriptionState, frozenset[SubscriptionState]] = {
    SubscriptionState.TRIAL: frozenset({SubscriptionState.ACTIVE, SubscriptionState.CANCELLED}),
    SubscriptionState.ACTIVE: frozenset({SubscriptionState.CANCELLED, SubscriptionState.EXPIRED}),
    SubscriptionState.CANCELLED: frozenset(),
    SubscriptionState.EXPIRED: frozenset(),
}

RUNNING = frozenset({SubscriptionState.TRIAL, SubscriptionState.ACTIVE})
