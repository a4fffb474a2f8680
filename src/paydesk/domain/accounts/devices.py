"""The browsers that somebody logs in with: a log-in from one that was not seen before is told
by mail.
"""

from __future__ import annotations

from datetime import datetime

from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.audit import Action
from paydesk.domain.accounts.notices import send_notice
from paydesk.domain.accounts.sessions import Session, require_open

queries = load_statements(__package__ or "", "devices.sql")

MOST_DEVICES = 20
"""So many are remembered for each person; the one that was not seen for longest goes first."""


async def guesser(gate: Gate, person_id: int, client: Client) -> str:
    """For whom failed tries to get in as a person are counted:
    for a browser of theirs alone, or for all others.
    """
    fingerprint = _fingerprint(gate, person_id, client.device)
    known = bool(client.device) and await queries.is_known(gate.database, person_id=person_id, fingerprint=fingerprint)
    return f"person {person_id} device {fingerprint.hex()}" if known else f"person {person_id}"


async def see_device(gate: Gate, session: Session, device: str, *, now: datetime) -> None:
    """Remember the browser of a session that has just opened, by its cookie's token,
    and tell the person if it is new.

    The very first one, at sign-up, is no news. Raises: SecondFactorNeeded.
    """
    require_open(session)
    person, client = session.person, session.client
    fingerprint = _fingerprint(gate, person.id, device)
    async with gate.database.acquire() as connection, connection.transaction():
        new = await queries.see_device(
            connection, person_id=person.id, fingerprint=fingerprint, most=MOST_DEVICES, now=now
        )
        if new:
            await send_notice(
                connection,
                Action.logged_in,
                person_id=person.id,
                to=person.email,
                language=person.language,
                name=person.name,
                client_address=client.address,
                now=now,
                user_agent=client.user_agent,
            )


async def forget_devices(database: Connection, *, before: datetime) -> None:
    """Drop browsers that were last seen so long ago that their cookies are gone."""
    await queries.forget_devices(database, before=before)


def _fingerprint(gate: Gate, person_id: int, device: str) -> bytes:
    return gate.vault.fingerprint(f"{person_id} {device}", purpose="person device")
