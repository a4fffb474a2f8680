"""The states of a subscription, with the one table of allowed transitions (interface.md §7.1)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class SubscriptionState(StrEnum):
    """The `status` of a subscription."""

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


class CardChangeState(StrEnum):
    """Where the replacing of a subscription's card stands."""

    PROCESSING = "processing"
    """The intent is committed; the acquirer may or may not have checked the card."""
    CHALLENGED = "challenged"
    """The customer is asked to confirm with their bank (3-D Secure)."""
    APPROVED = "approved"
    DECLINED = "declined"
    FAILED = "failed"
    """The acquirer knows nothing of it, and can't accept it any more."""
    ABANDONED = "abandoned"
    """A challenge ended: the customer gave another card, or did not come back."""


CARD_CHANGE_TRANSITIONS: Mapping[CardChangeState, frozenset[CardChangeState]] = {
    CardChangeState.PROCESSING: frozenset(
        {CardChangeState.APPROVED, CardChangeState.DECLINED, CardChangeState.CHALLENGED, CardChangeState.FAILED}
    ),
    CardChangeState.CHALLENGED: frozenset(
        {CardChangeState.APPROVED, CardChangeState.DECLINED, CardChangeState.ABANDONED}
    ),
    CardChangeState.APPROVED: frozenset(),
    CardChangeState.DECLINED: frozenset(),
    CardChangeState.FAILED: frozenset(),
    CardChangeState.ABANDONED: frozenset(),
}

OPEN_CHANGES = frozenset({CardChangeState.PROCESSING, CardChangeState.CHALLENGED})
