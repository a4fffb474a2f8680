"""What an operator changes of a merchant's settings, in its audit log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from paydesk.database.pool import Database
from paydesk.database.statements import Connection
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.merchants.merchant import Merchant, find_merchant


@asynccontextmanager
async def noting_changes(
    database: Database, actor: Actor, merchant_id: int, *, now: datetime
) -> AsyncIterator[Connection]:
    """A transaction in which a merchant's settings may be changed: what became of each is noted
    beside it. `now` is real time, UTC.

    Raises: NotFound.
    """
    async with database.acquire() as connection, connection.transaction():
        before = await find_merchant(connection, merchant_id)
        yield connection
        details = _difference(before, await find_merchant(connection, merchant_id))
        if details:
            await record(
                connection,
                actor,
                Action.settings_changed,
                now=now,
                merchant_id=merchant_id,
                subject="shop",
                details=details,
            )


def _difference(before: Merchant, after: Merchant) -> dict[str, object]:
    names = [name for name in Merchant.__slots__ if getattr(before, name) != getattr(after, name)]
    return {name: f"{getattr(before, name)} → {getattr(after, name)}" for name in names}
