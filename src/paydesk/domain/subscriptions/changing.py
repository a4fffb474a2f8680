"""Changes of subscriptions that come later, and their carrying out: ending with the period,
pausing, resuming (changing_plans.py has the wish for another plan).

A change is never made while a charge is in flight: what it means depends on whether that succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import cast

import msgspec

from paydesk.core.currencies import charge_digits
from paydesk.core.errors import Busy, Conflict, Malformed
from paydesk.core.wording import noted, plural, worded
from paydesk.database.pool import Database
from paydesk.database.reading_again import READ_AGAIN
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import ASIDE, set_aside, together
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks import waking
from paydesk.domain.pingbacks.destinations import Account, body_format, destination
from paydesk.domain.pingbacks.payload import subscription_envelope
from paydesk.domain.subscriptions.changes import NO_CARD, Change, ChangeState, ChangeType
from paydesk.domain.subscriptions.ending import cancel, changes_all_the_time, find_row, find_told, require_running
from paydesk.domain.subscriptions.largest_charge import require_next_payable
from paydesk.domain.subscriptions.lifecycle import (
    Canceller,
    Subscription,
    cancelled,
    ending_later,
    kept,
    on_plan,
    paused,
    resumed,
)
from paydesk.domain.subscriptions.prorating import Proration, least_charge
from paydesk.domain.subscriptions.rows import SubscriptionRow, TriedRow, as_columns, subscription_of
from paydesk.domain.subscriptions.subscription_object import subscription_object

queries = load_statements(__package__ or "", "changing.sql")

CANCELLED_EVENT = "subscription_cancelled"
PAUSED_EVENT = "subscription_paused"
RESUMED_EVENT = "subscription_resumed"

LONGEST_PAUSE = timedelta(days=3653)
"""As long as the longest period."""

_TOO_LONG = plural(
    "until is not between now and %(count)s day from now",
    "until is not between now and %(count)s days from now",
    count=LONGEST_PAUSE.days,
)


@dataclass(frozen=True, slots=True)
class Changed:
    """What came of a wish: the subscription as it is then (or would be, of a preview).

    With it the open change in whose place another came, whether anything changed, and what was
    carried out at once, with what that has put into the balance.
    """

    subscription: Subscription
    replaced: Change | None = None
    moved: bool = True
    carried_out: Change | None = None
    proration: Proration | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A version to write: what becomes of the change that is open, and the event that is told.

    `carried_out` is the change that the version itself is, if it was never to come, `proration`
    what that puts into the balance.
    """

    version: Subscription
    closes_as: ChangeState
    event: str | None = None
    carried_out: Change | None = None
    proration: Proration | None = None


@dataclass(frozen=True, slots=True)
class _Moved:
    """A subscription whose step is written."""

    id: int


class _Due(TriedRow, frozen=True):
    """A subscription whose change is due, and its account."""

    shop_now: datetime
    account_url: str | None
    test_pingback_url: str | None
    went_live_at: datetime | None
    pingback_format: str


Choice = Callable[[Subscription], Step | None]
"""The step that a wish means for a subscription as it stands; None if all is so already."""


async def cancel_later(
    database: Database, shop: Shop, subscription_id: int, *, by: Canceller, now: datetime, preview: bool = False
) -> Changed:
    """Have a subscription end with the period that is paid; until then that can be undone.
    Moves no money.

    Its state stays, and the merchant is told once it has ended. One whose period is over, as its
    charge fails, ends at once; one that has ended stays as it is.

    Args: now is the shop's time, UTC; a `preview` changes nothing.
    Raises: NotFound; Conflict if it is paused, or runs out by itself; Busy while it is charged.
    """

    def choose(current: Subscription) -> Step | None:
        if not current.running or _is_to_end(current.change):
            return None
        if current.paused:
            raise Conflict(
                worded(
                    "subscription %(id)s is paused, so that no period runs: cancel it at once, or resume it first",
                    id=current.id,
                )
            )
        if current.date_end is not None:
            raise Conflict(
                worded(
                    "subscription %(id)s is not charged again and ends at %(date_end)s UTC by itself",
                    id=current.id,
                    date_end=f"{current.date_end:%Y-%m-%d %H:%M:%S}",
                )
            )
        version = ending_later(current, by=by, at=now)
        return Step(version, ChangeState.REPLACED, None if version.running else CANCELLED_EVENT)

    return await change(database, shop, subscription_id, choose, now=now, preview=preview)


