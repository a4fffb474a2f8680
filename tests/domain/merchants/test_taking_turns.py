from __future__ import annotations

import asyncio
import re

from tests.database.statements import all_statements
from tests.database.without_merchant import title

from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.taking_turns import take_turn

_HOLDS = re.compile(r"\s*select\b.*\bfrom merchant\b.*\bfor (?:no key )?update(?: of m)?\s*;?\s*", re.DOTALL)


def test_one_statement_holds_the_row_of_a_merchant() -> None:
    """Another one might hold it less firmly, or those of several in another order."""
    holding = {title(name) for name, statement in all_statements().items() if _HOLDS.fullmatch(statement.written)}
    assert len(holding) == 1, holding


async def test_one_at_a_time_has_the_turn_of_a_merchant(database: Database, merchant: Merchant) -> None:
    came: list[str] = []

    async def next_one() -> None:
        async with database.acquire() as connection, connection.transaction():
            await take_turn(connection, merchant.id)
            came.append("the next")

    async with database.acquire() as connection, connection.transaction():
        await take_turn(connection, merchant.id)
        waiting = asyncio.ensure_future(next_one())
        await database.fetchval("select pg_sleep(0.2)")
        came.append("the first")
    await waiting
    assert came == ["the first", "the next"]
