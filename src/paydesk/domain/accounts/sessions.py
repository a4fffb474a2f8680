"""Sessions: found by a cookie's token, ended by their person or by time,
and what each may do just now.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from paydesk.core.errors import Forbidden, NotFound
from paydesk.core.storable import storable_text
from paydesk.core.wording import worded
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.access_needs import Client, ConfirmationNeeded, Gate, NotLoggedIn, SecondFactorNeeded
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.people import Person
from paydesk.domain.accounts.roles import Permission, Role, allows
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "sessions.sql")

LIFETIME = timedelta(days=14)
"""Then everybody logs in again."""
IDLE = timedelta(hours=12)
"""A session that nobody used for so long has ended."""
OPERATOR_IDLE = timedelta(minutes=15)
"""The same for operators, who reach every merchant's money."""
HALFWAY = timedelta(minutes=15)
"""How long a session may stay without the second factor that it needs."""
RECENT = timedelta(minutes=10)
"""How long a password that was given again counts."""

_LONGEST_USER_AGENT = 300


class Stage(StrEnum):
    """What a session needs next."""

    second_factor = "second_factor"
    """A code of the second factor that is set up."""
    enrolment = "enrolment"
    """To set one up: an operator has none yet."""
    open = "open"


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody logged in, and what they look at: a merchant of theirs (None if they are in no team)
    and its side.

    `role` is their part in that merchant's team, which an operator may have suspended for a reason;
    `client` is where this request comes from. Times are UTC.
    """

    id: int
    person: Person
    stage: Stage
    merchant_id: int | None
    merchant_name: str
    test_mode: bool
    went_live_at: datetime | None
    role: Role | None
    live: bool
    client: Client
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None
    suspended_at: datetime | None = None
    suspended_reason: str = ""

    @property
    def actor(self) -> Actor:
        """Who to write into the audit log for what is done as a member of a team,
        or for oneself.
        """
        return Actor(self.person.id, self.client.address)

    @property
    def operator(self) -> Actor:
        """Who to write into the audit log for what is done as an operator."""
        return Actor(self.person.id, self.client.address, operator=True)


@dataclass(frozen=True, slots=True)
class _Found(Person):
    """The person of a token, with the session that it opens and what they look at."""

    session_id: int
    session_created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None
    second_factor_at: datetime | None
    live: bool
    merchant_id: int | None
    merchant_name: str
    test_mode: bool
    went_live_at: datetime | None
    suspended_at: datetime | None
    suspended_reason: str
    role: Role | None


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """A new session and its token, for the cookie; the token is stored nowhere."""

    token: str
    session: Session


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session as its person sees it in a list; `current` is the one that looks."""

    id: int
    created_at: datetime
    last_seen_at: datetime
    client_address: str
    user_agent: str
    current: bool


async def begin_session(
    connection: Connection,
    gate: Gate,
    person_id: int,
    client: Client,
    *,
    halfway: bool,
    now: datetime,
    confirmed: bool = True,
    second_factor: bool = False,
) -> str:
    """Open a session on the connection's transaction and return its token;
    `halfway` if a second factor is due, `second_factor` if it was given.

    Logging in is giving the password; it is not `confirmed` for who came otherwise.
    """
    token = secrets.token_urlsafe(32)
    await queries.begin_session(
        connection,
        token_hash=_hash(gate, token),
        person_id=person_id,
        expires_at=now + (HALFWAY if halfway else LIFETIME),
        client_address=client.address,
        user_agent=storable_text(client.user_agent, longest=_LONGEST_USER_AGENT),
        confirmed_at=now if confirmed else None,
        second_factor_at=now if second_factor else None,
        now=now,
    )
    return token


async def renew_token(connection: Connection, gate: Gate, session: Session) -> str:
    """Give a session that may do more from now on another token, and return it;
    the old one is worth nothing.
    """
    token = secrets.token_urlsafe(32)
    await queries.renew_token(connection, id=session.id, token_hash=_hash(gate, token))
    return token


async def find_session(gate: Gate, token: str, client: Client, *, now: datetime, by_itself: bool = False) -> Session:
    """The session of a cookie's token, with what its person looks at;
    using it keeps it from falling asleep.

    A page that asks for news `by_itself` does not: nobody may sit before it.

    Raises: NotLoggedIn.
    """
    found = record_if_any(
        _Found,
        await queries.find_session(
            gate.database,
            token_hash=_hash(gate, token),
            client_address=client.address,
            now=now,
            idle=IDLE,
            operator_idle=OPERATOR_IDLE,
            by_itself=by_itself,
        ),
    )
    if found is None:
        raise NotLoggedIn("this session has ended; log in")
    return _session(found, client)


def form_token(gate: Gate, token: str) -> str:
    """What each form of a session carries so that no other site can post it:
    a keyed hash of the cookie's token.
    """
    return gate.vault.fingerprint(token, purpose="account form").hex()


def form_token_fits(gate: Gate, token: str, given: str) -> bool:
    """Whether a form's token belongs to the cookie's; compared in constant time."""
    return hmac.compare_digest(form_token(gate, token).encode(), given.encode(errors="replace"))