async def cancel_now(
    database: Database, shop: Shop, subscription_id: int, *, by: Canceller, now: datetime, preview: bool = False
) -> Changed:
    """End all future charges at once (`ending.cancel`), or say what would come of that.
    Moves no money.

    Raises: NotFound; Busy.
    """
    if not preview:
        return Changed(await cancel(database, shop, subscription_id, by=by, now=now))
    current = subscription_of(await find_row(database, shop, subscription_id))
    return Changed(cancelled(current, by=by, at=now) if current.running else current)


async def undo(
    database: Database, shop: Shop, subscription_id: int, *, now: datetime, preview: bool = False
) -> Changed:
    """Have a subscription go on that would have ended with its period, or as another package;
    it is charged as before. Moves no money.

    Args: now is the shop's time, UTC; a `preview` changes nothing.
    Raises: NotFound; Conflict if it has ended, is about to, is paused, or has no card yet; Busy
        while it is charged.
    """

    def choose(current: Subscription) -> Step | None:
        require_running(current)
        if current.paused:
            raise Conflict(worded("subscription %(id)s is paused: resume it", id=current.id))
        if current.change is None:
            return None
        if current.change.by == NO_CARD:
            raise Conflict(
                worded("subscription %(id)s has no card yet: it goes on once its customer gives one", id=current.id)
            )
        _require_to_come(current, now)
        return Step(kept(current), ChangeState.UNDONE)

    return await change(database, shop, subscription_id, choose, now=now, preview=preview)


async def pause(
    database: Database,
    shop: Shop,
    subscription_id: int,
    *,
    until: datetime | None = None,
    by: Canceller,
    now: datetime,
    preview: bool = False,
) -> Changed:
    """Charge nothing until a moment (UTC), or until it is resumed; what is left of the paid period
    is kept. Moves no money.

    Args: now is the shop's time, UTC; a `preview` changes nothing.
    Raises: NotFound; Malformed for a moment that is not to come, or too far; Conflict if it has
        ended or is about to; Busy while it is charged.
    """
    if until is not None and not now < until <= now + LONGEST_PAUSE:
        raise Malformed(_TOO_LONG, "until")

    def choose(current: Subscription) -> Step | None:
        require_running(current)
        change = current.change
        if change is not None and current.paused and change.due_at == until:
            return None
        if not current.paused:
            _require_to_come(current, now)
        event = PAUSED_EVENT if current.tells_pauses and not current.paused else None
        return Step(paused(current, until=until, by=by, at=now), ChangeState.REPLACED, event)

    return await change(database, shop, subscription_id, choose, now=now, preview=preview)


async def resume(
    database: Database, shop: Shop, subscription_id: int, *, now: datetime, preview: bool = False
) -> Changed:
    """End a subscription's pause: it is charged later by the time that it was paused.
    Moves no money.

    Args: now is the shop's time, UTC; a `preview` changes nothing.
    Raises: NotFound; Conflict if it has ended; Busy while it is charged.
    """

    def choose(current: Subscription) -> Step | None:
        require_running(current)
        if current.change is None or not current.paused:
            return None
        # One that was to be resumed before, and was not yet, has been paused until then.
        return _resuming(current, min(now, current.change.due_at or now))

    return await change(database, shop, subscription_id, choose, now=now, preview=preview)


def _is_to_end(change: Change | None) -> bool:
    """Whether somebody wants it to end: that it ends without a card is nobody's wish."""
    return change is not None and change.type is ChangeType.CANCEL and change.by != NO_CARD


def _resuming(current: Subscription, at: datetime) -> Step:
    return Step(resumed(current, at=at), ChangeState.DONE, RESUMED_EVENT if current.tells_pauses else None)


def _require_to_come(current: Subscription, now: datetime) -> None:
    """Raises: Conflict if what is to come is being carried out."""
    change = current.change
    if change is not None and change.due_at is not None and change.due_at <= now:
        if change.type is ChangeType.PLAN:
            raise Conflict(worded("subscription %(id)s has come to its next period, of another plan", id=current.id))
        raise Conflict(worded("subscription %(id)s has come to its end", id=current.id))


async def change(
    database: Database, shop: Shop, subscription_id: int, choose: Choice, *, now: datetime, preview: bool
) -> Changed:
    """Write the step that is chosen, over the subscription that it was chosen for.

    Raises: Conflict also if its next charge would become larger than a payment may be.
    """
    for _ in range(READ_AGAIN):
        row = await find_row(database, shop, subscription_id)
        current = subscription_of(row)
        step = choose(current)
        if step is None:
            return Changed(current, moved=False)
        await require_uncharged(database, row)
        await require_next_payable(database, shop, current, step.version, step.proration)
        replaced = current.change if step.closes_as is ChangeState.REPLACED else None
        changed = Changed(step.version, replaced, carried_out=step.carried_out, proration=step.proration)
        if preview:
            return changed
        told = await find_told(database, shop)
        account = Account(told.account_url, told.test_pingback_url, told.went_live_at)
        if await _write(database, [_as_row(row, step, account, told.pingback_format, now)]):
            return changed
    raise changes_all_the_time()


