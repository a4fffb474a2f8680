"""Writing down how far a test clock was moved, whatever its advance ends for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import TypeAlias

from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import Connection

Note: TypeAlias = Callable[[Connection, datetime, datetime], Awaitable[None]]
"""Writes down from when to when a clock was moved: on the connection whose transaction takes the
last step, or after the last one that was taken."""


async def unnoted(_database: Connection, _start: datetime, _at: datetime) -> None:
    """Where nobody writes down who moves clocks."""


@asynccontextmanager
async def noted_if_stopped(
    database: Database, note: Note, start: datetime, came_to: Callable[[], datetime]
) -> AsyncIterator[None]:
    """Whatever the block ends for, also if its process stops, what was moved until then is noted.
    The clock is to be held still: who closes a fence waits for that.
    """
    try:
        yield
    except (Exception, asyncio.CancelledError):
        if came_to() > start:
            with suppress(*AWAY):
                await note(database, start, came_to())
        raise
