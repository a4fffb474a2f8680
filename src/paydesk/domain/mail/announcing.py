"""Queueing mails about charges of subscriptions that their customers are told of before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import ASIDE, DueRow, claimed

queries = load_statements(__package__ or "", "announcing.sql")

_NOTICE = "mail about the next charge of subscription"


@dataclass(frozen=True, slots=True)
class _Told:
    """How many mails a statement has queued, and of how many charges it has noted that."""

    mails: int
    seen: int


async def announce_charges(database: Database, *, real_now: datetime, keep_test: bool, most: int = 500) -> int:
    """Queue the mails of accounts that announce charges, by each side's own time. Moves no money.

    Returns how many were queued; `keep_test` as for `tell_events`, `real_now` is UTC.
    """

    async def tell(only: Sequence[int] | None) -> list[_Told]:
        looked = await queries.announce_charges(
            database,
            real_now=real_now,
            keep_test=keep_test,
            most=most,
            only=only,
            prefix=f"{_NOTICE} ",
            aside_since=real_now - ASIDE,
        )
        return [record_of(_Told, looked)]

    async def due() -> list[DueRow]:
        return await records_of(DueRow, queries.announcing(database, real_now=real_now))

    queued, seen = 0, 1
    while seen:
        told = await claimed(database, tell, due, _leave_to_the_alarm, noun=_NOTICE, doing=noted("it can't be queued"))
        queued, seen = queued + sum(one.mails for one in told), sum(one.seen for one in told)
    return queued


async def _leave_to_the_alarm(_: Sequence[DueRow]) -> None:
    """The statement leaves out what has an alarm that is younger than an hour."""
