"""When a pingback that failed is sent again by itself, and how often."""

from __future__ import annotations

from datetime import timedelta

RESEND_INTERVAL = timedelta(minutes=30)
"""From a failed attempt to the next (interface.md §4.6)."""

MOST_ATTEMPTS = 11
"""The first attempt and up to 10 resends (interface.md §4.6)."""
