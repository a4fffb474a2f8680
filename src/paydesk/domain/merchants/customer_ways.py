"""What a merchant lets customers do with a subscription on their page."""

from __future__ import annotations

from enum import StrEnum


class PortalCancels(StrEnum):
    """When a subscription ends that its customer cancels on its page: its merchant decides."""

    NOW = "now"
    PERIOD_END = "period_end"
    """With the period that is paid; the customer may take that back until then."""
    BOTH = "both"
    """As the customer chooses."""


class PortalPlans(StrEnum):
    """When a subscription is of the plan that its customer changes to on its page."""

    PERIOD_END = "period_end"
    """With the next period; the customer may take that back until then."""
    NOW = "now"
    """At once: what it costs more is charged, what it costs less lowers the next charges."""
    BOTH = "both"
    """As the customer chooses."""
