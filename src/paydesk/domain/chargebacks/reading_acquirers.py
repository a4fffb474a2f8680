"""Reading what acquirers say of disputes: page by page, what had to wait,
and once a day each that is not over.

Nothing is dropped past a cursor: a page is left behind once each of its disputes is in the books,
or in the list of those that wait with its reason. One that can't be booked stops no other.
Each transaction that writes what was read holds the reading's lease first; none is open while an
acquirer is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

import structlog

from paydesk.adapters.acquirers.disputes import Dispute
from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.leases import Lease, ReadByAnother, why_not
from paydesk.domain.acquirers.other_cells import Elsewhere, alone, storable_name
from paydesk.domain.acquirers.waiting import Later, tell_untried, try_all, wait_no_more
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.alarms.setting_aside import ASIDE, one_by_one, reason_of, set_aside
from paydesk.domain.chargebacks import metrics, waiting_disputes
from paydesk.domain.chargebacks.booking import Booked, record_dispute
from paydesk.domain.chargebacks.reckoning import OF_NOBODY, Waits
from paydesk.domain.chargebacks.waiting_disputes import DISPUTES, AskedDispute, WaitingDispute
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.loops.hanging import LONG_READING
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "")
log = structlog.get_logger()

LEASE = timedelta(minutes=1)
PAUSE = 5.0
"""Seconds between two looks at an acquirer's disputes."""

ASK_EVERY = timedelta(days=1)
"""How often an acquirer is asked for each dispute that is not over."""
ASK_AGAIN = timedelta(hours=1)
"""When it is asked again that gave no answer."""
UNREAD = timedelta(hours=1)
"""Disputes that can't be read for so long are an alarm."""

_MOST = 100


async def run_disputes(desk: Desk, stop: asyncio.Event, elsewhere: Elsewhere[AskedDispute] = alone) -> None:
    """Read disputes until told to stop; `elsewhere` asks the other cells."""

    async def read() -> None:
        await read_disputes(desk, now=utc_now(), elsewhere=elsewhere)
        await watch_readings(desk, now=utc_now())

    await repeat("disputes", read, stop, rest=PAUSE, due=True, patience=LONG_READING)


async def read_disputes(desk: Desk, *, now: datetime, elsewhere: Elsewhere[AskedDispute] = alone) -> int:
    """Record the disputes that are new at any acquirer, and how known ones changed;
    returns how many changed something.

    Money has moved at the acquirer before this is called. `now` is real time (UTC): a test side's
    own time is ahead by its clock. `elsewhere` asks the other cells for what is not known here. An
    acquirer that another worker is reading is left to it.
    """
    changed = 0
    for name in desk.acquirers:
        claimed = record_if_any(_Place, await queries.claim_reading(desk.database, acquirer=name, lease=LEASE, now=now))
        if claimed is not None:
            lease = Lease(desk.database, name, queries.hold, LEASE, claimed.leased_until)
            changed += await _Reading(desk, name, now, lease, elsewhere).whole(claimed.place)
    await tell_untried(desk.database, DISPUTES, elsewhere, reads=list(desk.acquirers), now=now)
    await _end_subscriptions(desk.database, now=now)
    return changed


