"""Teams: who may do what at a merchant. A team always keeps an owner."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paydesk.core.email_addresses import in_small_letters, parse_email
from paydesk.core.errors import Conflict, Forbidden, NotFound
from paydesk.core.wording import worded
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts import lockout
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import COMMAND_LINE, Action, Actor, record
from paydesk.domain.accounts.notices import Mail, send_link
from paydesk.domain.accounts.people import queries as people_queries
from paydesk.domain.accounts.roles import Permission, Role, allows
from paydesk.domain.accounts.sessions import Session, require, require_open
from paydesk.domain.accounts.sessions import queries as session_queries
from paydesk.domain.accounts.tokens import link_gone
from paydesk.domain.merchants.merchant import find_merchant

queries = load_statements(__package__ or "", "team.sql")

INVITATION_LIFETIME = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Membership:
    """A merchant in whose team a person is: what the merchant switcher shows."""

    merchant_id: int
    merchant_name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody in a merchant's team."""

    person_id: int
    name: str
    email: str
    role: Role
    second_factor: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation that is open; `has_account` is known only where a link was followed.

    `invited_by` is a name, empty for an operator.
    """

    merchant_id: int
    id: int
    merchant_name: str
    email: str
    role: Role
    invited_by: str
    created_at: datetime
    expires_at: datetime
    has_account: bool


@dataclass(frozen=True, slots=True)
class UsedInvitation:
    """An invitation that was just used up."""

    merchant_id: int
    id: int
    email: str
    role: Role


@dataclass(frozen=True, slots=True)
class _Place:
    """A person's role in a team that is locked."""

    person_id: int
    role: Role


@dataclass(frozen=True, slots=True)
class SentInvitation:
    """An invitation that was just made, and its link's token, which is stored nowhere."""

    id: int
    email: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Inviter:
    """Who invites: for the log, and by which name and in which language for the mail."""

    actor: Actor
    name: str
    language: str


async def add_member(connection: Connection, merchant_id: int, person_id: int, role: Role, *, now: datetime) -> bool:
    """Put a person into a team, on the connection's transaction;
    False if they are in it already.
    """
    added = await queries.add_member(connection, merchant_id=merchant_id, person_id=person_id, role=role, now=now)
    return added is not None


async def memberships_of(gate: Gate, person_id: int) -> list[Membership]:
    """The merchants in whose team a person is, by name."""
    return await records_of(Membership, queries.memberships_of(gate.database, person_id=person_id))


async def members_of(gate: Gate, merchant_id: int) -> list[Member]:
    """A merchant's team, by name."""
    return await records_of(Member, queries.members_of(gate.database, merchant_id=merchant_id))


async def invitations_of(gate: Gate, merchant_id: int, *, now: datetime) -> list[Invitation]:
    """A merchant's open invitations, oldest first."""
    return await records_of(Invitation, queries.invitations_of(gate.database, merchant_id=merchant_id, now=now))


async def invite(gate: Gate, session: Session, *, email: str, role: Role, now: datetime) -> int:
    """Invite somebody into the team of the merchant that is looked at, by mail;
    returns the invitation's id.

    Raises: Malformed; Forbidden, also while one's own address is not confirmed; Conflict if they
    are in the team; TooMany.
    """
    merchant_id = require(session, Permission.manage_team).merchant_id
    if session.person.email_confirmed_at is None:
        raise Forbidden(worded("confirm your own e-mail address first; then you can invite others"))
    address = parse_email(email)
    await lockout.count_try(gate, lockout.INVITATION, merchant_id, now=now)
    await lockout.count_try(gate, lockout.INVITER, session.person.id, now=now)
    await lockout.count_try(gate, lockout.RECIPIENT, address.lower(), now=now)
    inviter = Inviter(session.actor, session.person.name, session.person.language)
    made = await _send_invitation(gate, inviter, merchant_id, session.merchant_name, email=address, role=role, now=now)
    return made.id


