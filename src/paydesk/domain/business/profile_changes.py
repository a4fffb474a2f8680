"""What a live merchant changes of its business profile: proposed, seen by an operator,
and only then in force.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from paydesk.core.bank_accounts import parse_iban
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, Actor
from paydesk.domain.accounts.notices import warn_owners
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require, require_recent
from paydesk.domain.business import profiles
from paydesk.domain.business.profile_details import Details, DetailsRow, parse_reason, unsaid
from paydesk.domain.business.profiles import Profile, ProfileStatus, find_profile, record_profile
from paydesk.domain.mail.kinds import MailKind
from paydesk.domain.mail.notifying import tell_owners

queries = load_statements(__package__ or "", "profile_changes.sql")

CHANGE_PROPOSED = "profile_change_proposed"
BANK_PROPOSED = "bank_account_proposed"
"""What the owners are told when somebody proposes a change, and another bank account."""


class ChangeStatus(StrEnum):
    """Where a proposed change stands."""

    waiting = "waiting"
    accepted = "accepted"
    refused = "refused"
    withdrawn = "withdrawn"


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """A proposed version; `iban_last4` is empty if the bank account stays. Times are UTC."""

    status: ChangeStatus
    details: Details
    iban_last4: str
    proposed_at: datetime
    decided_at: datetime | None
    reason: str

    @property
    def waits(self) -> bool:
        """Whether an operator has still to look at it."""
        return self.status == ChangeStatus.waiting

    def differences(self, accepted: Profile) -> list[tuple[str, str, str]]:
        """What it changes of the accepted version:
        names of fields, each with what is in force and what is proposed.
        """
        old, new = asdict(accepted.details), asdict(self.details)
        changed = [(name, old[name], new[name]) for name in new if old[name] != new[name]]
        return changed + ([("iban", accepted.iban_last4, self.iban_last4)] if self.iban_last4 else [])


@dataclass(frozen=True, slots=True)
class _Row(DetailsRow):
    status: ChangeStatus
    iban_last4: str
    proposed_at: datetime
    decided_at: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Accepted:
    payouts_from: datetime | None


async def newest_change(database: Database, merchant_id: int) -> ProfileChange | None:
    """The change that was proposed last, whatever became of it."""
    row = record_if_any(_Row, await queries.newest(database, merchant_id=merchant_id))
    if row is None:
        return None
    return ProfileChange(row.status, row.details, row.iban_last4, row.proposed_at, row.decided_at, row.reason)


async def waiting_change(database: Database, merchant_id: int) -> ProfileChange | None:
    """The change that waits for an operator, if one does."""
    newest = await newest_change(database, merchant_id)
    return newest if newest is not None and newest.waits else None


async def keep_profile(
    gate: Gate, session: Session, details: Mapping[str, str], *, iban: str = "", now: datetime
) -> bool:
    """Keep what a merchant says of the details that are named: as a draft, or beside an accepted
    profile as a proposed change; tells which.

    Raises: as `save_profile` and `propose_change`.
    """
    merchant_id = require(session, Permission.manage_settings).merchant_id
    accepted = await find_profile(gate.database, merchant_id)
    if accepted.status != ProfileStatus.accepted:
        await profiles.save_profile(gate, session, details, iban=iban, now=now)
        return False
    wanted = replace(accepted.details, **details)
    await propose_change(gate, session, accepted, wanted, iban=iban, now=now)
    return True


async def propose_change(
    gate: Gate, session: Session, accepted: Profile, details: Details, *, iban: str = "", now: datetime
) -> None:
    """Ask the operator to take another version; an empty IBAN, or the same, keeps the bank account.

    Raises: Forbidden; Malformed for the IBAN, for what is missing, and if nothing differs;
    ConfirmationNeeded for a bank account; Conflict while another change waits.
    """
    merchant_id = require(session, Permission.manage_settings).merchant_id
    number = await _another_iban(gate, session, merchant_id, iban, now)
    _require_complete(details)
    if details == accepted.details and not number:
        raise Malformed(worded("nothing is changed: what stands here is accepted already"))
    sealed = profiles.seal_iban(gate.vault, merchant_id, number) if number else None
    async with gate.database.acquire() as connection, connection.transaction():
        proposed = await queries.propose(
            connection,
            merchant_id=merchant_id,
            based_on=accepted.changed_at,
            **asdict(details),
            iban_sealed=sealed.blob if sealed else None,
            vault_key_id=sealed.key_id if sealed else "",
            iban_last4=number[-4:],
            person_id=session.person.id,
            now=now,
        )
        if proposed is None:
            raise Conflict(worded("a change is being looked at; take it back to propose another one"))
        facts = {"bank_account": bool(number)}
        await record_profile(connection, session.actor, Action.profile_change_asked, merchant_id, now, facts)
        what = BANK_PROPOSED if number else CHANGE_PROPOSED
        await warn_owners(connection, what, session.actor, merchant_id=merchant_id, now=now)


async def _another_iban(gate: Gate, session: Session, merchant_id: int, iban: str, now: datetime) -> str:
    """The number of another bank account than the accepted one, else nothing.

    Raises: Malformed, ConfirmationNeeded.
    """
    if not iban:
        return ""
    number = parse_iban(iban)
    require_recent(session, now=now)
    present = await profiles.accepted_iban(gate.database, gate.vault, merchant_id)
    return "" if number == present else number


def _require_complete(details: Details) -> None:
    """Raises: Malformed, naming what is missing: who is live has to stay known."""
    if missing := unsaid(details):
        raise Malformed(worded("this can't be empty while you may take real payments"), *missing)


async def withdraw_change(gate: Gate, session: Session, *, now: datetime) -> None:
    """Take a proposed change back. Raises: Forbidden; Conflict if it was answered already."""
    merchant_id = require(session, Permission.manage_settings).merchant_id
    async with gate.database.acquire() as connection, connection.transaction():
        if await queries.withdraw(connection, merchant_id=merchant_id, now=now) is None:
            raise Conflict(worded("the change was answered already"))
        await record_profile(connection, session.actor, Action.profile_change_withdrawn, merchant_id, now)


async def accept(
    database: Database,
    actor: Actor,
    merchant_id: int,
    *,
    seen: datetime,
    despite: str = "",
    iban_wait: timedelta,
    now: datetime,
) -> None:
    """Accept what waits of a merchant, a request to go live or a change;
    `seen` is since when it waits.

    `despite` says why a profile is accepted of which something is missing; a change is complete.
    Payouts to another bank account wait for `iban_wait` from now on.
    Raises: Conflict if nothing waits any more, or something else than was looked at; Malformed,
        naming what is missing, without such a reason.
    """
    async with database.acquire() as connection, connection.transaction():
        parts = {"merchant_id": merchant_id, "seen": seen, "person_id": actor.person_id, "wait": iban_wait, "now": now}
        accepted = record_if_any(_Accepted, await queries.accept(connection, **parts))
        if accepted is None:
            await profiles.accept_profile(
                connection, actor, merchant_id, seen=seen, despite=despite, iban_wait=iban_wait, now=now
            )
            return
        await record_profile(connection, actor, Action.profile_change_approved, merchant_id, now)
        from_then = accepted.payouts_from
        await tell_owners(connection, merchant_id, MailKind.profile_change_accepted, now=now, payouts_from=from_then)


async def refuse(
    database: Database, actor: Actor, merchant_id: int, *, seen: datetime, reason: str, now: datetime
) -> None:
    """Send back what waits of a merchant, with a reason; an accepted version stays in force.

    Raises: Malformed without a reason; Conflict if nothing waits any more, or something else than
        was looked at.
    """
    words = parse_reason(reason)
    async with database.acquire() as connection, connection.transaction():
        parts = {"merchant_id": merchant_id, "seen": seen, "person_id": actor.person_id, "reason": words, "now": now}
        if await queries.refuse(connection, **parts) is None:
            await profiles.refuse_profile(connection, actor, merchant_id, seen=seen, reason=words, now=now)
            return
        await record_profile(connection, actor, Action.profile_change_refused, merchant_id, now, {"reason": words})
        await tell_owners(connection, merchant_id, MailKind.profile_change_refused, now=now, reason=words)


async def seen_now(database: Connection, merchant_id: int) -> datetime:
    """Since when what waits of a merchant waits, by which it is answered.

    Raises: NotFound, Conflict.
    """
    profile = await find_profile(database, merchant_id)
    if profile.status == ProfileStatus.submitted and profile.submitted_at is not None:
        return profile.submitted_at
    change = await waiting_change(database, merchant_id)
    if change is None:
        raise profiles.not_waiting(merchant_id)
    return change.proposed_at
