"""Signing up, logging in, and giving the password again.

For an e-mail address without an account the same is done as for one with a wrong password,
hashing included.
"""

from __future__ import annotations

from datetime import datetime

from paydesk.core.email_addresses import parse_email
from paydesk.core.errors import Conflict
from paydesk.core.storable import storable_json
from paydesk.core.wording import worded
from paydesk.database.statements import Connection
from paydesk.domain.accounts import lockout
from paydesk.domain.accounts.access_needs import Client, Gate, NotLetIn
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.devices import guesser
from paydesk.domain.accounts.notices import Mail, send_link
from paydesk.domain.accounts.notices import queries as notice_queries
from paydesk.domain.accounts.passwords import PasswordVerdict
from paydesk.domain.accounts.people import AccountHolder, find_holder, findable, parse_language, parse_name, queries
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.sessions import LoggedIn, Session, begin_session, find_session
from paydesk.domain.accounts.sessions import queries as session_queries
from paydesk.domain.accounts.team import add_member
from paydesk.domain.accounts.tokens import Purpose, add_token
from paydesk.domain.cells.directory import TakenElsewhere
from paydesk.domain.merchants.merchant import open_account


async def sign_up(
    gate: Gate,
    *,
    email: str,
    password: str,
    name: str,
    shop_name: str,
    client: Client,
    now: datetime,
    language: str = "en",
) -> LoggedIn:
    """Make a person and their merchant, in test mode, and log them in;
    a mail asks to confirm the address.

    Raises: Malformed, naming the field; Conflict if the address has an account; TooMany.
    """
    address, person_name, shop = parse_email(email), parse_name(name), parse_name(shop_name, "shop_name")
    tag = parse_language(language)
    await lockout.count_try(gate, lockout.SIGN_UP, client.address, now=now)
    password_hash = await gate.passwords.choose(password, email=address)
    async with gate.database.acquire() as connection, connection.transaction():
        person_id = await add_person(
            connection, gate, email=address, name=person_name, password_hash=password_hash, language=tag, now=now
        )
        merchant = await open_account(connection, gate.vault, name=shop, email=address, now=now, entering=gate.entering)
        await add_member(connection, merchant.id, person_id, Role.owner, now=now)
        await ask_to_confirm(connection, gate, person_id, email=address, name=person_name, language=tag, now=now)
        actor = Actor(person_id, client.address)
        await record(connection, actor, Action.signed_up, now=now)
        await record(connection, actor, Action.merchant_opened, now=now, merchant_id=merchant.id, subject=shop)
        token = await begin_session(connection, gate, person_id, client, halfway=False, now=now)
    return LoggedIn(token, await find_session(gate, token, client, now=now))


async def add_person(
    connection: Connection,
    gate: Gate,
    *,
    email: str,
    name: str,
    password_hash: str,
    now: datetime,
    language: str = "en",
    operator: bool = False,
    email_confirmed_at: datetime | None = None,
) -> int:
    """Store a person and return the id. Who has confirmed the address may have an account in
    another cell, too.

    Raises: Conflict if somebody has this address already, unconfirmed in whichever cell;
        Unavailable if other cells can't be asked.
    """
    person_id = await queries.add_person(
        connection,
        email=email,
        name=name,
        password_hash=password_hash,
        operator=operator,
        language=language,
        time_zone="UTC",
        email_confirmed_at=email_confirmed_at,
        now=now,
    )
    if person_id is None:
        raise _known(email)
    try:
        proven = email_confirmed_at is not None
        await gate.entering.enter_person(connection, gate.vault, email, now=now, proven=proven)
    except TakenElsewhere as error:
        raise _known(email) from error
    return int(person_id)


def _known(email: str) -> Conflict:
    """The same words for a person of another cell."""
    return Conflict(worded("%(email)s has an account already; log in, or reset the password", email=email))


async def ask_to_confirm(
    connection: Connection, gate: Gate, person_id: int, *, email: str, name: str, language: str, now: datetime
) -> None:
    """Queue the mail whose link proves that an address is the person's."""
    row_id, token = await add_token(connection, gate, person_id, Purpose.email, email=email, now=now)
    await send_link(
        connection,
        gate,
        Mail.confirm_email,
        to=email,
        language=language,
        token=token,
        row_id=row_id,
        now=now,
        name=name,
        by_person=person_id,
    )


