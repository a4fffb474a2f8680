"""The test-mode switch, which decides for everybody:
whether forms at the live base count as test.
"""

from __future__ import annotations

from datetime import datetime

from paydesk.core.errors import Conflict
from paydesk.core.wording import worded
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.merchants.merchant import change_merchant


async def switch_test_mode(gate: Gate, session: Session, *, on: bool, now: datetime) -> None:
    """Take the forms of the merchant that is looked at as test, or as live. Moves no money itself.

    Raises: Forbidden; Conflict if the merchant has not gone live, so that its forms count as
        test anyway.
    """
    merchant_id = require(session, Permission.toggle_test_mode).merchant_id
    if session.went_live_at is None:
        raise Conflict(worded("this merchant has not gone live yet, so its forms count as test"))
    async with gate.database.acquire() as connection, connection.transaction():
        await change_merchant(connection, merchant_id, test_mode=on)
        details = {"test_mode": on}
        await record(
            connection, session.actor, Action.test_mode_changed, now=now, merchant_id=merchant_id, details=details
        )
