"""Business profiles: what a merchant says about itself, the request to go live,
and the operator's answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from paydesk.adapters.vault import Sealed, Vault
from paydesk.core.bank_accounts import parse_iban
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.notices import warn_owners
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require, require_recent
from paydesk.domain.business.profile_details import (
    Details,
    DetailsRow,
    parse_despite,
    unsaid,
)
from paydesk.domain.mail.kinds import MailKind
from paydesk.domain.mail.notifying import tell_owners

queries = load_statements(__package__ or "", "profiles.sql")

PURPOSE = "bank account"
BANK_CHANGED = "bank_account_changed"
"""What the owners are told of another bank account."""


class ProfileStatus(StrEnum):
    """Where a profile stands: being written, with the operator, or answered."""

    draft = "draft"
    submitted = "submitted"
    accepted = "accepted"
    refused = "refused"


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile as its team and the operator see it: of the bank account only the last digits."""

    merchant_id: int
    status: ProfileStatus
    details: Details
    iban_last4: str
    changed_at: datetime | None
    submitted_at: datetime | None
    decided_at: datetime | None
    reason: str
    payouts_from: datetime | None
    """When payouts to a newly accepted bank account may begin."""
    went_live_at: datetime | None

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of what has still to be said before it can be submitted, and accepted."""
        return (*unsaid(self.details), *(() if self.iban_last4 else ("iban",)))


@dataclass(frozen=True, slots=True)
class WaitingProfile:
    """A profile that waits for the operator, or a change of an accepted one."""

    merchant_id: int
    merchant_name: str
    legal_name: str
    country: str
    change: bool
    submitted_at: datetime


@dataclass(frozen=True, slots=True)
class _Found(DetailsRow):
    """A merchant with its profile; without one everything but `went_live_at` is null."""

    merchant_id: int | None
    status: ProfileStatus
    iban_last4: str
    changed_at: datetime
    submitted_at: datetime | None
    decided_at: datetime | None
    reason: str
    payouts_from: datetime | None
    went_live_at: datetime | None


@dataclass(frozen=True, slots=True)
class _BankAccount:
    account_holder: str
    vault_key_id: str
    iban_sealed: bytes = field(repr=False)


async def find_profile(database: Connection, merchant_id: int) -> Profile:
    """A merchant's profile; an empty draft if nothing was said yet.

    Raises: NotFound if there is no such merchant.
    """
    row = record_if_any(_Found, await queries.find(database, merchant_id=merchant_id))
    if row is None:
        raise NotFound(f"there is no merchant {merchant_id}")
    if row.merchant_id is None:
        return Profile(merchant_id, ProfileStatus.draft, Details(), "", None, None, None, "", None, row.went_live_at)
    return Profile(
        merchant_id=merchant_id,
        status=row.status,
        details=row.details,
        iban_last4=row.iban_last4,
        changed_at=row.changed_at,
        submitted_at=row.submitted_at,
        decided_at=row.decided_at,
        reason=row.reason,
        payouts_from=row.payouts_from,
        went_live_at=row.went_live_at,
    )


async def save_profile(
    gate: Gate, session: Session, details: Mapping[str, str], *, iban: str = "", now: datetime
) -> None:
    """Keep what was said of the details that are named, as a draft; the others stay,
    and without an IBAN the bank account. An accepted profile stays as it is.

    Raises: Forbidden; Malformed for the IBAN; ConfirmationNeeded for another bank account than
    before; Conflict while the operator looks at the profile, and once it is accepted
    (profile_changes.py).
    """
    merchant_id = require(session, Permission.manage_settings).merchant_id
    sealed: Sealed | None = None
    number = parse_iban(iban) if iban else ""
    if number:
        require_recent(session, now=now)
        sealed = seal_iban(gate.vault, merchant_id, number)
    async with gate.database.acquire() as connection, connection.transaction():
        saved = await queries.save(
            connection,
            merchant_id=merchant_id,
            **{name: details.get(name) for name in Details.__slots__},
            iban_sealed=sealed.blob if sealed else None,
            vault_key_id=sealed.key_id if sealed else "",
            iban_last4=number[-4:],
            now=now,
        )
        if saved is None:
            raise Conflict(worded("the profile is being looked at; take it back to change it"))
        changed = {"profile": True, "bank_account": bool(number)}
        await record_profile(connection, session.actor, Action.settings_changed, merchant_id, now, changed)
        if number:
            await warn_owners(connection, BANK_CHANGED, session.actor, merchant_id=merchant_id, now=now)


async def submit_profile(gate: Gate, session: Session, *, now: datetime) -> None:
    """Ask the operator to let the merchant go live.

    Raises: Forbidden; Malformed, naming what is missing; Conflict if it is with the operator or
        accepted already.
    """
    merchant_id = require(session, Permission.go_live).merchant_id
    profile = await find_profile(gate.database, merchant_id)
    if profile.missing or session.person.email_confirmed_at is None:
        raise Malformed(worded("something is still missing; see the list"), *profile.missing)
    async with gate.database.acquire() as connection, connection.transaction():
        submitted = await queries.submit(
            connection, merchant_id=merchant_id, changed_at=profile.changed_at, person_id=session.person.id, now=now
        )
        if submitted is None:
            raise Conflict(worded("the profile is with us already, or was changed just now; look at it again"))
        await record_profile(connection, session.actor, Action.go_live_asked, merchant_id, now)


async def withdraw_profile(gate: Gate, session: Session, *, now: datetime) -> None:
    """Take a submitted profile back, to change it.

    Raises: Forbidden; Conflict if it was answered already.
    """
    merchant_id = require(session, Permission.go_live).merchant_id
    async with gate.database.acquire() as connection, connection.transaction():
        if await queries.withdraw(connection, merchant_id=merchant_id) is None:
            raise Conflict(worded("the profile was answered already"))
        await record_profile(connection, session.actor, Action.settings_changed, merchant_id, now, {"withdrawn": True})


async def accept_profile(
    connection: Connection,
    actor: Actor,
    merchant_id: int,
    *,
    seen: datetime,
    despite: str,
    iban_wait: timedelta,
    now: datetime,
) -> None:
    """Let a merchant go live, on a transaction: from now on its team may leave test mode.

    `seen` is when it was submitted; `despite` says why, where something is missing; payouts to its
    bank account wait for `iban_wait`.
    Raises: Conflict if it is not submitted, or again since; Malformed if something is missing and
        nothing is said of it.
    """
    accepted = await queries.accept(
        connection, merchant_id=merchant_id, seen=seen, person_id=actor.person_id, wait=iban_wait, now=now
    )
    if accepted is None:
        raise not_waiting(merchant_id)
    # Nobody changes it any more; without a reason the transaction takes the acceptance back.
    missing = (await find_profile(connection, merchant_id)).missing
    facts = {"missing": list(missing), "despite": parse_despite(despite, missing)} if missing else None
    await record_profile(connection, actor, Action.go_live_approved, merchant_id, now, facts)
    await tell_owners(connection, merchant_id, MailKind.profile_accepted, now=now)


async def refuse_profile(
    connection: Connection, actor: Actor, merchant_id: int, *, seen: datetime, reason: str, now: datetime
) -> None:
    """Send a profile back with a reason, on a transaction.

    Raises: Conflict if it is not submitted, or again since.
    """
    refused = await queries.refuse(
        connection, merchant_id=merchant_id, seen=seen, person_id=actor.person_id, reason=reason, now=now
    )
    if refused is None:
        raise not_waiting(merchant_id)
    await record_profile(connection, actor, Action.go_live_refused, merchant_id, now, {"reason": reason})
    await tell_owners(connection, merchant_id, MailKind.profile_refused, now=now, reason=reason)


async def waiting_profiles(database: Database, most: int = 100) -> list[WaitingProfile]:
    """The profiles and changes of profiles that wait for the operator, longest first."""
    return await records_of(WaitingProfile, queries.waiting(database, most=most))


async def bank_account_of(database: Database, vault: Vault, merchant_id: int) -> tuple[str, str]:
    """Holder and IBAN to pay a merchant out to: the accepted ones, whatever is proposed.

    Who shows them to an operator writes that down. Raises: NotFound.
    """
    account = await _bank_account(database, merchant_id)
    if account is None:
        raise NotFound(f"merchant {merchant_id} has no accepted bank account; see: paydesk profile show {merchant_id}")
    return account.account_holder, _opened(account, vault, merchant_id)


async def accepted_iban(database: Database, vault: Vault, merchant_id: int) -> str:
    """The accepted bank account's number, empty if there is none; nobody is shown it."""
    account = await _bank_account(database, merchant_id)
    return _opened(account, vault, merchant_id) if account is not None else ""


