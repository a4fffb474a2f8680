"""The test clock, as a team moves it, and its test side, as it is started anew."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from paydesk.core.errors import Conflict
from paydesk.core.periods import Period
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.statements import Connection
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.cells.fencing import Fenced
from paydesk.domain.merchants.heavy_work import Asker, Work, take_share
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.test_clock.advancing import MOST_SECONDS, Summary, advance
from paydesk.domain.test_clock.resetting import reset_test_side

PATIENCE = 20.0
"""Seconds that moving the clock waits, all in all, for outcomes that are unknown:
somebody looks at an empty page."""


async def move_clock(
    desk: Desk, sender: PingbackSender, session: Session, by: Period, *, client_address: str, now: datetime
) -> Summary:
    """Move the test side forward, as `advancing.advance` does. Moves (simulated) money.

    Raises: Forbidden; Conflict for the live side, which has no clock, and while somebody else moves
    it; Malformed; TooMany if too many clocks are being moved for them, or if there is more to do
    than there is time for, or the merchant goes to another cell meanwhile; Held.
    """
    merchant_id = _test_side(session)
    asker = Asker(client_address, Shop(merchant_id, live=False), session.person.id)
    share = await take_share(desk.database, Work.TEST_CLOCK, asker)

    async def note(connection: Connection, start: datetime, at: datetime) -> None:
        details = {"from": start, "to": at}
        await _write_down(connection, session, Action.test_clock_moved, details, now=now)

    async with share.held():
        return await advance(desk, sender, merchant_id, by, note=note, patience=PATIENCE, most_seconds=MOST_SECONDS)


async def start_anew(database: Database, session: Session, *, now: datetime) -> int:
    """Delete all test data and return the test clock to real time; returns how many rows went.

    Raises: Forbidden; Conflict for the live side, and while the test side is in use.
    """
    merchant_id = _test_side(session)
    rows = sum((await reset_test_side(database, merchant_id)).values())
    await _write_down(database, session, Action.test_side_reset, {"rows": rows}, now=now)
    return rows


async def _write_down(
    connection: Connection, session: Session, action: Action, details: Mapping[str, object], *, now: datetime
) -> None:
    """Have the merchant's log tell it; if that goes to another cell already, the person's own."""
    merchant_id = _test_side(session)
    try:
        await record(connection, session.actor, action, now=now, merchant_id=merchant_id, details=details)
    except Fenced:
        await record(connection, session.actor, action, now=now, subject=f"merchant {merchant_id}", details=details)


def _test_side(session: Session) -> int:
    shop = require(session, Permission.move_test_clock)
    if shop.live:
        raise Conflict(worded("live data has no test clock; switch to test mode"))
    return shop.merchant_id