async def log_in(
    gate: Gate, *, email: str, password: str, client: Client, now: datetime, language: str = ""
) -> LoggedIn:
    """Open a session for whoever knows the password; its stage says whether a second factor is due.
    `language` is what the browser asks for: that of mails, too, unless the person chose one.

    Raises: NotLetIn, with the same words whatever was wrong; TooMany during a lock-out after
        failed tries.
    """
    typed = findable(email)
    await lockout.count_try(gate, lockout.ADDRESS, client.address, now=now)
    holder = await find_holder(gate.database, typed)
    account = await _account(gate, holder, typed, client)
    tries = await lockout.count_try(gate, lockout.ACCOUNT, account, now=now)
    verdict = await gate.passwords.verify(password, holder.password_hash if holder else "")
    if holder is None or not verdict.right:
        await _failed(gate, Actor(holder.id if holder else None, client.address), tries, now)
        raise NotLetIn(worded("e-mail address or password is wrong"))
    async with gate.database.acquire() as connection, connection.transaction():
        await lockout.forgive_one(connection, gate, lockout.ADDRESS, client.address)
        await lockout.forgive_all(connection, gate, lockout.ACCOUNT, account)
        await _rehash(connection, holder, verdict)
        if language and not holder.language_chosen:
            await queries.remember_language(connection, person_id=holder.id, language=parse_language(language))
        halfway = holder.second_factor or holder.operator
        token = await begin_session(connection, gate, holder.id, client, halfway=halfway, now=now)
        await record(connection, Actor(holder.id, client.address), Action.logged_in, now=now)
    return LoggedIn(token, await find_session(gate, token, client, now=now))


async def confirm(gate: Gate, session: Session, *, password: str, now: datetime) -> None:
    """Take the password once more, so that `require_recent` lets pass for a while.

    Raises: NotLetIn, TooMany.
    """
    await check_password(gate, session, password, now=now)
    async with gate.database.acquire() as connection, connection.transaction():
        await session_queries.confirm_session(connection, id=session.id, now=now)
        await record(connection, session.actor, Action.confirmed_password, now=now)


async def check_password(gate: Gate, session: Session, password: str, *, now: datetime) -> str:
    """Compare with the password of the session's person and return its stored hash;
    wrong ones count for this session.

    Raises: NotLetIn, TooMany.
    """
    tries = await lockout.count_try(gate, lockout.CONFIRM, session.id, now=now)
    stored = await queries.password_of(gate.database, person_id=session.person.id)
    verdict = await gate.passwords.verify(password, stored or "")
    if not verdict.right:
        await _failed(gate, session.actor, tries, now)
        raise NotLetIn(worded("the password is wrong"))
    await lockout.forgive_all(gate.database, gate, lockout.CONFIRM, session.id)
    return str(stored)


async def _failed(gate: Gate, actor: Actor, tries: int, now: datetime) -> None:
    """Write a wrong password down; the one that begins the first lock-out is told
    to the account's person, if any.
    """
    async with gate.database.acquire() as connection, connection.transaction():
        await record(connection, actor, Action.log_in_failed, now=now)
        if tries == lockout.ACCOUNT.free:
            facts = {"what": Action.log_in_failed, "at": now, "client_address": actor.client_address}
            await notice_queries.tell_person(
                connection, person_id=actor.person_id, facts=storable_json(facts), what=Action.log_in_failed, now=now
            )


async def forgive_account(connection: Connection, gate: Gate, person_id: int, client: Client) -> None:
    """End the lock-outs of an account whose mailbox was proved:
    of unknown browsers, and of the one that proved it.
    """
    for account in {f"person {person_id}", await guesser(gate, person_id, client)}:
        await lockout.forgive_all(connection, gate, lockout.ACCOUNT, account)


async def open_another_shop(gate: Gate, session: Session, *, shop_name: str, now: datetime) -> int:
    """Open a further merchant for somebody who is logged in, as its owner, and return its id.

    Raises: Malformed; TooMany.
    """
    shop = parse_name(shop_name, "shop_name")
    await lockout.count_try(gate, lockout.SIGN_UP, session.client.address, now=now)
    async with gate.database.acquire() as connection, connection.transaction():
        merchant = await open_account(
            connection, gate.vault, name=shop, email=session.person.email, now=now, entering=gate.entering
        )
        await add_member(connection, merchant.id, session.person.id, Role.owner, now=now)
        await record(connection, session.actor, Action.merchant_opened, now=now, merchant_id=merchant.id, subject=shop)
    return merchant.id


async def _account(gate: Gate, holder: AccountHolder | None, typed: str, client: Client) -> str:
    """For whom failures are counted: an account by its id, so that another spelling
    of the address is no new count.
    """
    known = await guesser(gate, holder.id if holder else 0, client)
    return known if holder else f"nobody {typed.lower()}"


async def _rehash(connection: Connection, holder: AccountHolder, verdict: PasswordVerdict) -> None:
    """Store the hash by today's parameters, now that the password is at hand."""
    if verdict.rehashed is not None:
        await queries.rehash_password(connection, person_id=holder.id, old=holder.password_hash, new=verdict.rehashed)