def require(session: Session, permission: Permission) -> Shop:
    """The side of the merchant that the session looks at, if its role may do this there.

    Raises: SecondFactorNeeded; NotFound if the person is in no team; Forbidden if the role doesn't
        allow it.
    """
    require_open(session)
    if session.merchant_id is None or session.role is None:
        raise NotFound("you are in no merchant's team; open a shop, or ask an owner to invite you")
    if not allows(session.role, permission):
        raise Forbidden(
            f"your role here is {session.role}, which may not do this ({permission}); "
            f"ask an owner of {session.merchant_name}"
        )
    return Shop(session.merchant_id, session.live)


def require_operator(session: Session) -> Actor:
    """The operator who acts.

    Raises: SecondFactorNeeded; NotFound for everybody else, to whom the console does not exist.
    """
    if not session.person.operator:
        raise NotFound("there is no such page")
    require_open(session)
    return session.operator


def require_open(session: Session) -> None:
    """Make sure that the session has passed its second factor.

    Raises: SecondFactorNeeded.
    """
    if session.stage is Stage.second_factor:
        raise SecondFactorNeeded(worded("give the code of your second factor first"))
    if session.stage is Stage.enrolment:
        raise SecondFactorNeeded(worded("set up a second factor first; operators need one"))


def require_recent(session: Session, *, now: datetime, minutes: int = RECENT.seconds // 60) -> None:
    """Make sure that the password was given lately: before keys, refunds over a limit, payouts.

    Raises: ConfirmationNeeded, SecondFactorNeeded.
    """
    require_open(session)
    if not is_recent(session, now=now, minutes=minutes):
        raise ConfirmationNeeded(worded("give your password again to go on"))


def is_recent(session: Session, *, now: datetime, minutes: int = RECENT.seconds // 60) -> bool:
    """Whether the password was given lately."""
    return session.confirmed_at is not None and now - session.confirmed_at <= timedelta(minutes=minutes)


async def look_at(gate: Gate, session: Session, merchant_id: int, *, live: bool = False) -> None:
    """Look at a merchant and a side of it from the next request on;
    changes nothing but what this session sees.

    Raises: NotFound if the person is not in its team.
    """
    seen = await queries.look_at(gate.database, id=session.id, merchant_id=merchant_id, live=live)
    if seen is None:
        raise NotFound("you are not in this merchant's team")


async def list_sessions(gate: Gate, session: Session, *, now: datetime) -> list[OpenSession]:
    """The person's sessions that are alive, the last used first.

    Raises: SecondFactorNeeded.
    """
    require_open(session)
    idle = OPERATOR_IDLE if session.person.operator else IDLE
    rows = queries.list_sessions(gate.database, person_id=session.person.id, own_id=session.id, now=now, idle=idle)
    return await records_of(OpenSession, rows)


async def end_session(gate: Gate, session: Session, session_id: int, *, now: datetime) -> None:
    """End one of the person's own sessions: this one by logging out, or another.

    Raises: NotFound if it is somebody else's or has ended; SecondFactorNeeded to end another.
    """
    own = session_id == session.id
    if not own:
        require_open(session)
    action = Action.logged_out if own else Action.session_ended
    async with gate.database.acquire() as connection, connection.transaction():
        if await queries.end_session(connection, id=session_id, person_id=session.person.id) is None:
            raise NotFound("there is no such session; it may have ended already")
        await record(connection, session.actor, action, now=now, subject=f"session {session_id}")


async def end_other_sessions(gate: Gate, session: Session, *, now: datetime) -> int:
    """End all sessions of the person but this one; returns how many.

    Raises: SecondFactorNeeded.
    """
    require_open(session)
    async with gate.database.acquire() as connection, connection.transaction():
        ended = await end_all_sessions(connection, session.person.id, but=session.id)
        if ended:
            await record(connection, session.actor, Action.session_ended, now=now, details={"sessions": ended})
    return ended


async def end_all_sessions(connection: Connection, person_id: int, *, but: int = 0) -> int:
    """End every session of a person, except one, on the connection's transaction;
    returns how many.
    """
    return int(await queries.end_all_sessions(connection, person_id=person_id, but=but))


async def forget_sessions(database: Connection, *, now: datetime) -> None:
    """Drop sessions whose time is over."""
    await queries.forget_sessions(database, now=now, idle=IDLE)


def _session(found: _Found, client: Client) -> Session:
    return Session(
        id=found.session_id,
        person=_person(found),
        stage=_stage(found),
        merchant_id=found.merchant_id,
        merchant_name=found.merchant_name,
        test_mode=found.test_mode,
        went_live_at=found.went_live_at,
        role=found.role,
        live=found.live,
        client=client,
        created_at=found.session_created_at,
        last_seen_at=found.last_seen_at,
        expires_at=found.expires_at,
        confirmed_at=found.confirmed_at,
        suspended_at=found.suspended_at,
        suspended_reason=found.suspended_reason,
    )


def _person(found: _Found) -> Person:
    return Person(
        id=found.id,
        email=found.email,
        name=found.name,
        email_confirmed_at=found.email_confirmed_at,
        second_factor=found.second_factor,
        codes_left=found.codes_left,
        operator=found.operator,
        language=found.language,
        language_chosen=found.language_chosen,
        time_zone=found.time_zone,
        created_at=found.created_at,
    )


def _stage(found: _Found) -> Stage:
    if found.second_factor:
        return Stage.open if found.second_factor_at else Stage.second_factor
    return Stage.enrolment if found.operator else Stage.open


def _hash(gate: Gate, token: str) -> bytes:
    return gate.vault.fingerprint(token, purpose="account session")
