"""Taking a difference between an acquirer's list and our books as it is, for good, because an
operator can explain it. Moves no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from paydesk.core.errors import Malformed, NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.operations.differences import Difference

queries = load_statements(__package__ or "", "accepting.sql")

LONGEST_NOTE: Final = 500


@dataclass(frozen=True, slots=True)
class _Accepted:
    """A difference as it was accepted: what it is about, and what differed."""

    subject: str
    fact: str


async def accept_difference(database: Database, actor: Actor, alarm_id: int, note: str, *, now: datetime) -> None:
    """Take a difference as it is: it is no alarm while it says the same, and stays listed as
    accepted. Nothing is charged beside a purchase that our books don't know, accepted or not.

    Args: note says why it is right so, for the operators' log; now is real time.
    Raises: Malformed without a note; NotFound if no difference is open under the alarm's id.
    """
    why = note.strip()
    if not why or len(why) > LONGEST_NOTE or not why.isprintable():
        raise Malformed(f"say why in a note of at most {LONGEST_NOTE} characters", "note")
    by = f"person {actor.person_id}" if actor.person_id is not None else "command line"
    async with database.acquire() as connection, connection.transaction():
        row = await queries.accept(connection, id=alarm_id, by=by, why=why, now=now)
        taken = record_if_any(_Accepted, row)
        if taken is None:
            raise NotFound(
                f"no open alarm {alarm_id} is a difference that can be accepted; "
                "see: paydesk alarm list --kind not_reconciled"
            )
        said: dict[str, object] = {"about": taken.subject, "accepted": taken.fact, "note": why}
        await record(connection, actor, Action.difference_accepted, now=now, subject=f"alarm {alarm_id}", details=said)


async def take_back(database: Database, actor: Actor, alarm_id: int, *, now: datetime) -> None:
    """Let a difference that was accepted wait for a person again.

    Raises: NotFound if no difference is accepted under the alarm's id.
    """
    async with database.acquire() as connection, connection.transaction():
        taken = record_if_any(_Accepted, await queries.take_back(connection, id=alarm_id))
        if taken is None:
            raise NotFound(f"alarm {alarm_id} is no difference that was accepted; see: paydesk alarm list --accepted")
        said: dict[str, object] = {"about": taken.subject, "taken back": True}
        await record(connection, actor, Action.difference_accepted, now=now, subject=f"alarm {alarm_id}", details=said)


async def those_accepted(database: Database, found: Sequence[Difference]) -> list[Difference]:
    """Which differences an operator took as they are; one that says something else by now is
    not among them.
    """
    if not found:
        return []
    of_subject = {one.alarm.key[3]: one for one in found}
    rows = queries.accepted(database, subjects=sorted(of_subject))
    facts = {row.subject: row.fact for row in await records_of(_Accepted, rows)}
    return [one for subject, one in of_subject.items() if facts.get(subject) == one.fact]
