"""What people do with pingbacks by hand: look at them, send one again,
set a URL for those that wait for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

import msgspec

from paydesk.core.errors import Conflict, NotFound
from paydesk.core.paging import EARLIEST, LATEST
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks import waking
from paydesk.domain.pingbacks.destinations import Account, destination
from paydesk.domain.pingbacks.states import PingbackState

queries = load_statements(__package__ or "")
many = load_statements(__package__ or "", "resending_by_hand.sql")

MOST_AT_ONCE = 10_000
"""How many failed pingbacks are sent again by one press of the button;
more are left for the next."""

PACE = timedelta(milliseconds=10)
"""Between two of many that are sent again: a hundred a second leaves room
for what is reported meanwhile."""


@dataclass(frozen=True, slots=True)
class Pingback:
    """A pingback as it stands; `payload` is the JSON envelope without `pingback_ts`;
    times are UTC.
    """

    id: int
    live: bool
    event: str
    payment_id: int | None
    url: str | None
    sign_version: str
    format: str
    payload: str
    state: PingbackState
    attempts: int
    due_at: datetime
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class PingbackAttempt:
    """One request as it was sent (private key masked) and the start of its answer;
    `error` is "" if there was none.
    """

    number: int
    at: datetime
    url: str
    request_headers: dict[str, str]
    request_body: str
    status: int | None
    response_body: str
    error: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A row of a PingbackAttempt: its headers are JSON."""

    number: int
    at: datetime
    url: str
    request_headers: str
    request_body: str
    status: int | None
    response_body: str
    error: str
    duration_ms: int


async def find_tried_pingback(
    database: Database, shop: Shop, pingback_id: int
) -> tuple[Pingback, list[PingbackAttempt]]:
    """A pingback with all its attempts, first to last.

    Raises: NotFound if the shop has no such pingback in this mode.
    """
    pingback = await _find(database, shop, pingback_id)
    rows = queries.attempts_of(database, merchant_id=shop.merchant_id, live=shop.live, id=pingback_id)
    return pingback, [
        PingbackAttempt(
            row.number,
            row.at,
            row.url,
            msgspec.json.decode(row.request_headers),
            row.request_body,
            row.status,
            row.response_body,
            row.error,
            row.duration_ms,
        )
        for row in await records_of(_Attempt, rows)
    ]


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Which failed pingbacks: of an event or (None) of any, that were made from `since`
    on and before `until`, UTC.
    """

    event: str | None = None
    since: datetime = EARLIEST
    until: datetime = LATEST


async def count_exhausted(database: Database, shop: Shop, wanted: Exhausted) -> int:
    """How many of the shop's failed pingbacks `resend_exhausted` would send again,
    if it took them all.
    """
    days = {"merchant_id": shop.merchant_id, "live": shop.live, "since": wanted.since, "until": wanted.until}
    if wanted.event is None:
        return int(await many.count_exhausted(database, **days))
    return int(await many.count_exhausted_of_event(database, **days, event=wanted.event))


async def resend_exhausted(connection: Connection, shop: Shop, wanted: Exhausted, *, now: datetime) -> int:
    """Have failed pingbacks sent once more, the oldest MOST_AT_ONCE of them; returns how many.

    Each goes where a new one would go: to the URL of its form, else to the account's of now.
    `now` is the shop's time, UTC. What fails again is exhausted again, and can be resent again.
    """
    return int(
        await many.resend_exhausted(
            connection,
            merchant_id=shop.merchant_id,
            live=shop.live,
            event=wanted.event,
            since=wanted.since,
            until=wanted.until,
            now=now,
            pace=PACE,
            most=MOST_AT_ONCE,
        )
    )


async def goes_to(database: Connection, shop: Shop, pingback_id: int) -> str | None:
    """Where a pingback goes that is sent again now: the URL of its form, else the account's of now;
    None if there is none.
    """
    return cast(
        "str | None", await queries.goes_to(database, merchant_id=shop.merchant_id, live=shop.live, id=pingback_id)
    )


async def resend(
    database: Connection, shop: Shop, pingback_id: int, *, now: datetime, url: str | None = None
) -> Pingback:
    """Have a pingback sent once more, at once, whatever came of it before,
    to where a new one would go now, or to another URL.

    If that attempt fails the schedule goes on where it stood: an exhausted pingback is exhausted
    again. `now` is the shop's time, UTC (a test clock may run ahead); `database` may be a
    connection within a transaction.

    Raises: NotFound if the shop has no such pingback in this mode; Conflict if there is no URL to
        send it to, or it may not go to that one.
    """
    asked = {"merchant_id": shop.merchant_id, "live": shop.live, "id": pingback_id, "url": url, "now": now}
    sent = record_if_any(Pingback, await queries.resend(database, **asked, only_failed=False))
    if sent is None:
        await _find(database, shop, pingback_id)
        if url is not None:
            raise Conflict(
                worded(
                    "test pingbacks of a live account are as validly signed as live ones, so they go to "
                    "its test pingback URL and nowhere else"
                )
            )
        raise _has_no_url(shop, pingback_id)
    waking.told()
    return sent


async def resend_failed(database: Connection, shop: Shop, pingback_id: int, *, now: datetime) -> Pingback | None:
    """Have a pingback that is exhausted sent once more, at once, as `resend` does; None if it is
    not so any more, since somebody else has had it sent. `now` is the shop's time, UTC.

    Raises: NotFound; Conflict if there is no URL to send it to.
    """
    asked = {"merchant_id": shop.merchant_id, "live": shop.live, "id": pingback_id, "url": None, "now": now}
    sent = record_if_any(Pingback, await queries.resend(database, **asked, only_failed=True))
    if sent is None:
        if (await _find(database, shop, pingback_id)).state is not PingbackState.EXHAUSTED:
            return None
        raise _has_no_url(shop, pingback_id)
    waking.told()
    return sent


def _has_no_url(shop: Shop, pingback_id: int) -> Conflict:
    kind = "pingback URL" if shop.live else "test pingback URL"
    return Conflict(
        worded(
            "pingback %(pingback_id)s has no URL to go to; set the account's %(field)s first",
            pingback_id=pingback_id,
            field=kind,
        )
    )


async def send_waiting(database: Database, merchant: Merchant, *, now: datetime) -> int:
    """Make due what waited for a URL, after the account's URLs have changed;
    returns how many pingbacks.

    What is due already goes to the URL of now, too. `now` is real time, UTC; each side adds
    its clock.
    """
    await queries.follow_account(database, merchant_id=merchant.id)
    account = Account(merchant.pingback_url, merchant.test_pingback_url, merchant.went_live_at)
    moved = 0
    for live in (False, True):
        url = destination(None, account, live=live)
        if url is not None:
            status = await queries.send_waiting(database, merchant_id=merchant.id, live=live, url=url, now=now)
            moved += int(status.split()[-1])
    waking.told()
    return moved


async def send_all_waiting(database: Database, *, now: datetime) -> None:
    """Make due what still waits though its account has a URL by now:
    a payment may race the setting of it.
    """
    await queries.send_all_waiting(database, now=now)


async def _find(database: Connection, shop: Shop, pingback_id: int) -> Pingback:
    found = record_if_any(
        Pingback, await queries.find(database, merchant_id=shop.merchant_id, live=shop.live, id=pingback_id)
    )
    if found is None:
        side = "live" if shop.live else "test"
        raise NotFound(f"there is no {side} pingback {pingback_id}; see: paydesk pingback list")
    return found
