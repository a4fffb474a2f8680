"""Writing down that money is on its way by a slow method: its bank says in some days whether it
pays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from paydesk.adapters.acquirers.interface import Pending
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.outcomes import PAGE_LOOK, name_instruments
from paydesk.domain.subscriptions.long_charges import note_long_charges

hosted = load_statements(__package__ or "", "hosting.sql")

LONGEST_WAIT = timedelta(days=14)
"""How long a slow method may take of which its acquirer does not say how long it takes."""

PENDING_LOOK = timedelta(hours=1)
"""How often an acquirer is asked for a pending payment at most, once it has been so for two hours,
and for a renewal from the beginning: nobody waits for that.
"""


@dataclass(frozen=True, slots=True)
class OnItsWay:
    """An attempt of which the acquirer says that its money is not sure yet; it is asked again
    after `look_in`.
    """

    shop: Shop
    attempt_id: int
    answer: Pending
    look_in: timedelta = PAGE_LOOK


class _Moved(msgspec.Struct, frozen=True):
    merchant_id: int
    live: bool
    attempt_id: int


async def record_pending(
    database: Database | Connection, on_their_way: Sequence[OnItsWay], *, now: datetime
) -> set[int]:
    """Record attempts by slow methods; returns those that moved, the others have moved on.
    Moves no money.

    `now` is real time (UTC): the janitor asks the acquirer by it.
    """
    await name_instruments(database, [(one.shop, one.attempt_id, one.answer) for one in on_their_way])
    moved = hosted.record_pending(
        database,
        merchant_ids=[one.shop.merchant_id for one in on_their_way],
        lives=[one.shop.live for one in on_their_way],
        attempt_ids=[one.attempt_id for one in on_their_way],
        acquirer_references=[one.answer.reference for one in on_their_way],
        untils=[one.answer.until or now + LONGEST_WAIT for one in on_their_way],
        lookup_ats=[now + one.look_in for one in on_their_way],
    )
    recorded = {row.attempt_id for row in await records_of(_Moved, moved)}
    await note_long_charges(database, [(one.shop, one.attempt_id) for one in on_their_way])
    return recorded
