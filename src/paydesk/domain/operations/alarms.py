"""The list of alarms over all merchants, and the hand that settles one. Moves no money."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from paydesk.core.errors import NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "alarms.sql")


@dataclass(frozen=True, slots=True)
class ListedAlarm:
    """An alarm as an operator reads it: raised `times` times, first and last at real times (UTC).

    `merchant_id` is 0, without a name, where none is concerned. `kind` may be of another release.
    """

    merchant_id: int
    merchant_name: str | None
    live: bool
    id: int
    kind: str
    subject: str
    reason: str
    details: Mapping[str, object]
    raised_at: datetime
    last_at: datetime
    times: int
    settled_at: datetime | None
    settled_by: str | None
    accepted_at: datetime | None
    accepted_by: str
    accepted_why: str


@dataclass(frozen=True, slots=True)
class _Settled:
    """What an alarm was about."""

    kind: str
    subject: str


async def list_alarms(
    database: Database, page: Page, *, kind: AlarmKind | None = None, settled: bool = False, accepted: bool = False
) -> list[ListedAlarm]:
    """A page of the open alarms, newest first; of those that are settled, last settled first;
    or of those that were accepted and stand so still, last accepted first.
    """
    statement = queries.open_alarms
    if settled or accepted:
        statement = queries.settled_alarms if settled else queries.accepted_alarms
    return await records_of(ListedAlarm, statement(database, kind=kind and str(kind), **page.parameters()))


async def alarms_waiting(database: Database, *, most: int) -> int:
    """How many alarms are open, counted up to `most`."""
    return int(await queries.alarms_waiting(database, most=most))


async def settle_alarm(database: Database, actor: Actor, alarm_id: int, *, now: datetime, note: str = "") -> None:
    """Settle an open alarm, because its cause was looked after; raised again, it is a new one.
    Moves no money.

    Args: note says what was done, for the operators' log; now is real time.
    Raises: NotFound if there is none or it is settled.
    """
    shop = record_if_any(Shop, await queries.side_of_alarm(database, id=alarm_id))
    if shop is None:
        raise NotFound(f"there is no alarm {alarm_id}; see: paydesk alarm list")
    by = f"person {actor.person_id}" if actor.person_id else actor.client_address
    async with database.acquire() as connection, connection.transaction():
        settled = record_if_any(
            _Settled,
            await queries.settle_alarm(
                connection, merchant_id=shop.merchant_id, live=shop.live, id=alarm_id, by=by, now=now
            ),
        )
        if settled is None:
            raise NotFound(f"alarm {alarm_id} is settled already")
        await record(
            connection,
            actor,
            Action.alarm_settled,
            now=now,
            shop=shop,
            subject=f"alarm {alarm_id}",
            details={"kind": settled.kind, "about": settled.subject, **({"note": note} if note else {})},
        )