async def invite_first(gate: Gate, merchant_id: int, *, email: str, role: Role, now: datetime) -> SentInvitation:
    """Invite somebody as the operator at the command line, say into a team that has nobody yet.

    Raises: NotFound if there is no such merchant; Malformed; Conflict if they are in the team.
    """
    merchant = await find_merchant(gate.database, merchant_id)
    inviter = Inviter(COMMAND_LINE, "", "en")
    return await _send_invitation(gate, inviter, merchant_id, merchant.name, email=email, role=role, now=now)


async def _send_invitation(
    gate: Gate, inviter: Inviter, merchant_id: int, merchant_name: str, *, email: str, role: Role, now: datetime
) -> SentInvitation:
    """Store an invitation, queue its mail and write it down."""
    address, token = parse_email(email), secrets.token_urlsafe(32)
    async with gate.database.acquire() as connection, connection.transaction():
        if await queries.is_member_by_email(connection, merchant_id=merchant_id, email=address):
            raise Conflict(worded("%(address)s is in the team already; change the role instead", address=address))
        stored = await queries.invite(
            connection,
            merchant_id=merchant_id,
            email=address,
            role=role,
            token_hash=_hash(gate, token),
            invited_by=inviter.actor.person_id,
            expires_at=now + INVITATION_LIFETIME,
            now=now,
        )
        sent = SentInvitation(int(stored), address, token)
        await _tell(connection, gate, inviter, sent, merchant_id, merchant_name, role, now)
    return sent


async def _tell(
    connection: Connection,
    gate: Gate,
    inviter: Inviter,
    sent: SentInvitation,
    merchant_id: int,
    merchant_name: str,
    role: Role,
    now: datetime,
) -> None:
    """Queue an invitation's mail and write it into the log."""
    await send_link(
        connection,
        gate,
        Mail.invitation,
        to=sent.email,
        language=inviter.language,
        token=sent.token,
        row_id=sent.id,
        now=now,
        merchant_id=merchant_id,
        merchant_name=merchant_name,
        role=role,
        invited_by=inviter.name,
        by_person=inviter.actor.person_id,
    )
    await record(
        connection,
        inviter.actor,
        Action.member_invited,
        now=now,
        merchant_id=merchant_id,
        subject=sent.email,
        details={"role": role},
    )


async def withdraw_invitation(gate: Gate, session: Session, invitation_id: int, *, now: datetime) -> None:
    """Make an invitation's link stop working.

    Raises: Forbidden; NotFound if there is no such open invitation here.
    """
    merchant_id = require(session, Permission.manage_team).merchant_id
    async with gate.database.acquire() as connection, connection.transaction():
        email = await queries.withdraw(connection, merchant_id=merchant_id, id=invitation_id)
        if email is None:
            raise NotFound("there is no such open invitation; it may have been accepted")
        await _record(connection, session, Action.invitation_withdrawn, email, now)


async def find_invitation(gate: Gate, token: str, *, now: datetime) -> Invitation:
    """The invitation of a link, without accepting it.

    Raises: Gone if it is unknown, used, withdrawn or expired.
    """
    invitation = record_if_any(
        Invitation, await queries.find_invitation(gate.database, token_hash=_hash(gate, token), now=now)
    )
    if invitation is None:
        raise link_gone()
    return invitation


async def accept_invitation(gate: Gate, session: Session, token: str, *, now: datetime) -> int:
    """Join the team as the person who is logged in, and look at it; returns the merchant's id.

    Raises: Gone; Forbidden if the invitation went to another address; SecondFactorNeeded.
    """
    require_open(session)
    async with gate.database.acquire() as connection, connection.transaction():
        accepted = await use_invitation(connection, gate, token, now=now)
        if in_small_letters(accepted.email) != in_small_letters(session.person.email):
            raise Forbidden(
                worded("this invitation is for %(email)s; log in with that address to accept it", email=accepted.email)
            )
        await people_queries.confirm_own_email(connection, person_id=session.person.id, email=accepted.email, now=now)
        await join(connection, session.person.id, session.client.address, accepted, now=now)
        await session_queries.look_at(connection, id=session.id, merchant_id=accepted.merchant_id, live=False)
    return accepted.merchant_id


