"""A merchant's key pairs, as its team replaces and ends them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.notices import warn_owners
from paydesk.domain.accounts.roles import Permission, allows
from paydesk.domain.accounts.sessions import Session, require, require_recent
from paydesk.domain.merchants import keys
from paydesk.domain.merchants.keys import ALL_SCOPES, KeyPair, KeyScope, in_order

queries = load_statements(__package__ or "", "key_pairs.sql")

GRACE_PERIODS = (timedelta(0), timedelta(hours=24), timedelta(days=7))
"""How long the old keys may go on after new ones are made."""

_MOST_KEYS = 20
_TO_SEE = (Permission.manage_keys, Permission.refund)
"""What it takes to see a key that may do everything."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The public half of a pair; `valid_until` is None while no newer one has taken its place.
    Times are UTC.
    """

    id: int
    public_key: str
    created_at: datetime
    valid_until: datetime | None
    scopes: tuple[KeyScope, ...]
    moves_live: bool


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    public_key: str
    created_at: datetime
    valid_until: datetime | None
    scopes: Sequence[str]
    moves_live: bool


async def public_keys(database: Database, merchant_id: int, *, most: int = _MOST_KEYS) -> list[PublicKey]:
    """A merchant's newest public keys, newest first."""
    rows = await records_of(_Row, queries.public_keys(database, merchant_id=merchant_id, most=most))
    return [
        PublicKey(row.id, row.public_key, row.created_at, row.valid_until, in_order(row.scopes), row.moves_live)
        for row in rows
    ]


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
    scopes: frozenset[KeyScope] = ALL_SCOPES,
) -> KeyPair:
    """Make a new pair; the others end after a while.
    The private key is in the result and never shown again.

    Once a shop is live, a key that moves money is made by who may refund, and one that somebody
    else made before moves test money alone: they would get by the key what their role withholds.

    Raises: Forbidden; ConfirmationNeeded; Malformed for another grace period; Conflict and
        Unavailable as `keys.rotate` does.
    """
    merchant_id = require(session, Permission.manage_keys).merchant_id
    require_recent(session, now=now)
    if grace not in GRACE_PERIODS:
        raise Malformed(worded("choose how long the old keys may go on"), "grace")
    if not scopes:
        raise Malformed(worded("choose what the new key may do"), "scopes")
    if KeyScope.move in scopes and session.went_live_at:
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
            entering=gate.entering,
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


async def unseen_key(database: Database, session: Session) -> int | None:
    """The id of the shop's first key while nobody has seen its private half, for who may see it:
    it moves money, too.
    """
    if session.merchant_id is None or not all(allows(session.role, needed) for needed in _TO_SEE):
        return None
    found: int | None = await queries.unseen_key(database, merchant_id=session.merchant_id)
    return found


async def show_first_keys(gate: Gate, session: Session, *, now: datetime) -> tuple[str, str]:
    """The pair that a shop was opened with, public and private, this once.

    Raises: Forbidden; ConfirmationNeeded; Conflict if it was seen before, has been replaced, or may
        do more than who asks.
    """
    merchant_id = require(session, Permission.manage_keys).merchant_id
    require_recent(session, now=now)
    seen = Conflict("these keys are not shown any more; make new ones if you don't have them")
    key_id = await unseen_key(gate.database, session)
    if key_id is None:
        raise seen
    async with gate.database.acquire() as connection, connection.transaction():
        public = await queries.lock_key(connection, merchant_id=merchant_id, id=key_id)
        if await queries.unseen_key(connection, merchant_id=merchant_id) != key_id:
            raise seen
        private = await keys.private_key_of(connection, gate.vault, merchant_id, key_id)
        subject = f"key {key_id}"
        await record(
            connection, session.actor, Action.key_shown, now=now, merchant_id=merchant_id, subject=subject, details={}
        )
    return public, private


async def end_key(gate: Gate, session: Session, key_id: int, *, now: datetime) -> None:
    """End an old key now, instead of at the end of its grace period:
    forms and calls with it are refused at once.

    What began under it goes on, and has its pingbacks signed with the newest from now on.

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
