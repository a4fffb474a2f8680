"""Comparing our books with what each acquirer's own list says: it remembers what a database may forget.

Nothing is charged, given back or changed here. What differs is an alarm, which settles itself once both agree again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog

from paydesk.adapters.acquirers.interface import Acquirer, AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.listing import ListedPurchase, ListedRefund
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.apart import reason_of
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.operations import metrics
from paydesk.domain.operations.comparing import UNKNOWN_HERE, difference, has_money, refund_difference
from paydesk.domain.payments.paying import Desk
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "reconciling.sql")
log = structlog.get_logger()

EVERY = timedelta(hours=1)
LEASE = timedelta(minutes=10)
PAUSE = 60.0
"""Seconds between two looks whether it is time to compare."""

BACK = timedelta(hours=25)
"""How far each hourly reading goes back before the last one: purchases are captured, voided and given back later."""

SETTLED = timedelta(minutes=5)
"""What is younger is still being written down, here or there."""

_UNDONE = ":void"
"""What a key of a purchase ends with that was undone, since it must not have been."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A purchase or refund of which the acquirer says other than our books; `reason` says what, in words."""

    acquirer: str
    what: str
    key: str
    reference: str
    reason: str
    merchant_id: int | None = None
    payment_id: int | None = None

    @property
    def subject(self) -> str:
        """What it is called in the operator's list."""
        return subject_of(self.what, self.key, self.acquirer)


@dataclass(slots=True)
class Reconciled:
    """What comparing with one acquirer's list came to; `foreign` were made by other software on the same account."""

    acquirer: str
    purchases: int = 0
    refunds: int = 0
    foreign: int = 0
    differences: list[Difference] = field(default_factory=list)


def subject_of(what: str, key: str, acquirer: str) -> str:
    """What a purchase or refund at an acquirer is called."""
    return f"{what} {key} at {acquirer}"


async def run_reconciliation(desk: Desk, stop: asyncio.Event) -> None:
    """Compare with each acquirer's list every hour until told to stop; any number of workers share it."""

    async def compare() -> None:
        for name in desk.acquirers:
            await _reconcile_when_due(desk, name, now=utc_now())
        await watch(desk, now=utc_now())

    await repeat("reconciliation", compare, stop, rest=PAUSE)


async def _reconcile_when_due(desk: Desk, name: str, *, now: datetime) -> None:
    claimed = await queries.claim(desk.database, acquirer=name, lease=LEASE, every=EVERY)
    if claimed is None:
        return
    read_to, differences = None, None
    try:
        found = await reconcile(desk, name, since=(claimed["read_to"] or now) - BACK, now=now)
        read_to, differences = now - SETTLED, len(found.differences)
    except AWAY:
        raise
    except Exception as error:
        # An acquirer that can't be read keeps nobody from the others; its age will raise the alarm.
        log.warning("an acquirer's list can't be compared", acquirer=name, why=reason_of(error))
    finally:
        await queries.end(desk.database, acquirer=name, read_to=read_to, differences=differences)


async def watch(desk: Desk, *, now: datetime) -> None:
    """Measure up to when each acquirer's list was compared, and how much differed, for the operator."""
    async for row in queries.stands(desk.database, acquirers=list(desk.acquirers), now=now):
        metrics.RECONCILED_AGE.labels(row["acquirer"]).set(row["age"])
        metrics.RECONCILIATION.labels(row["acquirer"]).set(row["differences"])


async def reconcile(
    desk: Desk, acquirer: str, *, since: datetime, now: datetime, told: Callable[[], None] = lambda: None
) -> Reconciled:
    """Compare what was made at an acquirer since a time with our books, both ways. Moves no money.

    `since` and `now` are real times, UTC; `told` is called after each page.

    Raises: Unavailable if the acquirer's list can't be read, one of AWAY.
    """
    run = _Run(desk.database, desk.acquirers[acquirer], Reconciled(acquirer), since, now)
    try:
        await run.whole(told)
    except (AcquirerRefused, OutcomeUnknown) as error:
        raise Unavailable(f"the list of {acquirer} can't be read: {error}") from error
    return run.found


_Listed = ListedPurchase | ListedRefund
_Again = Callable[[], Awaitable[Sequence[_Listed]]]
"""Reads a page once more."""


