"""Where a merchant's pingbacks go, which of them, and how they are written and signed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from paydesk.core.errors import Malformed, NotFound
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.notices import warn_owners
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.merchants.merchant import MUTABLE_EVENTS, BodyFormat, find_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.destinations import parse_pingback_url
from paydesk.domain.pingbacks.resending_by_hand import send_waiting
from paydesk.domain.subscriptions.changing import PAUSED_EVENT
from paydesk.domain.subscriptions.ending import EXPIRED_EVENT
from paydesk_client.signature import Version

queries = load_statements(__package__ or "", "pingback_settings.sql")

EXTRA_EVENTS = (EXPIRED_EVENT, PAUSED_EVENT)
"""Pingbacks that are sent only to who asks for them; who is told of pauses hears of their ends."""

PINGBACKS_MOVED = "pingback_url_changed"
"""What the owners are told of another address for pingbacks."""


@dataclass(frozen=True, slots=True)
class PingbackSettings:
    """What an account has set; `sign_version` is that of the code it is shown,
    each form says its own.
    """

    pingback_url: str | None
    test_pingback_url: str | None
    pingback_format: BodyFormat
    sign_version: Version
    extra_events: tuple[str, ...]
    muted_events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    pingback_url: str | None
    test_pingback_url: str | None
    pingback_format: BodyFormat
    sign_version: Version
    extra_events: Sequence[str]
    muted_events: Sequence[str]


async def find_pingback_settings(database: Database, merchant_id: int) -> PingbackSettings:
    """What an account has set. Raises: NotFound."""
    row = record_if_any(_Row, await queries.find(database, merchant_id=merchant_id))
    if row is None:
        raise NotFound(f"there is no merchant {merchant_id}")
    return PingbackSettings(
        pingback_url=row.pingback_url,
        test_pingback_url=row.test_pingback_url,
        pingback_format=row.pingback_format,
        sign_version=row.sign_version,
        extra_events=tuple(row.extra_events),
        muted_events=tuple(row.muted_events),
    )


async def signs_with_v1(database: Database, shop: Shop) -> bool:
    """Whether the shop's newest payment on this side came by a form of signature version 1."""
    return bool(await queries.newest_sign_version(database, merchant_id=shop.merchant_id, live=shop.live) == "v1")


async def save_pingback_settings(gate: Gate, session: Session, wanted: PingbackSettings, *, now: datetime) -> int:
    """Take new settings; pingbacks that waited for a URL are sent. Returns how many those are.

    Raises: Forbidden; Malformed for a URL that is none or an event that can't be chosen.
    """
    merchant_id = require(session, Permission.manage_integration).merchant_id
    _check(wanted)
    before = await find_pingback_settings(gate.database, merchant_id)
    changed = {name: value for name, value in asdict(wanted).items() if value != getattr(before, name)}
    if not changed:
        return 0
    async with gate.database.acquire() as connection, connection.transaction():
        events = {name: list(getattr(wanted, name)) for name in ("extra_events", "muted_events")}
        await queries.save(connection, merchant_id=merchant_id, **{**asdict(wanted), **events})
        await record(
            connection,
            session.actor,
            Action.integration_changed,
            now=now,
            merchant_id=merchant_id,
            details=changed,
        )
        if "pingback_url" in changed and (before.pingback_url or session.went_live_at):
            # The first one of a shop that only tries things is no news.
            url = wanted.pingback_url or ""
            await warn_owners(
                connection, PINGBACKS_MOVED, session.actor, merchant_id=merchant_id, now=now, pingback_url=url
            )
    if not changed.keys() & {"pingback_url", "test_pingback_url"}:
        return 0
    return await send_waiting(gate.database, await find_merchant(gate.database, merchant_id), now=now)


def _check(wanted: PingbackSettings) -> None:
    parse_pingback_url(wanted.pingback_url or "", "the pingback URL", "pingback_url")
    parse_pingback_url(wanted.test_pingback_url or "", "the test pingback URL", "test_pingback_url")
    known = {
        "pingback_format": (("json", "form"), (wanted.pingback_format,)),
        "sign_version": (("v1", "v2"), (wanted.sign_version,)),
        "extra_events": (EXTRA_EVENTS, wanted.extra_events),
        "muted_events": (MUTABLE_EVENTS, wanted.muted_events),
    }
    for name, (possible, chosen) in known.items():
        if not set(chosen) <= set(possible):
            raise Malformed(worded("choose among %(possible)s", possible=", ".join(possible)), name)
