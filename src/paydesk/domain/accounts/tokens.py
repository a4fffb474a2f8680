"""One-time links to a person's mailbox: whoever uses one has proved that the mailbox is theirs."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from paydesk.core.errors import Gone, TooMany
from paydesk.core.wording import worded
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.people import queries


class Purpose(StrEnum):
    """What a link lets its holder do."""

    reset = "reset"
    """Choose a password."""
    email = "email"
    """Confirm an e-mail address, or take it as the new one."""


LIFETIMES = {Purpose.reset: timedelta(hours=1), Purpose.email: timedelta(days=3)}
MOST_OPEN = 15
"""Links to choose a password that a person may hold at a time, whoever asked for them."""
_RETRY = int(LIFETIMES[Purpose.reset].total_seconds())
FIRST_PASSWORD = timedelta(days=1)
"""How long an operator has to choose a first password."""


@dataclass(frozen=True, slots=True)
class LinkHolder:
    """Who a link was sent to: `email` is where; `first_password` is whether none was chosen yet."""

    person_id: int
    name: str
    language: str
    email: str
    first_password: bool
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class UsedLink:
    """A link that was just used up."""

    person_id: int
    email: str


async def add_token(
    connection: Connection,
    gate: Gate,
    person_id: int,
    purpose: Purpose,
    *,
    email: str,
    now: datetime,
    lifetime: timedelta | None = None,
) -> tuple[int, str]:
    """Make a link's token for the person's mailbox and return (row id, token).

    An older one to confirm an address stops working; those to choose a password all work until one
    of them is used.
    Raises: TooMany if too many of these are open.
    """
    token = secrets.token_urlsafe(32)
    row_id = await queries.add_token(
        connection,
        person_id=person_id,
        purpose=purpose,
        token_hash=_hash(gate, token),
        email=email,
        expires_at=now + (lifetime or LIFETIMES[purpose]),
        most=MOST_OPEN,
        now=now,
    )
    if row_id is None:
        raise TooMany(worded("links enough to choose a password were sent; use one of those"), retry_after=_RETRY)
    return int(row_id), token


async def find_token(gate: Gate, token: str, purpose: Purpose, *, now: datetime) -> LinkHolder:
    """Whose link it is, without using it.

    Raises: Gone if it is unknown, used or expired.
    """
    holder = record_if_any(
        LinkHolder, await queries.find_token(gate.database, token_hash=_hash(gate, token), purpose=purpose, now=now)
    )
    if holder is None:
        raise link_gone()
    return holder


async def use_token(connection: Connection, gate: Gate, token: str, purpose: Purpose, *, now: datetime) -> UsedLink:
    """Use a link up, on the transaction of what it allows;
    of several that do so at once, one succeeds.

    Raises: Gone if it is unknown, used or expired.
    """
    used = record_if_any(
        UsedLink, await queries.use_token(connection, token_hash=_hash(gate, token), purpose=purpose, now=now)
    )
    if used is None:
        raise link_gone()
    return used


def link_gone() -> Gone:
    """The answer to a link that does not work (any more); the same whatever the reason."""
    return Gone("this link was used already or has expired; ask for a new one")


async def forget_tokens(database: Connection, *, before: datetime) -> None:
    """Drop links that expired before a time."""
    await queries.forget_tokens(database, before=before)


def _hash(gate: Gate, token: str) -> bytes:
    return gate.vault.fingerprint(token, purpose="person token")
