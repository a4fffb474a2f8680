"""What names accounts alone is the biggest there is in a cell: a move reads of it what is its
merchant's, and nothing of who has no account of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import Killed, Play, killing

from paydesk.adapters.acquirers.balance import BalanceLine, LineKind
from paydesk.core.clock import utc_now
from paydesk.domain.moving.copying import empty
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.passes import bring
from paydesk.domain.moving.steps import Step
from paydesk.domain.moving.tables import OF_ACCOUNTS, is_of_an_account, theirs
from paydesk.domain.proceeds.entering import enter_lines

BY_ACCOUNT = [table for table in OF_ACCOUNTS if is_of_an_account(table) and table != "acquirer_own_id"]
"""That one has one row an account, which is asked for with it."""
MANY, BATCH = 4000, 1000


@asynccontextmanager
async def nobody_reads(play: Play) -> AsyncIterator[None]:
    """Whoever names a table of accounts in either cell waits."""
    async with AsyncExitStack() as stack:
        for cell in (play.here, play.there):
            connection = await stack.enter_async_context(cell.database.acquire())
            await stack.enter_async_context(connection.transaction())
            await connection.execute(f"lock table {', '.join(BY_ACCOUNT)} in access exclusive mode")
        yield


async def test_who_has_no_account_of_its_own_is_moved_without_a_look_at_any(play: Play) -> None:
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(Step.closed))
    source, target, whose = play.here.side, play.there.side, play.merchant.id
    async with nobody_reads(play), asyncio.timeout(60):
        async with target.database.acquire() as connection, connection.transaction():
            await empty(connection, whose)
        await bring(source, target, whose)
        await bring(source, target, whose, last=True)
    await move_merchant(play.move)
    assert await play.is_open(play.there)


@pytest.mark.parametrize("table", ["balance_line", "operator_entry"])
async def test_its_own_rows_are_found_among_many_of_others(own: Owning, table: str) -> None:
    await own.read(own.play.here)
    line = BalanceLine("", LineKind.OTHER, utc_now() - timedelta(days=1), Decimal(1), Decimal("0.10"), "USD", "fee")
    database = own.play.here.database
    for begin in range(0, MANY, BATCH):
        lines = [replace(line, id=f"txn_{number}") for number in range(begin, begin + BATCH)]
        assert await enter_lines(database, "shared", lines) == BATCH
    await database.execute(f"analyze {table}")
    asked = f"explain delete from {table} where {theirs(table)}"
    plan = await database.fetch(asked, [THEIRS])
    said = "\n".join(row[0] for row in plan)
    assert "Seq Scan" not in said, said
