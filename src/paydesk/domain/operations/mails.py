"""The outbox as an operator sees it: what waits, went out or was given up,
and sending the last once more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from paydesk.core.errors import Conflict, NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.mail.kinds import LINK_KINDS, MailKind
from paydesk.domain.mail.sending import KEPT

queries = load_statements(__package__ or "", "mails.sql")


class MailState(StrEnum):
    """Where a mail stands; the values are what rests in the database."""

    DUE = "due"
    SENT = "sent"
    FAILED = "failed"
    """Given up: refused for good, or too often not taken."""


@dataclass(frozen=True, slots=True)
class ListedMail:
    """A mail of the outbox without what it says. `merchant_id` is 0 and `live` None
    beside any merchant; times are UTC.

    `due_at` is when it is tried next, if it is due; `last_error` is why the last try failed.
    """

    id: int
    merchant_id: int
    live: bool | None
    kind: str
    recipient: str
    language: str
    state: MailState
    attempts: int
    created_at: datetime
    due_at: datetime
    sent_at: datetime | None
    last_error: str


@dataclass(frozen=True, slots=True)
class _Locked:
    """A mail that nobody else sends meanwhile."""

    merchant_id: int
    kind: str
    state: MailState


async def newest_mails(database: Database, *, state: MailState | None = None, most: int) -> list[ListedMail]:
    """The newest mails of all merchants, newest first; those that are due by their next try,
    soonest first.
    """
    lists = {
        None: queries.every,
        MailState.SENT: queries.sent,
        MailState.FAILED: queries.failed,
        MailState.DUE: queries.due,
    }
    return await records_of(ListedMail, lists[state](database, most=most))


async def resend_mail(database: Database, actor: Actor, mail_id: int, *, now: datetime) -> None:
    """Queue a mail that was given up once more, as if it were new:
    with all its tries and today's date.

    Raises: NotFound; Conflict for one that is due or sent, or whose link was forgotten when it was
        given up.
    """
    async with database.acquire() as connection, connection.transaction():
        mail = record_if_any(_Locked, await queries.lock(connection, id=mail_id))
        if mail is None:
            raise NotFound(
                f"there is no mail {mail_id}; those that were sent or given up are kept for {KEPT.days} days"
            )
        if mail.state is not MailState.FAILED:
            stands = "was sent already" if mail.state is MailState.SENT else "is being sent"
            raise Conflict(f"mail {mail_id} {stands}; an event has one mail")
        if mail.kind in {*LINK_KINDS, MailKind.shopper_code}:
            raise Conflict(
                f"the link or code in mail {mail_id} was forgotten when it was given up; have a new one asked for"
            )
        await queries.queue_again(connection, merchant_id=mail.merchant_id, id=mail_id, now=now)
        await record(
            connection,
            actor,
            Action.mail_resent,
            now=now,
            merchant_id=mail.merchant_id,
            subject=f"mail {mail_id}",
            details={"kind": mail.kind},
        )


def masked(mail: ListedMail) -> ListedMail:
    """A mail whose reader's name is not shown: `a…@people.example`,
    in what the server answered, too.
    """
    hidden = re.sub(r"^(.).*@", r"\1…@", mail.recipient)
    error = re.sub(re.escape(mail.recipient), lambda _: hidden, mail.last_error, flags=re.IGNORECASE)
    return replace(mail, recipient=hidden, last_error=error)
