"""Housekeeping: what is over and serves nobody is dropped. The audit log keeps what was done."""

from __future__ import annotations

from datetime import datetime, timedelta

from paydesk.database.pool import Database
from paydesk.domain.accounts.pausing import forget_tries
from paydesk.domain.accounts.sessions import forget_sessions
from paydesk.domain.accounts.tokens import forget_tokens

TRIES_KEPT = timedelta(days=2)
"""Longer than the day after which counting starts anew."""
LINKS_KEPT = timedelta(days=30)


async def forget_past_entries(database: Database, *, now: datetime) -> None:
    """Drop sessions whose time is over, links that expired, and tries that no longer count."""
    await forget_sessions(database, now=now)
    await forget_tokens(database, before=now - LINKS_KEPT)
    await forget_tries(database, before=now - TRIES_KEPT)
