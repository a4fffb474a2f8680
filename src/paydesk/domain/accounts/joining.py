"""Joining a team without having an account yet: the invitation's link proves the mailbox,
so nothing else is asked.
"""

from __future__ import annotations

from datetime import datetime

from paydesk.core.errors import Conflict
from paydesk.core.wording import worded
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.people import parse_language, parse_name
from paydesk.domain.accounts.sessions import LoggedIn, begin_session, find_session
from paydesk.domain.accounts.signing_in import add_person
from paydesk.domain.accounts.team import find_invitation, join, use_invitation


async def sign_up_invited(
    gate: Gate, token: str, *, name: str, password: str, client: Client, now: datetime, language: str = "en"
) -> LoggedIn:
    """Make a person with the invitation's e-mail address, in that team alone, and log them in.

    Raises: Gone; Malformed; Conflict if the address has an account, which then accepts by
        logging in.
    """
    invitation = await find_invitation(gate, token, now=now)
    if invitation.has_account:
        raise Conflict(
            worded("%(email)s has an account already; log in to accept the invitation", email=invitation.email)
        )
    person_name, tag = parse_name(name), parse_language(language)
    password_hash = await gate.passwords.choose(password, email=invitation.email)
    async with gate.database.acquire() as connection, connection.transaction():
        accepted = await use_invitation(connection, gate, token, now=now)
        person_id = await add_person(
            connection,
            gate,
            email=accepted.email,
            name=person_name,
            password_hash=password_hash,
            language=tag,
            email_confirmed_at=now,
            now=now,
        )
        await record(connection, Actor(person_id, client.address), Action.signed_up, now=now)
        await join(connection, person_id, client.address, accepted, now=now)
        session_token = await begin_session(connection, gate, person_id, client, halfway=False, now=now)
    return LoggedIn(session_token, await find_session(gate, session_token, client, now=now))
