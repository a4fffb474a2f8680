"""Who moves a merchant between cells is known to live by a lock that they hold meanwhile.

It is held in a transaction that nothing else is done in, and whose server hears of its holder again
and again: who does not speak for a minute (a machine that died, a process that hangs) loses it by
the `idle_in_transaction_session_timeout` of every session, and who is killed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from paydesk.core.errors import Conflict
from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import load_statements
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "living.sql")

BEAT = 15.0
"""Seconds after which the server hears again that the holder lives."""


@asynccontextmanager
async def living(database: Database, merchant_id: int, *, alone: bool = False) -> AsyncIterator[None]:
    """For the length of a block somebody moves a merchant from or to this cell, or deletes what is
    here of it, which only one may, `alone`.

    The block goes on if the lock is lost meanwhile.
    Raises: Conflict if somebody else does what can't be at once; one of AWAY.
    """
    taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()
    holding = asyncio.create_task(_hold(database, merchant_id, alone, taken, over))
    try:
        if not await taken:
            raise _somebody_does(merchant_id, alone)
        yield
    finally:
        over.set()
        await holding


def _somebody_does(merchant_id: int, alone: bool) -> Conflict:
    doing = "is moving it, or deleting what is here of it," if alone else "is deleting what is here of it"
    return Conflict(
        f"merchant {merchant_id}: another call {doing} at this moment, so that this one has done nothing: once that "
        "has ended, the same command says what is left to do"
    )


async def _hold(
    database: Database, merchant_id: int, alone: bool, taken: asyncio.Future[bool], over: asyncio.Event
) -> None:
    try:
        async with database.acquire() as connection, connection.transaction():
            is_taken = bool(await queries.live(connection, merchant_id=merchant_id, alone=alone))
            if not taken.done():
                taken.set_result(is_taken)

            async def say() -> None:
                with suppress(*AWAY):
                    await connection.execute("select", timeout=BEAT)

            await repeat("sign of life", say, over, rest=lambda: BEAT, beats=False)
    except Exception as error:
        if not taken.done():
            taken.set_exception(error)
        elif not isinstance(error, AWAY):
            raise