async def watch_readings(desk: Desk, *, now: datetime) -> None:
    """Measure how long ago each acquirer's disputes were read, and tell the operator
    if it is too long.
    """
    rows = queries.reading_ages(desk.database, acquirers=list(desk.acquirers), now=now)
    for row in await records_of(_Age, rows):
        acquirer = row.acquirer
        metrics.READING_AGE.labels(acquirer).set(row.age)
        if row.age <= UNREAD.total_seconds():
            kind = AlarmKind.disputes_unread
            await settle_alarms(desk.database, kind, [acquirer], shop=None, by=noted("disputes were read"), now=now)
            continue
        minutes = int(row.age // 60)
        reason = noted(
            "the disputes of %(acquirer)s were last read %(minutes)s minutes ago", acquirer=acquirer, minutes=minutes
        )
        await raise_alarms(desk.database, [Alarm(AlarmKind.disputes_unread, acquirer, reason)], now=now)


@dataclass(frozen=True, slots=True)
class _Place:
    """Up to where an acquirer's disputes were read, when last, and until when they are this
    worker's.
    """

    place: str
    last_at: datetime
    leased_until: datetime


@dataclass(frozen=True, slots=True)
class _Age:
    acquirer: str
    age: float


@dataclass(frozen=True, slots=True)
class _ToAsk:
    merchant_id: int
    live: bool
    id: int
    acquirer_reference: str


@dataclass(frozen=True, slots=True)
class _ToEnd:
    """A subscription behind a chargeback."""

    merchant_id: int
    live: bool
    chargeback_id: int
    id: int
    state: SubscriptionState
    shop_now: datetime


@dataclass(slots=True)
class _CameTo:
    """What came of disputes that were told: which are in the books, which have to wait, and of
    which no purchase is known here.
    """

    done: set[str] = field(default_factory=set)
    waiting: dict[str, tuple[Dispute, Waits]] = field(default_factory=dict)
    unknown: dict[str, Dispute] = field(default_factory=dict)

    def add(self, dispute: Dispute, waits: Waits | None) -> None:
        """A later telling of a dispute takes the place of an earlier one."""
        self.waiting.pop(dispute.reference, None)
        self.unknown.pop(dispute.reference, None)
        self.done.discard(dispute.reference)
        if waits is None:
            self.done.add(dispute.reference)
        elif waits is OF_NOBODY:
            self.unknown[dispute.reference] = dispute
        else:
            self.waiting[dispute.reference] = (dispute, waits)


@dataclass(slots=True)
class _Reading:
    """One reading of an acquirer's disputes, by the worker who has the lease on them."""

    desk: Desk
    acquirer: str
    now: datetime
    lease: Lease
    elsewhere: Elsewhere[AskedDispute]
    changed: int = field(default=0, init=False)

    @property
    def database(self) -> Database:
        return self.desk.database

    async def whole(self, place: str) -> int:
        """Read on from a place, then try what waits, then ask for what is not over;
        returns how many changed.
        """
        read_at = None
        try:
            # An account whose list can't be read keeps nothing from being tried that waits.
            unread = await why_not(self._pages(place))
            await self._waiting()
            if unread is not None:
                raise unread
            await self._ask()
            async with self.lease.holding() as connection:
                await waiting_disputes.forget(connection, now=self.now)
            read_at = self.now
        except (AcquirerRefused, OutcomeUnknown, ReadByAnother) as error:
            log.warning("an acquirer's disputes can't be read", acquirer=self.acquirer, why=str(error))
        except AWAY:
            raise
        except Exception as error:
            # An answer that makes no sense keeps nobody from the other acquirers; its age will
            # raise the alarm.
            log.warning("an acquirer's disputes can't be read", acquirer=self.acquirer, exc_info=error)
        finally:
            await queries.end_reading(self.database, acquirer=self.acquirer, held=self.lease.held, read_at=read_at)
        return self.changed

    async def _pages(self, place: str) -> None:
        is_complete = False
        while not is_complete:
            page = await self.lease.kept_until(self.desk.acquirers[self.acquirer].disputes(place))
            came_to = await self._book(page.disputes)
            if page.disputes or page.next != place:
                async with self.lease.holding() as connection:
                    await self._keep(connection, came_to)
                    await queries.move_on(connection, acquirer=self.acquirer, place=page.next)
            is_complete = not page.disputes or page.next == place
            place = page.next

    async def _waiting(self) -> None:
        await try_all(partial(waiting_disputes.due, self.database, self.acquirer, now=self.now), self._tried_again)

    async def _tried_again(self, waiting: Sequence[WaitingDispute]) -> bool:
        """Try some that wait, and ask other cells for what is not known here still; whether all of
        them have answered.
        """
        came_to = await self._book([one.dispute for one in waiting])
        unknown = [one for one in waiting if came_to.unknown.pop(one.acquirer_reference, None)]
        await self.lease.keep()
        heard = await waiting_disputes.heard_of(self.elsewhere, unknown)
        later = Later(DISPUTES, self.acquirer, self.now)
        for one in unknown:
            later.judged(one, heard)
        async with self.lease.holding() as connection:
            await self._keep(connection, came_to, tries={one.acquirer_reference: one.tries for one in waiting})
            await later.write(connection)
        return heard.is_whole

    async def _ask(self) -> None:
        """Ask for each chargeback that is not over and was not asked for since a day."""
        rows = queries.to_ask(self.database, acquirer=self.acquirer, before=self.now - ASK_EVERY, most=_MOST)
        for row in await records_of(_ToAsk, rows):
            await self.lease.keep()
            try:
                told = await self.desk.acquirers[self.acquirer].find_dispute(row.acquirer_reference)
            except AWAY:
                raise
            except Exception as error:
                log.warning("a dispute can't be asked for", chargeback_id=row.id, why=reason_of(error))
                async with self.lease.holding() as connection:
                    await self._asked(connection, row, self.now - ASK_EVERY + ASK_AGAIN)
            else:
                await self._answered(row, told)

    async def _answered(self, row: _ToAsk, told: Dispute | None) -> None:
        """Record how a dispute stands that was asked for."""
        came_to = await self._book([] if told is None else [told], confirmed=True)
        async with self.lease.holding() as connection:
            await self._asked(connection, row, self.now)
            await self._keep(connection, came_to)
            if told is None:
                await self._tell_unknown(connection, row)

    async def _asked(self, connection: Connection, row: _ToAsk, at: datetime) -> None:
        await queries.asked(connection, merchant_ids=[row.merchant_id], ids=[row.id], at=at)

    async def _tell_unknown(self, connection: Connection, row: _ToAsk) -> None:
        reason = noted("%(acquirer)s does not know it, and it is not over as far as we know", acquirer=self.acquirer)
        shop = Shop(row.merchant_id, row.live)
        alarm = Alarm(AlarmKind.dispute_unknown, f"chargeback {row.id}", reason, shop)
        await raise_alarms(connection, [alarm], now=self.now)

    async def _book(self, disputes: Sequence[Dispute], *, confirmed: bool = False) -> _CameTo:
        """Book each dispute in a transaction of its own: what the database refuses of one undoes no
        other, and nobody who pays meanwhile waits for a whole page.
        """
        came_to = _CameTo()
        for told in disputes:
            dispute = replace(told, reference=storable_name(told.reference))
            booked = await self._one(dispute, confirmed=confirmed)
            self.changed += booked.changed
            came_to.add(dispute, booked.waits)
        return came_to

    async def _one(self, dispute: Dispute, *, confirmed: bool) -> Booked:
        """Book one dispute; whatever is wrong with it is its own reason to wait,
        unless the database is away.
        """
        try:
            booked = await self._recorded(dispute, confirmed=confirmed)
            if booked.doubtful:
                return await self._asked_again(dispute, booked)
        except (*AWAY, ReadByAnother):
            raise
        except Exception as error:
            about = {"acquirer": self.acquirer, "reference": dispute.reference}
            log.warning("a dispute can't be booked", **about, exc_info=error)
            return Booked(changed=False, waits=Waits(reason_of(error)))
        return booked

    async def _recorded(self, dispute: Dispute, *, confirmed: bool) -> Booked:
        return await record_dispute(self.lease.holding, self.acquirer, dispute, now=self.now, confirmed=confirmed)

    async def _asked_again(self, dispute: Dispute, booked: Booked) -> Booked:
        """A telling that takes back what is in the books:
        the acquirer is asked how the dispute stands now.
        """
        try:
            told = await self.desk.acquirers[self.acquirer].find_dispute(dispute.reference)
        except (AcquirerRefused, OutcomeUnknown) as error:
            why = noted("it was told otherwise before, and the acquirer can't be asked: %(error)s", error=error)
            return Booked(booked.changed, waits=Waits(why, soon=True))
        if told is None:
            return Booked(booked.changed, waits=Waits(noted("it was told otherwise before, and is not known any more")))
        return await self._recorded(told, confirmed=True)

    async def _keep(self, connection: Connection, came_to: _CameTo, *, tries: Mapping[str, int] | None = None) -> None:
        """Keep which disputes wait, and which do so no more."""
        await wait_no_more(connection, DISPUTES, self.acquirer, sorted(came_to.done), now=self.now)
        await waiting_disputes.keep_known(connection, self.acquirer, came_to.waiting, tries or {}, now=self.now)
        await waiting_disputes.keep_unknown(connection, self.acquirer, list(came_to.unknown.values()), now=self.now)


async def _end_subscriptions(database: Database, *, now: datetime) -> None:
    """End the subscriptions behind disputes that are not won;
    what was missed the last time is found again.

    One that can't be ended waits in the operator's list and stops no other.
    """
    rows = queries.subscriptions_to_end(database, real_now=now, aside_since=now - ASIDE)
    worked = await one_by_one(await records_of(_ToEnd, rows), partial(_end_subscription, database))
    await set_aside(database, worked, _named, doing=noted("the subscription behind it can't be ended"))


async def _end_subscription(database: Database, row: _ToEnd) -> None:
    shop = Shop(row.merchant_id, row.live)
    if row.state in (SubscriptionState.TRIAL, SubscriptionState.ACTIVE):
        await cancel(database, shop, row.id, by="chargeback", now=row.shop_now)
    about = {"merchant_id": shop.merchant_id, "live": shop.live, "id": row.chargeback_id}
    await queries.subscription_ended(database, **about)


def _named(row: _ToEnd) -> tuple[Shop, str]:
    """What a chargeback is called in the operator's list."""
    return Shop(row.merchant_id, row.live), f"chargeback {row.chargeback_id}"
