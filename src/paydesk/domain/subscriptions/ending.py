"""How subscriptions end by somebody's wish or because they are over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from paydesk.core.errors import Busy, Conflict, NotFound
from paydesk.core.wording import noted, worded
from paydesk.database.pool import Database
from paydesk.database.reading_again import READ_AGAIN
from paydesk.database.records import record_if_any, record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import ASIDE, one_by_one, set_aside
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks import waking
from paydesk.domain.pingbacks.destinations import Account, body_format, destination
from paydesk.domain.pingbacks.payload import subscription_envelope
from paydesk.domain.subscriptions.lifecycle import Canceller, Subscription, cancelled, expired
from paydesk.domain.subscriptions.rows import SubscriptionRow, TriedRow, as_rows, subscription_of
from paydesk.domain.subscriptions.subscription_object import subscription_object

queries = load_statements(__package__ or "")

EXPIRED_EVENT = "subscription_expired"


class _Over(SubscriptionRow, frozen=True):
    """A subscription whose last period is over, and its account."""

    shop_now: datetime
    account_url: str | None
    test_pingback_url: str | None
    went_live_at: datetime | None
    pingback_format: str
    extra_events: list[str]


@dataclass(frozen=True, slots=True)
class Told:
    """Whom a merchant's pingbacks go to."""

    account_url: str | None
    test_pingback_url: str | None
    went_live_at: datetime | None
    pingback_format: str
    extra_events: list[str]
    time_zone: str
    test_clock: timedelta


async def find_row(database: Database, shop: Shop, subscription_id: int) -> TriedRow:
    """A subscription's row as it stands. Raises: NotFound."""
    row = record_if_any(
        TriedRow,
        await queries.find(database, merchant_id=shop.merchant_id, live=shop.live, id=subscription_id),
    )
    if row is None:
        raise NotFound(f"there is no subscription {subscription_id}")
    return row


async def find_told(database: Database, shop: Shop) -> Told:
    """Whom the shop's pingbacks go to."""
    return record_of(Told, await queries.account(database, merchant_id=shop.merchant_id))


async def cancel(database: Database, shop: Shop, subscription_id: int, *, by: Canceller, now: datetime) -> Subscription:
    """End all future charges and tell the merchant once; a second call changes nothing.
    Moves no money.

    A charge whose intent was committed before this stands if the bank approves it.

    Args: shop is the merchant and the mode (live or test); now is its time, UTC (a test clock may
        run ahead).
    Raises: NotFound if the shop has no such subscription in this mode; Conflict if it is busy
        beyond patience.
    Source: interface.md §7.3.
    """
    for _ in range(READ_AGAIN):
        row = await find_row(database, shop, subscription_id)
        current = subscription_of(row)
        if not current.running:
            return current
        version = cancelled(current, by=by, at=now)
        found = await find_told(database, shop)
        account = Account(found.account_url, found.test_pingback_url, found.went_live_at)
        event = "subscription_cancelled"
        if await _end(database, row, account, found.pingback_format, version, event=event, now=now):
            return version
    raise changes_all_the_time()


async def expire_due(
    database: Database,
    *,
    real_now: datetime,
    merchant_id: int | None = None,
    at: datetime | None = None,
    most: int = 500,
) -> int:
    """End the subscriptions whose last period is over; only accounts that ask for it are told.
    Moves no money.

    Each side has its own time; with `merchant_id` only that merchant's test side counts, and `at`
    is its time (UTC). Returns how many ended. One that can't be worked out is set aside for an
    hour, and stops no other.
    """
    due = queries.due_to_expire(
        database, real_now=real_now, at=at, most=most, merchant_id=merchant_id, aside_since=real_now - ASIDE
    )
    worked = await one_by_one(await records_of(_Over, due), partial(_expire, database))
    await set_aside(database, worked, _named, doing=noted("it is over, and its end can't be written"))
    return sum(worked.results)


async def _expire(database: Database, row: _Over) -> bool:
    current = subscription_of(row)
    version = expired(current, at=current.date_end or row.shop_now)
    event = EXPIRED_EVENT if EXPIRED_EVENT in row.extra_events else None
    account = Account(row.account_url, row.test_pingback_url, row.went_live_at)
    return await _end(database, row, account, row.pingback_format, version, event=event, now=row.shop_now)


def _named(row: _Over) -> tuple[Shop, str]:
    """What a subscription is called in the operator's list; `due_to_expire` knows it too."""
    return Shop(row.merchant_id, row.live), f"subscription {row.id}"


async def _end(
    database: Database,
    row: SubscriptionRow,
    account: Account,
    pingback_format: str,
    version: Subscription,
    *,
    event: str | None,
    now: datetime,
) -> bool:
    """Write the last version with its pingback (none without an event),
    unless somebody else wrote one first.
    """
    moved = await queries.end_subscription(
        database,
        subscriptions=as_rows([version]),
        event=event or "",
        payload=subscription_envelope(event, subscription_object(version)) if event else None,
        send_to=destination(row.pingback_url, account, live=version.live),
        pingback_format=body_format(row.sign_version, pingback_format),
        now=now,
    )
    waking.told()
    return moved is not None


def changes_all_the_time() -> Busy:
    """For who reads a subscription as often as `READ_AGAIN`, and finds it changed by others."""
    return Busy(worded("the subscription is changing all the time; try again"))


def require_running(current: Subscription) -> None:
    """Raises: Conflict if it has ended."""
    if not current.running:
        raise Conflict(worded("subscription %(id)s has ended", id=current.id))
