"""Queueing mails about what has been committed: payments, ends of subscriptions,
renewals and endpoints that fail.

Nothing here stands in the way of a payment: the statements that record outcomes don't know of
mails. What they commit is read afterwards, and each event's name (`once`) makes sure that it is
told once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.alarms.setting_aside import ASIDE, DueRow, one_by_one, set_aside, together
from paydesk.domain.mail.announcing import announce_charges
from paydesk.domain.mail.asking_cards import ask_for_cards
from paydesk.domain.mail.expiring import tell_expiring
from paydesk.domain.mail.queueing_due import NOT_TOLD, Told, queue_all
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.health import FAR
from paydesk.domain.pingbacks.schedule import MOST_ATTEMPTS
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "telling.sql")
marked = load_statements(__package__ or "", "marked.sql")

SWEEP_AFTER = timedelta(minutes=2)
"""Twice what the slowest statement may take: an id that was drawn before is committed by then,
or never will be."""

TOLD_FOR = timedelta(days=3)
"""Nobody is told of what happened longer ago; so little is told when mails are switched on late."""

AFTER_ATTEMPTS = 3
"""Attempts of one pingback that failed before the merchant is told that its server does:
about an hour."""

_EVENT = "mail of pingback "
"""How the operator's list calls an event, before its id."""

_RENEWAL = "mail of renewal of subscription"
_ENDPOINTS = "mails of failing endpoints of merchant"
_EVER = datetime(2000, 1, 1, tzinfo=UTC)

_LOOKED_AT = 200
"""How many of a side's oldest pingbacks that are still to be sent tell whether
an endpoint fails."""

PAUSE = 2.0
"""Seconds between looks when nothing has happened."""

SLOW_PAUSE = 30.0
"""Seconds between looks at what fails, which stays so for hours."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Whose events are told, from a place on."""

    merchant_id: int


@dataclass(frozen=True, slots=True)
class _Telling:
    """One look at what happened: when it is, and whether mails about test data stay
    on this machine.
    """

    database: Database
    real_now: datetime
    keep_test: bool
    most_merchants: int
    most_events: int

    @property
    def options(self) -> dict[str, object]:
        """What all statements take."""
        return {"real_now": self.real_now, "keep_test": self.keep_test, "aside_since": self.real_now - ASIDE}

    async def merchants(self, only: Sequence[int] | None) -> list[Told]:
        """Tell what is new of these merchants, or (None) of whoever was untold longest.

        Of one whose round fails by itself the events that it fails for are set aside, and the rest
        is told.
        """
        try:
            return [await self._pingbacks(only=only)]
        except AWAY:
            raise
        except Exception:
            if only is None or len(only) > 1 or not await self._set_events_aside(only[0]):
                raise
        return [await self._pingbacks(only=only)]

    async def events(self, events: Sequence[DueRow], since: datetime) -> list[DueRow]:
        """Tell these alone, all or none; gives them back."""
        merchants = sorted({event.shop.merchant_id for event in events})
        await self._pingbacks(only=merchants, events=[event.id for event in events], since=since)
        return list(events)

    async def again(self) -> None:
        """Tell what was set aside an hour ago or longer, however long ago it happened;
        its alarm mends itself.
        """
        rows = queries.events_set_aside(self.database, prefix=_EVENT, aside_since=self.real_now - ASIDE)
        worked = await together(await records_of(DueRow, rows), partial(self.events, since=_EVER))
        await set_aside(self.database, worked, _named_event, doing=NOT_TOLD)
        for shop in {event.shop for event in worked.results}:
            subjects = [_named_event(event)[1] for event in worked.results if event.shop == shop]
            by = noted("it was told when tried again")
            await settle_alarms(self.database, AlarmKind.set_aside, subjects, shop=shop, by=by, now=self.real_now)

    async def marked(self, kind: str) -> int:
        """Queue the mails about one of the kinds whose rows say whether they were told;
        returns how many.
        """
        noun = f"mail of {kind.removesuffix('s')}"
        tell = getattr(marked, f"tell_{kind}")

        async def claim(only: Sequence[int] | None) -> list[Told]:
            looked = await tell(
                self.database,
                **self.options,
                since=self.real_now - TOLD_FOR,
                most=self.most_events,
                only=only,
                prefix=f"{noun} ",
            )
            return [record_of(Told, looked)]

        async def due() -> list[DueRow]:
            return await records_of(DueRow, marked.marked_to_tell(self.database, kind=kind))

        return await queue_all(self.database, claim, due, noun=noun, batch=self.most_events)

    async def _pingbacks(
        self, *, only: Sequence[int] | None, events: Sequence[int] | None = None, since: datetime | None = None
    ) -> Told:
        told = await queries.tell_pingbacks(
            self.database,
            **self.options,
            since=since or self.real_now - TOLD_FOR,
            sweep_after=SWEEP_AFTER,
            most_merchants=self.most_merchants,
            most_events=self.most_events,
            only=only,
            events=events,
            prefix=_EVENT,
        )
        return record_of(Told, told)

    async def _set_events_aside(self, merchant_id: int) -> list[DueRow]:
        """Find the events of a merchant that can't be told,
        and put them into the operator's list.
        """
        rows = queries.events_to_tell(self.database, merchant_id=merchant_id, most_events=self.most_events)
        events = await records_of(DueRow, rows)
        worked = await together(events, partial(self.events, since=self.real_now - TOLD_FOR))
        return await set_aside(self.database, worked, _named_event, doing=NOT_TOLD)


