"""How a merchant's server and Paydesk talk: key pairs, where pingbacks go and what is in them,
the test clock.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.periods import Period
from paydesk.core.urls import check_url
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.gate import Gate
from paydesk.domain.accounts.notices import warn_owners
from paydesk.domain.accounts.roles import Permission, allows
from paydesk.domain.accounts.sessions import Session, require, require_recent
from paydesk.domain.merchants import keys
from paydesk.domain.merchants.keys import ALL_SCOPES, KeyPair, Scope, in_order
from paydesk.domain.merchants.merchant import MUTABLE_EVENTS, BodyFormat, find_merchant
from paydesk.domain.merchants.shares import Asker, Work, take_share
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.requests import LONGEST
from paydesk.domain.pingbacks.resending import send_waiting
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.subscriptions.ending import EXPIRED_EVENT
from paydesk.domain.test_clock.advancing import MOST_SECONDS, HeldUp, Stopped, Summary, advance
from paydesk.domain.test_clock.resetting import reset_test_side

queries = load_statements(__package__ or "", "integration.sql")

SignVersion = Literal["v1", "v2"]

EXTRA_EVENTS = (EXPIRED_EVENT,)
"""Pingbacks that are sent only to who asks for them."""

GRACE_PERIODS = (timedelta(0), timedelta(hours=24), timedelta(days=7))
"""How long the old keys may go on after new ones are made."""

PATIENCE = 20.0
"""Seconds that moving the clock waits, all in all, for outcomes that are unknown:
somebody looks at an empty page."""

PINGBACKS_MOVED = "pingback_url_changed"
"""What the owners are told of another address for pingbacks."""

_MOST_KEYS = 20


@dataclass(frozen=True, slots=True)
class Integration:
    """What an account has set; `sign_version` is that of the code it is shown,
    each form says its own.
    """

    pingback_url: str | None
    test_pingback_url: str | None
    pingback_format: BodyFormat
    sign_version: SignVersion
    extra_events: tuple[str, ...]
    muted_events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The public half of a pair; `valid_until` is None while no newer one has taken its place.
    Times are UTC.
    """

    id: int
    public_key: str
    created_at: datetime
    valid_until: datetime | None
    scopes: tuple[Scope, ...]
    moves_live: bool


def parse_pingback_url(url: str, called: str, field: str = "pingback_url") -> str:
    """Check a URL as the checkout form's is checked; empty stays empty.

    Raises: Malformed, naming the field.
    """
    if not url:
        return url
    longest = LONGEST["pingback_url"]
    if len(url) > longest:
        raise Malformed(f"{called} has {len(url)} characters, at most {longest} are accepted", field)
    try:
        scheme = check_url(url, called)
    except Malformed as error:
        raise Malformed(error.message, field) from None
    if scheme not in ("http", "https"):
        raise Malformed(f"{called} must be an absolute http or https URL", field)
    if "@" in urlsplit(url).netloc:
        raise Malformed(f"{called} must not carry a user name or password", field)
    return url


async def find_integration(database: Database, merchant_id: int) -> Integration:
    """What an account has set. Raises: NotFound."""
    row = await queries.find(database, merchant_id=merchant_id)
    if row is None:
        raise NotFound(f"there is no merchant {merchant_id}")
    events = {name: tuple(row[name]) for name in ("extra_events", "muted_events")}
    return Integration(**{**dict(row), **events})


async def signs_with_v1(database: Database, shop: Shop) -> bool:
    """Whether the shop's newest payment on this side came by a form of signature version 1."""
    return bool(await queries.newest_sign_version(database, merchant_id=shop.merchant_id, live=shop.live) == "v1")


async def save_integration(gate: Gate, session: Session, wanted: Integration, *, now: datetime) -> int:
    """Take new settings; pingbacks that waited for a URL are sent. Returns how many those are.

    Raises: Forbidden; Malformed for a URL that is none or an event that can't be chosen.
    """
    merchant_id = require(session, Permission.manage_integration).merchant_id
    _check(wanted)
    before = await find_integration(gate.database, merchant_id)
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


def _check(wanted: Integration) -> None:
    parse_pingback_url(wanted.pingback_url or "", "the pingback URL")
    parse_pingback_url(wanted.test_pingback_url or "", "the test pingback URL", "test_pingback_url")
    known = {
        "pingback_format": (("json", "form"), (wanted.pingback_format,)),
        "sign_version": (("v1", "v2"), (wanted.sign_version,)),
        "extra_events": (EXTRA_EVENTS, wanted.extra_events),
        "muted_events": (MUTABLE_EVENTS, wanted.muted_events),
    }
    for name, (possible, chosen) in known.items():
        if not set(chosen) <= set(possible):
            raise Malformed(f"choose among {', '.join(possible)}", name)


async def public_keys(database: Database, merchant_id: int) -> list[PublicKey]:
    """A merchant's newest public keys, newest first."""
    rows = [row async for row in queries.public_keys(database, merchant_id=merchant_id, most=_MOST_KEYS)]
    return [PublicKey(**{**dict(row), "scopes": in_order(row["scopes"])}) for row in rows]


