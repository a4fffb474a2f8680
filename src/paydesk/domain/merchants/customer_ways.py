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
