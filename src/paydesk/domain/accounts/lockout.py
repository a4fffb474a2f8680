"""Lock-out: tries to get in are counted before they are judged, and lock-outs grow with
each that failed.

A try counts as failed when it begins and is forgiven when it succeeds; so of any number of parallel
tries no more are judged than one after another would be. What does not exist is counted like what
does, so that lock-outs tell nothing. Browsers that a person is known by are counted apart from all
others, so that strangers lock out strangers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from paydesk.core.errors import TooMany
from paydesk.core.wording import plural, worded
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.access_needs import Gate

queries = load_statements(__package__ or "")


@dataclass(frozen=True, slots=True)
class TryLimit:
    """What is counted, and the failed tries in a row before the first lock-out;
    a day without any starts anew.
    """

    name: str
    free: int


ACCOUNT = TryLimit("account", 5)
CONFIRM = TryLimit("confirm", 5)
"""The password once more, in a session that is open:
who guesses at log-ins does not stop whoever is in."""
ADDRESS = TryLimit("address", 20)
SECOND_FACTOR = TryLimit("second factor", 5)
SIGN_UP = TryLimit("sign-up", 60)
RESET = TryLimit("reset", 5)
RESET_ADDRESS = TryLimit("reset address", 20)
INVITATION = TryLimit("invitation", 50)
INVITER = TryLimit("inviter", 20)
RECIPIENT = TryLimit("recipient", 5)
"""Mails that others have sent to one address: invitations, and links to take it as one's own."""


async def count_try(gate: Gate, limit: TryLimit, whom: object, *, now: datetime) -> int:
    """Count one try as failed, until it is forgiven; returns how many have failed in a row,
    with this one.

    Raises: TooMany during a lock-out; what is refused is neither judged nor counted.
    """
    subject = _subject(gate, limit, whom)
    tries = await queries.count_try(gate.database, subject=subject, free=limit.free, now=now)
    if tries is None:
        until = await queries.locked_until(gate.database, subject=subject, now=now)
        seconds = max(1, math.ceil((until - now).total_seconds())) if until else 1
        raise _locked(seconds)
    return int(tries)


async def require_free(gate: Gate, limit: TryLimit, whom: object, *, now: datetime) -> None:
    """Make sure that there is no lock-out, without counting a try. Raises: TooMany."""
    until = await queries.locked_until(gate.database, subject=_subject(gate, limit, whom), now=now)
    if until is not None:
        raise _locked(max(1, math.ceil((until - now).total_seconds())))


async def forgive_all(connection: Connection, gate: Gate, limit: TryLimit, whom: object) -> None:
    """Forget every failed try: whoever it was has proved themselves."""
    await queries.forgive_all(connection, subject=_subject(gate, limit, whom))


async def forgive_one(connection: Connection, gate: Gate, limit: TryLimit, whom: object) -> None:
    """Take back this try alone: an address that also guesses at others' accounts keeps what it
    has earned.
    """
    await queries.forgive_one(connection, subject=_subject(gate, limit, whom))


async def forget_tries(database: Connection, *, before: datetime) -> None:
    """Drop what was last counted so long ago that it starts anew anyway."""
    await queries.forget_tries(database, before=before)


def _locked(seconds: int) -> TooMany:
    return TooMany(worded("too many tries; wait %(time)s and try again", time=_in_words(seconds)), retry_after=seconds)


def _subject(gate: Gate, limit: TryLimit, whom: object) -> bytes:
    return gate.vault.fingerprint(f"{limit.name} {whom}", purpose="entry pause")


def _in_words(seconds: int) -> str:
    if seconds < 120:
        return plural("%(count)s second", "%(count)s seconds", count=seconds)
    return plural("%(count)s minute", "%(count)s minutes", count=math.ceil(seconds / 60))
