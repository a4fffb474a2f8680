"""A server takes over between two passes of a move, having heard of everything or not: the move
goes on, and what the merchant has done meanwhile comes along.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.domain.moving.play import HERE, SEALED, THERE, Cell, Killed, Play, clean, killing, played
from tests.lengths import long
from tests.processes import PATIENCE
from tests.standing_by import Pair, pair_of_servers
from tests.till import Till

from paydesk.database.pool import AWAY
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.settings import Settings

pytestmark = pytest.mark.faults


@dataclass(frozen=True)
class Failing:
    """A move between two cells, of which the servers of one may take over from each other."""

    play: Play
    pair: Pair
    cell: Cell

    async def begin(self, until: Step) -> None:
        """A move that dies at a step."""
        with pytest.raises(Killed):
            await move_merchant(self.play.move, passed=killing(until))

    async def sell(self, order: str) -> None:
        """The shop sells where it is."""
        await Till(self.play.here.desk, self.play.shop).sell(order)

    async def sold(self, order: str) -> int:
        """How many payments of an order are where the shop has gone."""
        asked = "select count(*) from payment where merchant_order_id = $1 and paid_at is not null"
        return int(await self.play.there.database.fetchval(asked, order))

    async def taken_over(self) -> None:
        """Wait until the cell's database answers again, over each connection."""
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(*AWAY):
                    for _ in range(20):
                        await self.cell.database.fetchval("select 1")
                    return
                await asyncio.sleep(0.02)


Failover: TypeAlias = Callable[[Failing], Awaitable[None]]


async def in_good_order(failing: Failing) -> None:
    """The standby has heard of everything."""
    await failing.pair.switch_over()


async def as_it_dies(failing: Failing) -> None:
    """So it has where nobody is writing, and the primary is killed."""
    await failing.pair.caught_up()
    await failing.pair.fail_over()


@asynccontextmanager
async def failing(server_url: str, usual_settings: Settings, tmp_path: Path, which: int) -> AsyncIterator[Failing]:
    """A play in which cell `which` has two servers."""
    async with pair_of_servers(tmp_path) as pair:
        await pair.primary.say("grant set on parameter session_replication_role to paydesk")
        async with played(server_url, usual_settings, tmp_path, elsewhere={which: pair.url}) as play:
            await pair.caught_up()
            yield Failing(play, pair, play.here if which == HERE else play.there)


async def arrived(failing: Failing, before: dict[str, str]) -> None:
    """Everything of the merchant is in the other cell, as it was here, and both cells are right."""
    play = failing.play
    there = await play.rows(play.there, play.merchant.id)
    assert [name for name in before if name not in SEALED and before[name] != there[name]] == []
    assert await play.is_open(play.there)
    left = await play.rows(play.here, play.merchant.id)
    assert [name for name in left if name != "forgotten_attempt" and left[name] != "[]"] == []
    assert (await clean(play.here), await clean(play.there)) == ([], [])


@pytest.mark.parametrize(
    ("which", "fails"),
    [
        (HERE, in_good_order),
        pytest.param(HERE, as_it_dies, marks=long),
        pytest.param(THERE, in_good_order, marks=long),
        pytest.param(THERE, as_it_dies, marks=long),
    ],
)
async def test_a_server_takes_over_between_two_passes(
    server_url: str, usual_settings: Settings, tmp_path: Path, which: int, fails: Failover
) -> None:
    async with failing(server_url, usual_settings, tmp_path, which) as stage:
        await stage.begin(Step.copied)
        await stage.sell("between")
        await fails(stage)
        await stage.taken_over()
        await stage.sell("after")
        await stage.begin(Step.completed)
        before = await stage.play.rows(stage.play.here, stage.play.merchant.id)
        await move_merchant(stage.play.move)
        await arrived(stage, before)
        assert (await stage.sold("between"), await stage.sold("after")) == (1, 1)


@pytest.mark.parametrize("until", [Step.followed, pytest.param(Step.completed, marks=long)])
async def test_the_other_cell_forgets_what_came(
    server_url: str, usual_settings: Settings, tmp_path: Path, until: Step
) -> None:
    async with failing(server_url, usual_settings, tmp_path, THERE) as stage:
        await stage.begin(Step.copied)
        await stage.pair.caught_up()
        await stage.pair.cut()
        await stage.sell("forgotten there")
        await stage.begin(until)
        await stage.pair.fail_over()
        await stage.taken_over()
        await stage.begin(Step.completed)
        before = await stage.play.rows(stage.play.here, stage.play.merchant.id)
        await move_merchant(stage.play.move)
        await arrived(stage, before)
        assert await stage.sold("forgotten there") == 1


@long
async def test_the_cell_that_it_leaves_forgets_that_it_goes(
    server_url: str, usual_settings: Settings, tmp_path: Path
) -> None:
    """It is open there again, and sells; what came is no copy of that."""
    async with failing(server_url, usual_settings, tmp_path, HERE) as stage:
        await stage.pair.cut()
        await stage.begin(Step.completed)
        await stage.pair.fail_over()
        await stage.taken_over()
        assert await stage.play.is_open(stage.play.here)
        await stage.sell("after")
        await stage.begin(Step.completed)
        before = await stage.play.rows(stage.play.here, stage.play.merchant.id)
        await move_merchant(stage.play.move)
        await arrived(stage, before)
        assert await stage.sold("after") == 1
