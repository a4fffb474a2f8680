"""While workers of both cells read what acquirers say, and customers dispute what they paid, a
merchant goes with its own account, and back: each dispute and each line is booked once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from tests.breaking import say
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import Cell, back, clean, going
from tests.standings import standings

from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound, Unavailable
from paydesk.database.pool import connected
from paydesk.domain.acquirers.opening import NotOpen
from paydesk.domain.cells.fencing import Fenced
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.payments.results import Paid

DISPUTED, TURNS = 5, 2


@asynccontextmanager
async def working(own: Owning) -> AsyncIterator[list[Cell]]:
    """Workers of both cells, which read all the time."""
    async with AsyncExitStack() as stack:
        cells = []
        for cell in (own.play.here, own.play.there):
            pool = await stack.enter_async_context(connected(cell.settings.database_url, name="work"))
            cells.append(replace(cell, desk=replace(cell.desk, database=pool)))
        yield cells


@dataclass
class Bustle:
    """What goes on at the merchant's account until it is over."""

    own: Owning
    disputed: list[str] = field(default_factory=list)
    is_over: bool = False

    async def work(self, cell: Cell) -> None:
        """A worker reads, in a process that looks which accounts there are."""
        while not self.is_over:
            await self.own.look()
            with suppress(Unavailable, NotOpen):
                await self.own.read(cell)

    async def sell(self) -> None:
        """Customers pay in the cell that has the shop."""
        play, number = self.own.play, 0
        while not self.is_over:
            cell = play.here if await play.is_open(play.here) else play.there
            with suppress(Fenced, NotFound):
                assert await self.own.till(cell).buy(f"disputed-{number}") == Paid()
                number += 1
            await asyncio.sleep(0.05)

    async def dispute(self) -> None:
        """Every third customer takes back what they have just paid."""
        seen: set[str] = set()
        while not self.is_over:
            stands = standings(self.own.bank.record.operations())
            for key in sorted({key for key, one in stands.items() if one.net} - seen):
                seen.add(key)
                if len(seen) % 3 == 0:
                    self.own.bank.open_dispute(key, "fraudulent")
                    self.disputed.append(key)
            await asyncio.sleep(0.1)

    async def move(self) -> None:
        """The merchant goes, and comes back, again and again."""
        try:
            for _ in range(TURNS):
                await self._more_disputed()
                await move_merchant(going(self.own.play))
                await self._more_disputed()
                await move_merchant(back(self.own.play))
        finally:
            self.is_over = True

    async def _more_disputed(self) -> None:
        """Wait until customers have taken back some more."""
        before = len(self.disputed)
        while len(self.disputed) < before + DISPUTED / (2 * TURNS):  # noqa: ASYNC110 (a bank sends no event)
            await asyncio.sleep(0.05)


async def test_each_dispute_and_each_line_is_booked_once(own: Owning) -> None:
    play, bustle = own.play, Bustle(own)
    async with working(own) as cells, asyncio.TaskGroup() as everybody:
        for one in (*map(bustle.work, cells), bustle.sell(), bustle.dispute(), bustle.move()):
            everybody.create_task(one)
    await own.look()
    # What was disputed before it was written down waits for some seconds.
    await say(play.here.database, "dispute_waiting", {}, next_at=utc_now())
    await own.read(play.here)
    await own.read(play.there)
    booked = "select count(*), count(distinct acquirer_reference) from chargeback where acquirer = $1"
    many = len(bustle.disputed)
    assert (many > DISPUTED, tuple(await play.here.database.fetchrow(booked, THEIRS))) == (True, (many, many))
    assert await play.there.database.fetchval("select count(*) from chargeback") == 0
    assert await own.of_account(play.there) == {}
    assert {"operator_entry", "balance_line"} <= set(await own.of_account(play.here))
    lines = "select count(*) from balance_line where acquirer = $1 and kind = 'chargeback'"
    assert await play.here.database.fetchval(lines, THEIRS) == many
    for cell in (play.here, play.there):
        told = await cell.database.fetch("select kind, subject, reason from alarm where settled_at is null")
        assert [tuple(one) for one in told] == []
    assert (await clean(play.here), await clean(play.there)) == ([], [])
