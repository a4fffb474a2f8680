"""Queueing mails about cards that expire before a subscription's next charges."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import ASIDE, DueRow
from paydesk.domain.mail.queueing_due import Told, queue_all

queries = load_statements(__package__ or "", "expiring.sql")

FIRST_NOTICE, LAST_NOTICE = 30, 7
"""Days before the end of a card's last month."""

_NOTICE = "mail about the card of subscription"


async def tell_expiring(database: Database, *, real_now: datetime, keep_test: bool, most: int = 500) -> int:
    """Queue the mails about cards that expire soon, by each side's own time. Moves no money.

    Returns how many were queued; `keep_test` as for `tell_events`, `real_now` is UTC.
    """
    asked = {"real_now": real_now, "first_days": FIRST_NOTICE}

    async def tell(only: Sequence[int] | None) -> list[Told]:
        looked = await queries.tell_expiring(
            database,
            **asked,
            keep_test=keep_test,
            last_days=LAST_NOTICE,
            most=most,
            only=only,
            prefix=f"{_NOTICE} ",
            aside_since=real_now - ASIDE,
        )
        return [record_of(Told, looked)]

    async def due() -> list[DueRow]:
        return await records_of(DueRow, queries.expiring(database, **asked))

    return await queue_all(database, tell, due, noun=_NOTICE)
