"""Operators: who runs the deployment. They are made from the command line
and need a second factor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from paydesk.core.email_addresses import parse_email
from paydesk.core.errors import Conflict, NotFound
from paydesk.database.records import records_of
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import COMMAND_LINE, Action, record
from paydesk.domain.accounts.lockout import SECOND_FACTOR, forgive_all
from paydesk.domain.accounts.notices import send_notice
from paydesk.domain.accounts.people import AccountHolder, Person, find_holder, findable, parse_name, queries
from paydesk.domain.accounts.sessions import end_all_sessions
from paydesk.domain.accounts.signing_in import add_person
from paydesk.domain.accounts.tokens import FIRST_PASSWORD, Purpose, add_token


@dataclass(frozen=True, slots=True)
class NewOperator:
    """An operator that was made; `token` is for the link to choose a password,
    empty where there is one already.
    """

    person_id: int
    email: str
    token: str = field(repr=False)


async def create_operator(
    gate: Gate, *, email: str, now: datetime, name: str = "", password: str | None = None
) -> NewOperator:
    """Make an operator: a new person, or somebody who has an account and keeps its password.

    All sessions of theirs end, and the next log-in has them set up a second factor.

    Raises: Malformed; Conflict if they are an operator already, or have an account whose address
    was never confirmed, or one and a password was given.
    """
    address = parse_email(email)
    person_name = parse_name(name or address.partition("@")[0].replace(".", " "))
    password_hash = "" if password is None else await gate.passwords.choose(password, email=address)
    async with gate.database.acquire() as connection, connection.transaction():
        found = await find_holder(connection, address)
        if found is None:
            person_id = await add_person(
                connection,
                gate,
                email=address,
                name=person_name,
                password_hash=password_hash,
                email_confirmed_at=now,
                now=now,
            )
        else:
            person_id, password_hash = _promotable(found, password), found.password_hash
        if await queries.set_operator(connection, person_id=person_id, operator=True) is None:
            raise Conflict(f"{address} is an operator already; see: paydesk operator list")
        await queries.drop_begun_second_factor(connection, person_id=person_id)
        await end_all_sessions(connection, person_id)
        subject = f"person {person_id} ({address})"
        await record(connection, COMMAND_LINE, Action.operator_created, now=now, subject=subject)
        if password_hash:
            return NewOperator(person_id, address, "")
        _, token = await add_token(
            connection, gate, person_id, Purpose.reset, email=address, now=now, lifetime=FIRST_PASSWORD
        )
    return NewOperator(person_id, address, token)


def _promotable(found: AccountHolder, password: str | None) -> int:
    """The id of somebody who has an account, if it surely is theirs."""
    if password is not None:
        raise Conflict(f"{found.email} has an account already; leave the password out, it keeps its own")
    if found.email_confirmed_at is None:
        raise Conflict(f"{found.email} has an account but never confirmed the address, so it may be a stranger's")
    return found.id


async def list_operators(gate: Gate) -> list[Person]:
    """All operators, oldest first."""
    return await records_of(Person, queries.list_operators(gate.database))


async def remove_operator(gate: Gate, *, email: str, now: datetime) -> None:
    """Make an operator an ordinary person, and end all their sessions.

    Raises: NotFound if nobody with this address is an operator.
    """
    async with gate.database.acquire() as connection, connection.transaction():
        found = await find_holder(connection, findable(email))
        if found is None or not found.operator:
            raise NotFound(f"{email} is no operator; see: paydesk operator list")
        await queries.set_operator(connection, person_id=found.id, operator=False)
        await end_all_sessions(connection, found.id)
        subject = f"person {found.id} ({found.email})"
        await record(connection, COMMAND_LINE, Action.operator_removed, now=now, subject=subject)


async def reset_second_factor(gate: Gate, *, email: str, now: datetime) -> bool:
    """Take the second factor from whoever lost phone and recovery codes, end all their sessions
    and tell them by mail.

    Returns whether they are an operator, whose next log-in then has them set up another; for others
    that is a choice.

    Raises: NotFound if nobody has this address; Conflict if no second factor is set up.
    """
    async with gate.database.acquire() as connection, connection.transaction():
        found = await find_holder(connection, findable(email))
        if found is None:
            raise NotFound(f"nobody has an account with the address {email}")
        await queries.drop_begun_second_factor(connection, person_id=found.id)
        if await queries.reset_second_factor(connection, person_id=found.id) is None:
            raise Conflict(f"{found.email} has no second factor set up")
        await forgive_all(connection, gate, SECOND_FACTOR, f"person {found.id}")
        await end_all_sessions(connection, found.id)
        subject = f"person {found.id} ({found.email})"
        await record(connection, COMMAND_LINE, Action.second_factor_reset, now=now, subject=subject)
        await send_notice(
            connection,
            Action.second_factor_reset,
            person_id=found.id,
            to=found.email,
            language=found.language,
            name=found.name,
            client_address="",
            now=now,
        )
    return found.operator
