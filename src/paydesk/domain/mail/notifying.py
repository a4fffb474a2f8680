"""Telling a merchant's owners what was decided about their business,
in the transaction that decides it.
"""

from __future__ import annotations

from datetime import datetime

from paydesk.core.storable import storable_json
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.mail.kinds import MailKind

queries = load_statements(__package__ or "", "notifying.sql")


async def tell_owners(
    connection: Connection, merchant_id: int, kind: MailKind, *, now: datetime, **facts: object
) -> None:
    """Queue one mail to each owner whose address is confirmed, each in their language.
    Moves no money.

    Where no owner can be reached so, the merchant's own address is told: nobody is suspended in
    silence. An event is its kind and its moment (`now`, UTC), so telling it again changes nothing.
    `facts` are what the kind's text shows.
    """
    await queries.tell_owners(
        connection,
        merchant_id=merchant_id,
        kind=kind,
        facts=storable_json({**facts, "merchant_id": merchant_id}),
        once=f"{kind} {now.isoformat()}",
        now=now,
    )
