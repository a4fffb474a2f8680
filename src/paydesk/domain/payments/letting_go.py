"""What acquirers keep of instruments whose customers were erased or had them removed, or that
nothing is charged by any more.

They are told to let go of it until they have. Moves no money.

The intent stands in the transaction that forgets the instrument here; its row goes once the
acquirer has confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.letting_go import release_kept
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

queries = load_statements(__package__ or "", "letting_go.sql")
log = structlog.get_logger()

LEASE: Final = timedelta(minutes=2)
FIRST_PAUSE: Final = timedelta(minutes=1)
LONGEST_PAUSE: Final = timedelta(hours=6)
"""Pauses between tries double up to this one."""

ALARMING: Final = 8
"""After so many tries, some two hours, a person is told."""

MOST_UNNEEDED: Final = 1000


@dataclass(frozen=True, slots=True)
class _Release:
    """An instrument that an acquirer is to let go of."""

    merchant_id: int
    live: bool
    acquirer: str
    reference: str
    tries: int

    @property
    def shop(self) -> Shop:
        """Whose customer's it was."""
        return Shop(self.merchant_id, self.live)

    @property
    def names(self) -> dict[str, object]:
        """Which it is, as parameters."""
        return {
            "merchant_id": self.merchant_id,
            "live": self.live,
            "acquirer": self.acquirer,
            "reference": self.reference,
        }

    @property
    def subject(self) -> str:
        """What it is called in the operator's list."""
        return f"{self.reference} at {self.acquirer}"


async def ask(
    connection: Connection,
    shop: Shop,
    *,
    cards: Sequence[int],
    attempts: Sequence[int],
    subscriptions: Sequence[int],
    changes: Sequence[int],
) -> None:
    """Have acquirers let go of all that they keep for these, within the transaction that erases
    them here, before it does.
    """
    await queries.ask(
        connection,
        merchant_id=shop.merchant_id,
        live=shop.live,
        cards=cards,
        attempts=attempts,
        subscriptions=subscriptions,
        changes=changes,
    )


async def ask_unneeded(database: Database, *, now: datetime) -> int:
    """Have acquirers let go of cards that nothing is charged by any more: those that were replaced,
    and those of subscriptions that have ended; how many. Now is real time, UTC.

    A typed card that was replaced is asked for as it is.
    """
    kept = int(await queries.ask_unneeded(database, now=now, most=MOST_UNNEEDED))
    return kept + int(await queries.ask_ended(database, most=MOST_UNNEEDED))


async def let_go_due(desk: Desk, *, now: datetime, most: int = 50) -> int:
    """Tell acquirers of what is due, all at once; how many. `now` is real time, UTC."""
    due = await records_of(_Release, queries.claim_releases(desk.database, lease=LEASE, most=most))
    await asyncio.gather(*(_tell(desk, one, now=now) for one in due))
    return len(due)


async def _tell(desk: Desk, one: _Release, *, now: datetime) -> None:
    try:
        await release_kept(desk.acquirers[one.acquirer], one.reference)
    except (AcquirerRefused, OutcomeUnknown) as error:
        await _later(desk, one, str(error), now=now)
    except Exception as error:
        log.exception("letting go of an instrument failed", acquirer=one.acquirer)
        await _later(desk, one, type(error).__name__, now=now)
    else:
        await queries.release_made(desk.database, **one.names)
        if one.tries > ALARMING:
            by = noted("the acquirer has let go of it")
            await settle_alarms(desk.database, AlarmKind.still_kept, [one.subject], shop=one.shop, by=by, now=now)


async def _later(desk: Desk, one: _Release, why: str, *, now: datetime) -> None:
    pause = min(FIRST_PAUSE * 2 ** min(one.tries - 1, 20), LONGEST_PAUSE)
    await queries.release_later(desk.database, **one.names, pause=pause)
    if one.tries >= ALARMING:
        await raise_alarms(desk.database, [Alarm(AlarmKind.still_kept, one.subject, why, one.shop)], now=now)