async def require_uncharged(database: Database, row: SubscriptionRow) -> None:
    """Raises: Busy while it is charged."""
    if row.charging_attempt_id is not None:
        raise Busy(await _why_busy(database, row))


async def _why_busy(database: Database, row: SubscriptionRow) -> str:
    """Why a subscription can't be changed while it is charged, and what may be done."""
    names = {"merchant_id": row.merchant_id, "live": row.live, "attempt_id": row.charging_attempt_id}
    sure_by = await queries.on_its_way_until(database, **names)
    if sure_by is None:
        return worded("subscription %(id)s is being charged just now; try again once that is decided", id=row.id)
    return worded(
        "the payment of subscription %(id)s is on its way, and its bank says by %(day)s "
        "whether it pays: try again then; cancelling it at once is possible",
        id=row.id,
        day=f"{sure_by.astimezone(UTC):%Y-%m-%d}",
    )


async def carry_out_due(
    database: Database,
    *,
    real_now: datetime,
    merchant_id: int | None = None,
    at: datetime | None = None,
    most: int = 500,
) -> int:
    """Carry out the changes that are due: what was cancelled ends, what was paused goes on, and
    what gets another plan is due by it. Moves no money.

    Each side has its own time; with `merchant_id` only that merchant's test side counts, and `at`
    is its time (UTC). Returns how many were carried out. One that can't be worked out is set aside
    for an hour, and stops no other.
    """
    due = queries.due_to_change(
        database, real_now=real_now, at=at, most=most, merchant_id=merchant_id, aside_since=real_now - ASIDE
    )
    worked = await together(await records_of(_Due, due), partial(_carry_out, database))
    await set_aside(database, worked, _named, doing=noted("its change is due, and can't be carried out"))
    return len(worked.results)


async def _carry_out(database: Database, rows: Sequence[_Due]) -> list[_Moved]:
    """What was due a while ago is done as of then: a pause was over, whenever that is seen.

    Returns those that nobody else has changed since they were read.
    """
    steps = [
        _as_row(
            row,
            _step_due(row),
            Account(row.account_url, row.test_pingback_url, row.went_live_at),
            row.pingback_format,
            row.shop_now,
        )
        for row in rows
    ]
    return await _write(database, steps)


def _step_due(row: _Due) -> Step:
    current = subscription_of(row)
    change = current.change
    assert change is not None, "what is due has a change"
    at = change.due_at or row.shop_now
    if current.paused:
        return _resuming(current, at)
    if change.package is not None:
        return Step(on_plan(current, change.package), ChangeState.DONE)
    return Step(cancelled(current, by=cast(Canceller, change.by), at=at), ChangeState.DONE, CANCELLED_EVENT)


def _named(row: _Due) -> tuple[Shop, str]:
    """What a subscription is called in the operator's list; `due_to_change` knows it too."""
    return Shop(row.merchant_id, row.live), f"subscription {row.id}"


def _as_row(
    row: SubscriptionRow, step: Step, account: Account, pingback_format: str, now: datetime
) -> dict[str, object]:
    """A step as `change_subscriptions` reads it; `now` is the shop's time, UTC."""
    version, event = step.version, step.event
    change = version.change or step.carried_out
    currency = version.package.terms.currency
    return {
        "version": as_columns(version),
        "closes_as": step.closes_as,
        "type": change.type if change else None,
        "due_at": change.due_at if change else None,
        "asked_by": change.by if change else "",
        "since": change.since if change else None,
        "plan_id": change.package.version_id if change and change.package else None,
        "at_once": step.carried_out is not None,
        "proration": step.proration,
        "charge_digits": charge_digits(currency),
        "least_charge": least_charge(currency),
        "event": event or "",
        "payload": subscription_envelope(event, subscription_object(version)) if event else None,
        "send_to": destination(row.pingback_url, account, live=version.live),
        "pingback_format": body_format(row.sign_version, pingback_format),
        "now": now,
    }


async def _write(database: Database, steps: Sequence[dict[str, object]]) -> list[_Moved]:
    """Write steps with their pingbacks, each unless somebody else was faster, or it is being
    charged; returns which are written.
    """
    asked = queries.change_subscriptions(database, steps=msgspec.json.encode(steps).decode())
    moved = await records_of(_Moved, asked)
    waking.told()
    return moved
