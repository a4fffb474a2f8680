"""Changing one's own account: name, password and e-mail address.
What another could have done is told by mail.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from paydesk.core.email_addresses import in_small_letters, parse_email
from paydesk.core.errors import Conflict, TooMany
from paydesk.core.wording import worded
from paydesk.database.records import record_of
from paydesk.database.statements import Connection
from paydesk.domain.accounts import lockout
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.devices import guesser
from paydesk.domain.accounts.notices import Mail, send_link, send_notice
from paydesk.domain.accounts.people import (
    AccountHolder,
    find_holder,
    findable,
    parse_language,
    parse_name,
    parse_time_zone,
    queries,
)
from paydesk.domain.accounts.sessions import Session, end_all_sessions, renew_token, require_open, require_recent
from paydesk.domain.accounts.signing_in import ask_to_confirm, check_password, forgive_account
from paydesk.domain.accounts.tokens import LinkHolder, Purpose, add_token, find_token, use_token
from paydesk.domain.cells.directory import TakenElsewhere

PACE = 0.25
"""Seconds that asking for a link takes, longer than sending one does:
the answer comes no sooner where none is sent."""


@dataclass(frozen=True, slots=True)
class _Before:
    """Whose address it is that a link has just changed or confirmed, and which one was before."""

    email_before: str
    confirmed_before: datetime | None
    name: str
    language: str


async def change_profile(
    gate: Gate,
    session: Session,
    *,
    now: datetime,
    name: str | None = None,
    language: str | None = None,
    time_zone: str | None = None,
) -> None:
    """Change name, language or time zone; None leaves one as it is.
    An empty language leaves that to the browser.

    Raises: Malformed, SecondFactorNeeded.
    """
    require_open(session)
    changed = {
        "name": None if name is None else parse_name(name),
        "language": language and parse_language(language),
        "time_zone": None if time_zone is None else parse_time_zone(time_zone),
    }
    async with gate.database.acquire() as connection, connection.transaction():
        await queries.change_profile(connection, person_id=session.person.id, **changed)
        details = {key: value for key, value in changed.items() if value is not None}
        await record(connection, session.actor, Action.profile_changed, now=now, details=details)


async def change_password(gate: Gate, session: Session, *, current: str, new: str, now: datetime) -> str:
    """Take a new password from who knows the present one; all other sessions of the person end.

    Returns this session's new token, for the cookie: whoever holds a copy of the old one is out
    as well.

    Raises: NotLetIn if `current` is wrong; Malformed if `new` is refused; TooMany;
        SecondFactorNeeded.
    """
    require_open(session)
    person = session.person
    await check_password(gate, session, current, now=now)
    password_hash = await gate.passwords.choose(new, email=person.email)
    async with gate.database.acquire() as connection, connection.transaction():
        await _set_password(connection, person.id, password_hash, now)
        await end_all_sessions(connection, person.id, but=session.id)
        await record(connection, session.actor, Action.password_changed, now=now)
        await _notice(connection, session, Action.password_changed, person.email, now)
        return await renew_token(connection, gate, session)


async def ask_for_reset(gate: Gate, *, email: str, client: Client, now: datetime) -> None:
    """Send a link to choose a new password, if there is such an account;
    neither words nor time tell whether there is.

    Nor whether links were asked for too often: none is sent then. A browser of the person's own is
    counted apart, so that nobody else uses up what they may ask for.

    Raises: TooMany if this client's address asks too often, whoever for.
    """
    typed = findable(email)
    await lockout.count_try(gate, lockout.RESET_ADDRESS, client.address, now=now)
    ready = asyncio.get_running_loop().time() + PACE
    holder = await find_holder(gate.database, typed)
    whom = await guesser(gate, holder.id if holder else 0, client)
    with contextlib.suppress(TooMany):
        await lockout.count_try(gate, lockout.RESET, f"link {whom if holder else typed.lower()}", now=now)
        if holder is not None:
            await _send_reset(gate, holder, client, now)
    await asyncio.sleep(ready - asyncio.get_running_loop().time())


async def _send_reset(gate: Gate, holder: AccountHolder, client: Client, now: datetime) -> None:
    """Queue the link, and write down that it was asked for."""
    async with gate.database.acquire() as connection, connection.transaction():
        row_id, token = await add_token(connection, gate, holder.id, Purpose.reset, email=holder.email, now=now)
        await send_link(
            connection,
            gate,
            Mail.reset_password,
            to=holder.email,
            language=holder.language,
            token=token,
            row_id=row_id,
            now=now,
            name=holder.name,
            client_address=client.address,
        )
        asked = Actor(None, client.address)
        await record(connection, asked, Action.password_reset_asked, now=now, subject=f"person {holder.id}")


async def find_reset(gate: Gate, token: str, *, now: datetime) -> LinkHolder:
    """Whose link to choose a password it is, for the page that asks for one.

    Raises: Gone.
    """
    return await find_token(gate, token, Purpose.reset, now=now)


async def reset_password(gate: Gate, token: str, *, password: str, client: Client, now: datetime) -> int:
    """Take a new password from who holds the link, and return the person's id;
    all sessions end, and lock-outs too.

    The person then logs in; a second factor is still asked for.

    Raises: Gone; Malformed if the password is refused.
    """
    holder = await find_token(gate, token, Purpose.reset, now=now)
    password_hash = await gate.passwords.choose(password, email=holder.email)
    async with gate.database.acquire() as connection, connection.transaction():
        used = await use_token(connection, gate, token, Purpose.reset, now=now)
        await _set_password(connection, used.person_id, password_hash, now)
        await queries.confirm_own_email(connection, person_id=used.person_id, email=used.email, now=now)
        await end_all_sessions(connection, used.person_id)
        await forgive_account(connection, gate, used.person_id, client)
        await record(connection, Actor(used.person_id, client.address), Action.password_reset, now=now)
        await send_notice(
            connection,
            Action.password_reset,
            person_id=used.person_id,
            to=used.email,
            language=holder.language,
            name=holder.name,
            client_address=client.address,
            now=now,
        )
    return used.person_id


async def ask_for_email_change(gate: Gate, session: Session, *, email: str, now: datetime) -> None:
    """Send a link to a new address; it takes the present one's place once the link is used.

    Raises: ConfirmationNeeded; Malformed; TooMany.
    """
    require_recent(session, now=now)
    address = parse_email(email)
    await lockout.count_try(gate, lockout.RESET, f"person {session.person.id}", now=now)
    await lockout.count_try(gate, lockout.RECIPIENT, address.lower(), now=now)
    async with gate.database.acquire() as connection, connection.transaction():
        await _ask_to_confirm(connection, gate, session, address, now)
        await record(connection, session.actor, Action.email_change_asked, now=now, details={"email": address})


async def send_confirmation_again(gate: Gate, session: Session, *, now: datetime) -> None:
    """Send the link that confirms the present address once more; the older one stops working.

    Raises: TooMany; Conflict if the address is confirmed.
    """
    if session.person.email_confirmed_at is not None:
        raise Conflict(worded("this address is confirmed already"))
    await lockout.count_try(gate, lockout.RESET, f"person {session.person.id}", now=now)
    async with gate.database.acquire() as connection, connection.transaction():
        await _ask_to_confirm(connection, gate, session, session.person.email, now)


async def confirm_email(
    gate: Gate, token: str, *, client: Client, now: datetime, logged_in: Session | None = None
) -> str:
    """Take the address that a link went to as its person's, and return it;
    the address before is told of a change.

    Who is `logged_in` as that person may have an account of the address in another cell: both are
    theirs. A link alone may have been followed by whose address it is, to whom the account is not.

    Raises: Gone; Conflict if another account has the address, in whichever cell; Unavailable if
        other cells can't be asked.
    """
    proven = False
    try:
        async with gate.database.acquire() as connection, connection.transaction():
            used = await use_token(connection, gate, token, Purpose.email, now=now)
            before = record_of(
                _Before, await queries.set_email(connection, person_id=used.person_id, email=used.email, now=now)
            )
            changed = in_small_letters(before.email_before) != in_small_letters(used.email)
            if changed:
                proven = logged_in is not None and logged_in.person.id == used.person_id
                await gate.entering.enter_person(connection, gate.vault, used.email, now=now, proven=proven)
            action = Action.email_changed if changed else Action.email_confirmed
            await record(connection, Actor(used.person_id, client.address), action, now=now)
            if changed:
                await queries.drop_begun_second_factor(connection, person_id=used.person_id)
                await queries.end_tokens(connection, person_id=used.person_id, now=now)
            if changed and before.confirmed_before is not None:
                await send_notice(
                    connection,
                    action,
                    person_id=used.person_id,
                    to=before.email_before,
                    language=before.language,
                    name=before.name,
                    client_address=client.address,
                    now=now,
                )
    except (asyncpg.UniqueViolationError, TakenElsewhere) as error:
        if isinstance(error, TakenElsewhere) and not proven:
            raise Conflict(
                worded(
                    "another account has this address; if both are yours, log in here and open the link of the mail "
                    "again, or choose another address"
                )
            ) from error
        raise Conflict(worded("another account has this address; log in there, or choose another address")) from error
    return used.email


async def _ask_to_confirm(connection: Connection, gate: Gate, session: Session, address: str, now: datetime) -> None:
    person = session.person
    await ask_to_confirm(
        connection, gate, person.id, email=address, name=person.name, language=person.language, now=now
    )


async def _set_password(connection: Connection, person_id: int, password_hash: str, now: datetime) -> None:
    """Store a new password; open links to choose one, or to change the address, stop working,
    and enrolments too.
    """
    await queries.set_password(connection, person_id=person_id, password_hash=password_hash)
    await queries.drop_begun_second_factor(connection, person_id=person_id)
    await queries.end_tokens(connection, person_id=person_id, now=now)


async def _notice(connection: Connection, session: Session, action: Action, to: str, now: datetime) -> None:
    await send_notice(
        connection,
        action,
        person_id=session.person.id,
        to=to,
        language=session.person.language,
        name=session.person.name,
        client_address=session.client.address,
        now=now,
    )
