"""The mails of this room: links that work once, and notices of what was changed,
in the person's language.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from paydesk.core.storable import storable_json
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Actor
from paydesk.domain.mail.queueing import queue_mail, seal_fact

queries = load_statements(__package__ or "", "notices.sql")


class Mail(StrEnum):
    """The kinds of mails that this room queues, by which their templates are found."""

    confirm_email = "confirm_email"
    """Facts: name, by_person (who asked), token (sealed; Link.email)."""
    reset_password = "reset_password"  # noqa: S105 (a name)
    """Facts: name, token (sealed; Link.password), client_address."""
    invitation = "invitation"
    """Facts: merchant_name, role, invited_by, by_person (the inviter's id), token
    (sealed; Link.invitation)."""
    security_notice = "security_notice"
    """Facts: name, what (an Action), at (ISO 8601, UTC), client_address;
    of a shop also shop and by; more by what."""


async def send_link(
    connection: Connection,
    gate: Gate,
    kind: Mail,
    *,
    to: str,
    language: str,
    token: str,
    row_id: int,
    now: datetime,
    merchant_id: int | None = None,
    **facts: object,
) -> None:
    """Queue a mail with a link; the token rests sealed, bound to the row whose id is given."""
    await queue_mail(
        connection,
        merchant_id=merchant_id,
        live=None,
        kind=kind,
        to=to,
        language=language,
        facts={**facts, "token": seal_fact(gate.vault, token, row_id=row_id)},
        once=f"{kind} {row_id} {gate.vault.fingerprint(token, purpose='mail').hex()[:16]}",
        now=now,
    )


async def send_notice(
    connection: Connection,
    what: str,
    *,
    person_id: int,
    to: str,
    language: str,
    name: str,
    client_address: str,
    now: datetime,
    **facts: object,
) -> None:
    """Queue a notice of a change that its person should know of, in case it was somebody else."""
    await queue_mail(
        connection,
        merchant_id=None,
        live=None,
        kind=Mail.security_notice,
        to=to,
        language=language,
        facts={"name": name, "what": what, "at": now, "client_address": client_address, **facts},
        once=f"{what} {person_id} {now.isoformat()} {to}",
        now=now,
    )


async def warn_owners(
    connection: Connection, what: str, actor: Actor, *, merchant_id: int, now: datetime, **facts: object
) -> None:
    """Queue a notice to all owners of a shop, and to who acted,
    of a change that could cost the shop money.
    """
    known = {"what": what, "at": now, "client_address": actor.client_address, **facts}
    await queries.warn_owners(
        connection,
        merchant_id=merchant_id,
        person_id=actor.person_id,
        facts=storable_json(known),
        what=what,
        now=now,
    )
