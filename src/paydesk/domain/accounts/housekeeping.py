"""Housekeeping: what is over and serves nobody is dropped. The audit log keeps what was done."""

from __future__ import annotations

from datetime import datetime, timedelta

from paydesk.database.pool import Database
from paydesk.domain.accounts.devices import forget_devices
from paydesk.domain.accounts.handing_over import forget_hand_overs
from paydesk.domain.accounts.lockout import forget_tries
from paydesk.domain.accounts.sessions import forget_sessions
from paydesk.domain.accounts.tokens import forget_tokens
from paydesk.domain.accounts.used_codes import forget_used_steps
from paydesk.domain.payments.refunding import forget_refund_days

REFUND_DAYS_KEPT = timedelta(days=2)
TRIES_KEPT = timedelta(days=2)
"""Longer than the day after which counting starts anew."""
HAND_OVERS_KEPT = timedelta(hours=1)
"""Longer than any clock may be off by which a token's age is told."""
LINKS_KEPT = timedelta(days=30)
DEVICES_KEPT = timedelta(days=400)
"""Longer than the year that a browser keeps its cookie."""


async def forget_past_entries(database: Database, *, now: datetime) -> None:
    """Drop sessions, links and tries whose time is over, browsers that are gone,
    and sums of past days.
    """
    await forget_sessions(database, now=now)
    await forget_tokens(database, before=now - LINKS_KEPT)
    await forget_hand_overs(database, before=now - HAND_OVERS_KEPT)
    await forget_used_steps(database, now=now)
    await forget_devices(database, before=now - DEVICES_KEPT)
    await forget_tries(database, before=now - TRIES_KEPT)
    await forget_refund_days(database, before=now - REFUND_DAYS_KEPT)