async def tell_events(
    database: Database, *, real_now: datetime, keep_test: bool, most_merchants: int = 200, most_events: int = 500
) -> int:
    """Queue the mails about what was committed since the last look. Moves no money.

    Mails about test data go to the customers' made-up addresses only where they are kept on this
    machine (`keep_test`); else to the merchant, if it asks for them. Returns how many were queued.
    `real_now` is UTC. What can't be told waits in the operator's list and holds up no other mail;
    it is tried again every hour.
    """
    await queries.add_places(database)
    telling = _Telling(database, real_now, keep_test, most_merchants, most_events)

    async def due() -> list[DueRow]:
        return await _merchants(database)

    queued = await queue_all(database, telling.merchants, due, noun="mails of merchant")
    await telling.again()
    worked = await one_by_one(("refunds", "failures", "shipments", "chargebacks", "voids"), telling.marked)
    await set_aside(database, worked, lambda kind: (None, noted("mails about %(kind)s", kind=kind)), doing=NOT_TOLD)
    return queued + sum(worked.results)


def _named_event(event: DueRow) -> tuple[Shop, str]:
    """What an event is called in the operator's list."""
    return event.shop, f"{_EVENT}{event.id}"


async def tell_failing(database: Database, *, real_now: datetime, keep_test: bool, most: int = 500) -> int:
    """Queue the mails about renewals that failed, and to merchants whose server takes no pingbacks.
    Moves no money.

    Returns how many were queued; `keep_test` as for `tell_events`, `real_now` is UTC.
    """
    asked = {"real_now": real_now, "keep_test": keep_test, "aside_since": real_now - ASIDE}

    async def renewals(only: Sequence[int] | None) -> list[Told]:
        prefix = f"{_RENEWAL} "
        told = int(await queries.tell_failing_renewals(database, **asked, most=most, only=only, prefix=prefix))
        return [Told(mails=told, seen=told)]

    async def failing() -> list[DueRow]:
        return await records_of(DueRow, queries.failing_renewals(database, keep_test=keep_test))

    async def endpoints(only: Sequence[int] | None) -> list[Told]:
        """Of all merchants at once."""
        told = await queries.tell_failing_endpoints(
            database,
            **asked,
            after_attempts=AFTER_ATTEMPTS,
            most_attempts=MOST_ATTEMPTS,
            looked_at=_LOOKED_AT,
            far=FAR,
            only=only,
            prefix=f"{_ENDPOINTS} ",
        )
        return [Told(mails=int(told), seen=0)]

    async def merchants() -> list[DueRow]:
        return await _merchants(database)

    queued = await queue_all(database, renewals, failing, noun=_RENEWAL)
    return queued + await queue_all(database, endpoints, merchants, noun=_ENDPOINTS)


async def _merchants(database: Database) -> list[DueRow]:
    """Everybody who may be told something, the longest untold first."""
    places = await records_of(_Place, queries.merchants_to_tell(database))
    return [DueRow(place.merchant_id, live=True, id=place.merchant_id) for place in places]


async def run_telling(database: Database, stop: asyncio.Event, *, keep_test: bool) -> None:
    """Queue mails about what happens until told to stop."""

    async def tell_what_happened() -> None:
        await tell_events(database, real_now=utc_now(), keep_test=keep_test)

    async def tell_what_fails() -> None:
        await tell_failing(database, real_now=utc_now(), keep_test=keep_test)

    async def tell_what_expires() -> None:
        await tell_expiring(database, real_now=utc_now(), keep_test=keep_test)

    async def tell_what_is_charged() -> None:
        await announce_charges(database, real_now=utc_now(), keep_test=keep_test)

    async def ask_for_missing_cards() -> None:
        await ask_for_cards(database, real_now=utc_now(), keep_test=keep_test)

    await asyncio.gather(
        repeat("telling", tell_what_happened, stop, rest=PAUSE, due=True),
        repeat("telling of failures", tell_what_fails, stop, rest=SLOW_PAUSE, due=True),
        repeat("telling of cards", tell_what_expires, stop, rest=SLOW_PAUSE, due=True),
        repeat("telling of charges", tell_what_is_charged, stop, rest=SLOW_PAUSE, due=True),
        repeat("asking for cards", ask_for_missing_cards, stop, rest=SLOW_PAUSE, due=True),
    )