async def use_invitation(connection: Connection, gate: Gate, token: str, *, now: datetime) -> UsedInvitation:
    """Use an invitation's link up.

    Raises: Gone.
    """
    used = record_if_any(UsedInvitation, await queries.accept(connection, token_hash=_hash(gate, token), now=now))
    if used is None:
        raise link_gone()
    return used


async def change_role(gate: Gate, session: Session, person_id: int, role: Role, *, now: datetime) -> None:
    """Give a member another role, from their next request on.

    Raises: Forbidden; NotFound if they are not in the team; Conflict if it would leave the team
        without an owner.
    """
    merchant_id = require(session, Permission.manage_team).merchant_id
    async with gate.database.acquire() as connection, connection.transaction():
        member = await _locked_member(connection, session, merchant_id, person_id)
        if member.role is role:
            return
        if await queries.change_role(connection, merchant_id=merchant_id, person_id=person_id, role=role) is None:
            raise _last_owner()
        await _record(connection, session, Action.role_changed, _who(member), now, before=member.role, after=role)


async def remove_member(gate: Gate, session: Session, person_id: int, *, now: datetime) -> None:
    """Take somebody out of the team, or leave it oneself, whatever the role;
    effective from the next request on.

    Raises: Forbidden; NotFound if they are not in the team; Conflict if it would leave the team
        without an owner.
    """
    own = person_id == session.person.id
    merchant_id = require(session, Permission.view if own else Permission.manage_team).merchant_id
    async with gate.database.acquire() as connection, connection.transaction():
        member = await _locked_member(connection, session, merchant_id, person_id)
        if await queries.remove_member(connection, merchant_id=merchant_id, person_id=person_id) is None:
            raise _last_owner()
        await _record(connection, session, Action.member_removed, _who(member), now, role=member.role)


async def join(
    connection: Connection, person_id: int, client_address: str, used: UsedInvitation, *, now: datetime
) -> None:
    """Put a person into the team of an invitation that was just used up, and write it down."""
    await add_member(connection, used.merchant_id, person_id, used.role, now=now)
    await record(
        connection,
        Actor(person_id, client_address),
        Action.member_joined,
        now=now,
        merchant_id=used.merchant_id,
        subject=f"person {person_id}",
        details={"role": used.role, "email": used.email},
    )


async def _locked_member(connection: Connection, session: Session, merchant_id: int, person_id: int) -> Member:
    """A member, with the team locked: nobody else changes it until the transaction ends.

    Raises: NotFound; Forbidden if who acts has lost the right to meanwhile.
    """
    places = await records_of(_Place, queries.lock_team(connection, merchant_id=merchant_id))
    roles = {place.person_id: place.role for place in places}
    own = person_id == session.person.id
    if not own and not allows(roles.get(session.person.id), Permission.manage_team):
        raise Forbidden(worded("your role here has changed; you may not do this any more"))
    member = record_if_any(Member, await queries.member_of(connection, merchant_id=merchant_id, person_id=person_id))
    if member is None:
        raise NotFound(f"there is no person {person_id} in this team")
    return member


async def _record(
    connection: Connection, session: Session, action: Action, subject: str, now: datetime, **details: object
) -> None:
    merchant_id = session.merchant_id or 0
    await record(connection, session.actor, action, now=now, merchant_id=merchant_id, subject=subject, details=details)


def _who(member: Member) -> str:
    return f"person {member.person_id} ({member.email})"


def _last_owner() -> Conflict:
    return Conflict("a team needs an owner; make somebody else one first")


def _hash(gate: Gate, token: str) -> bytes:
    return gate.vault.fingerprint(token, purpose="invitation")
