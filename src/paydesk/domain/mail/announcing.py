"""Queueing mails about charges of subscriptions that their customers are told of before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import ASIDE, DueRow
from paydesk.domain.mail.queueing_due import Told, queue_all

queries = load_statements(__package__ or "", "announcing.sql")

_NOTICE = "mail about the next charge of subscription"


async def announce_charges(database: Database, *, real_now: datetime, keep_test: bool, most: int = 500) -> int:
    """Queue the mails of accounts that announce charges, by each side's own time. Moves no money.

    Returns how many were queued; `keep_test` as for `tell_events`, `real_now` is UTC.
    """

    async def tell(only: Sequence[int] | None) -> list[Told]:
        looked = await queries.announce_charges(
            database,
            real_now=real_now,
            keep_test=keep_test,
            most=most,
            only=only,
            prefix=f"{_NOTICE} ",
            aside_since=real_now - ASIDE,
        )
        return [record_of(Told, looked)]

    async def due() -> list[DueRow]:
        return await records_of(DueRow, queries.announcing(database, real_now=real_now))

    return await queue_all(database, tell, due, noun=_NOTICE)