async def _bank_account(database: Database, merchant_id: int) -> _BankAccount | None:
    return record_if_any(_BankAccount, await queries.accepted_bank_account(database, merchant_id=merchant_id))


def _opened(account: _BankAccount, vault: Vault, merchant_id: int) -> str:
    sealed = Sealed(account.vault_key_id, account.iban_sealed)
    return vault.open(sealed, purpose=PURPOSE, merchant_id=merchant_id, row_id=merchant_id).decode()


def seal_iban(vault: Vault, merchant_id: int, number: str) -> Sealed:
    """An IBAN as it rests, bound to the merchant."""
    return vault.seal(number.encode(), purpose=PURPOSE, merchant_id=merchant_id, row_id=merchant_id)


def not_waiting(merchant_id: int) -> Conflict:
    """What was to be answered is not there any more, or was replaced after it was looked at."""
    return Conflict(
        f"the profile of merchant {merchant_id} is not waiting for an answer, or was sent again since; look at it anew"
    )


async def record_profile(
    connection: Connection,
    actor: Actor,
    action: Action,
    merchant_id: int,
    now: datetime,
    details: Mapping[str, object] | None = None,
) -> None:
    """Write down what was done to a business profile."""
    subject = "business profile"
    await record(connection, actor, action, now=now, merchant_id=merchant_id, subject=subject, details=details)