async def old_key(database: Database, merchant_id: int, key_id: int, *, now: datetime) -> PublicKey:
    """A key that was replaced and is still valid.

    Raises: NotFound for every other: the newest one is never ended.
    """
    known = {key.id: key for key in await public_keys(database, merchant_id)}
    key = known.get(key_id)
    if key is None or key.valid_until is None or key.valid_until <= now:
        raise _no_old_key()
    return key


def _no_old_key() -> NotFound:
    return NotFound("there is no old key like this that is still valid; it may have ended already")


async def rotate_keys(
    gate: Gate,
    session: Session,
    *,
    replaces: int,
    grace: timedelta,
    now: datetime,
    scopes: frozenset[Scope] = ALL_SCOPES,
) -> KeyPair:
    """Make a new pair; the others end after a while.
    The private key is in the result and never shown again.

    Once a shop is live, a key that moves money is made by who may refund, and one that somebody
    else made before moves test money alone: they would get by the key what their role withholds.

    Raises: Forbidden; ConfirmationNeeded; Malformed for another grace period; Conflict as
        `keys.rotate` does.
    """
    merchant_id = require(session, Permission.manage_keys).merchant_id
    require_recent(session, now=now)
    if grace not in GRACE_PERIODS:
        raise Malformed("choose how long the old keys may go on", "grace")
    if not scopes:
        raise Malformed("choose what the new key may do", "scopes")
    if Scope.move in scopes and session.went_live_at:
        require(session, Permission.refund)
    async with gate.database.acquire() as connection, connection.transaction():
        pair = await keys.rotate(
            connection,
            gate.vault,
            merchant_id,
            replaces=replaces,
            grace=grace,
            now=now,
            scopes=scopes,
            moves_live=allows(session.role, Permission.refund),
        )
        await record(
            connection,
            session.actor,
            Action.key_rotated,
            now=now,
            merchant_id=merchant_id,
            subject=f"key {pair.id}",
            details={"public_key": pair.public, "scopes": sorted(scopes), "old_keys_until": now + grace},
        )
        await warn_owners(connection, Action.key_rotated, session.actor, merchant_id=merchant_id, now=now)
    return pair


async def end_key(gate: Gate, session: Session, key_id: int, *, now: datetime) -> None:
    """End an old key now, instead of at the end of its grace period:
    forms and calls with it are refused at once.

    What it signed before, such as the pingbacks of running subscriptions, goes on being signed
    with it.

    Raises: Forbidden; ConfirmationNeeded; NotFound as `old_key` does.
    """
    merchant_id = require(session, Permission.manage_keys).merchant_id
    require_recent(session, now=now)
    async with gate.database.acquire() as connection, connection.transaction():
        ended = await queries.end_key(connection, merchant_id=merchant_id, id=key_id, now=now)
        if ended is None:
            raise _no_old_key()
        await record(
            connection,
            session.actor,
            Action.key_ended,
            now=now,
            merchant_id=merchant_id,
            subject=f"key {key_id}",
            details={"public_key": ended},
        )
        await warn_owners(connection, Action.key_ended, session.actor, merchant_id=merchant_id, now=now)


async def move_clock(
    desk: Desk, sender: PingbackSender, session: Session, by: Period, *, client_address: str, now: datetime
) -> Summary:
    """Move the test side forward, as `advancing.advance` does. Moves (simulated) money.

    Raises: Forbidden; Conflict for the live side, which has no clock, and while somebody else moves
    it; Malformed; TooMany if too many clocks are being moved for them, or if there is more to do
    than there is time for; Held.
    """
    merchant_id = _test_side(session)
    asker = Asker(client_address, Shop(merchant_id, live=False), session.person.id)
    share = await take_share(desk.database, Work.TEST_CLOCK, asker)
    reached: Summary | Stopped | HeldUp
    async with share.held():
        try:
            reached = await advance(desk, sender, merchant_id, by, patience=PATIENCE, most_seconds=MOST_SECONDS)
        except (Stopped, HeldUp) as stopped:
            reached = stopped
    details = {"from": reached.started_at, "to": reached.now}
    await record(
        desk.database, session.actor, Action.test_clock_moved, now=now, merchant_id=merchant_id, details=details
    )
    if isinstance(reached, Stopped | HeldUp):
        raise reached
    return reached


async def start_anew(database: Database, session: Session, *, now: datetime) -> int:
    """Delete all test data and return the test clock to real time; returns how many rows went.

    Raises: Forbidden; Conflict for the live side, and while the test side is in use.
    """
    merchant_id = _test_side(session)
    rows = sum((await reset_test_side(database, merchant_id)).values())
    await record(
        database, session.actor, Action.test_side_reset, now=now, merchant_id=merchant_id, details={"rows": rows}
    )
    return rows


def _test_side(session: Session) -> int:
    shop = require(session, Permission.move_test_clock)
    if shop.live:
        raise Conflict("live data has no test clock; switch to test mode")
    return shop.merchant_id
