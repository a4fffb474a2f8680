"""Queueing mails to customers whose trial began without a card, and ends if they give none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import ASIDE, DueRow
from paydesk.domain.mail.queueing_due import Told, queue_all

queries = load_statements(__package__ or "", "asking_cards.sql")

USUAL_DAYS = 3
"""So many days before its trial ends a customer is asked for a card, where the merchant has chosen
no other number for announcing charges.
"""

_ASKING = "mail asking for the card of subscription"


async def ask_for_cards(database: Database, *, real_now: datetime, keep_test: bool, most: int = 500) -> int:
    """Queue the mails that ask for a card before a trial ends, by each side's own time.
    Moves no money.

    Returns how many were queued; `keep_test` as for `tell_events`, `real_now` is UTC.
    """

    async def tell(only: Sequence[int] | None) -> list[Told]:
        looked = await queries.ask_for_cards(
            database,
            real_now=real_now,
            keep_test=keep_test,
            usual_days=USUAL_DAYS,
            most=most,
            only=only,
            prefix=f"{_ASKING} ",
            aside_since=real_now - ASIDE,
        )
        return [record_of(Told, looked)]

    async def due() -> list[DueRow]:
        asked = queries.to_be_asked(database, real_now=real_now, usual_days=USUAL_DAYS)
        return await records_of(DueRow, asked)

    return await queue_all(database, tell, due, noun=_ASKING)
