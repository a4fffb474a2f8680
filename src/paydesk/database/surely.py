"""Writes whose answer may get lost: a name that was drawn before says afterwards what became
of them.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from paydesk.core.errors import Unsure
from paydesk.database.durability import ConfirmedConnection, make_durable
from paydesk.database.pool import AWAY, Database

PATIENCE = 10.0
"""Seconds for which a database that broke off over a write is asked again;
callers wait longer for an answer."""

_PAUSE = 0.1

_Row = TypeVar("_Row")
log = structlog.get_logger()


def drawn_key() -> str:
    """A name for one wish that its caller has not named, and may name by it from then on;
    nobody else can know it.
    """
    return f"drawn-{secrets.token_hex(16)}"


async def surely(
    database: Database,
    write: Callable[[ConfirmedConnection], Awaitable[_Row]],
    look: Callable[[ConfirmedConnection], Awaitable[_Row | None]],
    *,
    unsure: str,
) -> _Row:
    """Write once, whatever breaks over it: after a lost answer look for it, and write again only
    if it is not there.

    `write` and `look` get a connection. `write` is named by something drawn before, so that a first
    try that is still under way in the database and a second one can't both come true; `look` finds
    it by that name, or gives None. What is found counts once a standby has it.

    Raises: what the database raises when it is away, if nothing was sent; Unsure with these words
        if it stays away.
    """
    sent, until = False, time.monotonic() + PATIENCE
    while True:
        try:
            async with database.acquire() as connection:
                if sent and (found := await look(connection)) is not None:
                    # What a broken-off commit wrote can be seen, and may still be forgotten.
                    await make_durable(connection, patience=PATIENCE)
                    return found
                sent = True
                return await write(connection)
        except AWAY as error:
            if not sent:
                raise
            log.warning("the answer to a write was lost", why=f"{type(error).__name__}: {error}")
            if time.monotonic() > until:
                raise Unsure(unsure) from error
        await asyncio.sleep(_PAUSE)