@dataclass(slots=True)
class _Run:
    """One reading of an acquirer's list."""

    database: Database
    bank: Acquirer
    found: Reconciled
    since: datetime
    now: datetime
    tag: str = ""
    listed: set[str] = field(default_factory=set)

    async def whole(self, told: Callable[[], None]) -> None:
        """Purchases, then refunds, then what the list lacks."""
        self.tag = await queries.deployment_tag(self.database)
        after, is_over = "", False
        while not is_over:
            purchases = await self.bank.list_purchases(self.since, after)
            self.listed |= {one.key for one in purchases.purchases}
            self.found.purchases += len(purchases.purchases)
            await self._compare("purchase", self._settled(purchases.purchases), self._purchases_again(after))
            after, is_over = purchases.next, not purchases.next
            await queries.renew(self.database, acquirer=self.bank.name, lease=LEASE)
            told()
        after, is_over = "", False
        while not is_over:
            refunds = await self.bank.list_refunds(self.since, after)
            self.found.refunds += len(refunds.refunds)
            await self._compare("refund", self._settled(refunds.refunds), self._refunds_again(after))
            after, is_over = refunds.next, not refunds.next
            told()
        await self._look_for_missing()

    def _settled(self, page: Sequence[_Listed]) -> list[_Listed]:
        return [one for one in page if one.at < self.now - SETTLED]

    def _purchases_again(self, after: str) -> _Again:
        async def again() -> Sequence[_Listed]:
            return (await self.bank.list_purchases(self.since, after)).purchases

        return again

    def _refunds_again(self, after: str) -> _Again:
        async def again() -> Sequence[_Listed]:
            return (await self.bank.list_refunds(self.since, after)).refunds

        return again

    async def _compare(self, what: str, page: Sequence[_Listed], again: _Again) -> None:
        """Compare a page, and what differs once more: what moves between two readings is no difference."""
        differing = await self._differing(page)
        if differing:
            still = await self._differing([one for one in await again() if one.key in differing])
            differing = {key: one for key, one in still.items() if one == differing[key]}
        self.found.foreign += sum(not self._is_ours(one) for one in page)
        self.found.differences += differing.values()
        agreeing = {one.key for one in page if one.key} - set(differing)
        subjects = [subject_of(what, key, self.bank.name) for key in sorted(agreeing)]
        if subjects:
            by = "the acquirer's list and our books agree"
            await settle_alarms(self.database, AlarmKind.not_reconciled, subjects, shop=None, by=by, now=self.now)
        await raise_alarms(self.database, [_alarm(one) for one in differing.values()], now=self.now)

    def _is_ours(self, one: _Listed) -> bool:
        """Whether it carries a key of ours; a mark of another deployment says that it is that one's."""
        mark = one.mark if isinstance(one, ListedPurchase) else None
        return bool(one.key) and (mark is None or mark.deployment == self.tag)

    async def _differing(self, page: Sequence[_Listed]) -> dict[str, Difference]:
        """What differs of our own, by key."""
        keys = [one.key for one in page if self._is_ours(one)]
        attempts = await self._by_key(queries.attempts_named, [key.removesuffix(_UNDONE) for key in keys])
        movements = await self._by_key(queries.movements_named, keys)
        elsewhere = {
            *(await self._by_key(queries.forgotten, keys)),
            *(await self._by_key(queries.card_changes_named, keys)),
        }
        differing = {}
        for one in page:
            if one.key not in keys or one.key in elsewhere:
                continue
            if isinstance(one, ListedPurchase):
                row = attempts.get(one.key)
                reason = self._forgotten(one) if row is None else difference(one, row)
            else:
                row = movements.get(one.key)
                was_undone = row is None and one.key.removesuffix(_UNDONE) in attempts
                reason = None if was_undone else refund_difference(one, row)
            if reason is not None:
                differing[one.key] = self._differs(one, reason, row)
        return differing

    def _forgotten(self, one: ListedPurchase) -> str | None:
        """What to say of a purchase that is not in our books; one that has no money, or no mark, is no matter."""
        if one.mark is None or not has_money(one):
            return None
        return f"{UNKNOWN_HERE} (order {one.mark.order}, payment {one.mark.payment_id}, {one.amount} {one.currency})"

    async def _look_for_missing(self) -> None:
        """What is approved in our books and not in the list, though it was made in its time."""
        rows = queries.approved_between(
            self.database, acquirer=self.bank.name, since=self.since + SETTLED, until=self.now - SETTLED
        )
        missing = [_missing(self.bank.name, row) async for row in rows if row["key"] not in self.listed]
        self.found.differences += missing
        await raise_alarms(self.database, [_alarm(one) for one in missing], now=self.now)

    def _differs(self, one: _Listed, reason: str, row: Mapping[str, Any] | None) -> Difference:
        what = "purchase" if isinstance(one, ListedPurchase) else "refund"
        whose = (row["merchant_id"], row["payment_id"]) if row is not None else (None, None)
        return Difference(self.bank.name, what, one.key, one.reference, reason, *whose)

    async def _by_key(self, ask: Callable[..., Any], keys: list[str]) -> dict[str, Mapping[str, Any]]:
        """Rows behind keys."""
        if not keys:
            return {}
        return {row["key"]: row async for row in ask(self.database, acquirer=self.bank.name, keys=keys)}


def _missing(acquirer: str, row: Mapping[str, Any]) -> Difference:
    reason = "it is approved in our books, and the acquirer's list does not have it"
    return Difference(acquirer, "purchase", row["key"], "", reason, row["merchant_id"], row["payment_id"])


def _alarm(one: Difference) -> Alarm:
    details = {"reference": one.reference, "merchant": one.merchant_id, "payment": one.payment_id}
    return Alarm(AlarmKind.not_reconciled, one.subject, one.reason, None, details)
