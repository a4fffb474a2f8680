"""Whoever moves a merchant's test clock may end that before the merchant is fenced, and gives way
then: the shop is not closed for it, and it is told how far the clock came.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from ipaddress import ip_network

import pytest
from tests.breaking import say
from tests.domain.moving.play import Cell, Killed, Play, clean, killing
from tests.domain.moving.test_waits import Heard

from paydesk.adapters.outbound import OutboundClient
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.cells import fencing
from paydesk.domain.cells.fencing import Fenced, close, fence
from paydesk.domain.merchants.test_clock import held_clock, read_clock
from paydesk.domain.moving import moving
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.test_clock import resetting
from paydesk.domain.test_clock.advancing import Progress, Summary, What, advance
from paydesk.domain.test_clock.resetting import reset_test_side
from paydesk.domain.test_clock.stopping import OnItsWay

YEARS, MONTH = Period(40, "year"), Period(1, "month")
WITH_A_CHARGE = Period(2, "month")
"""Longer than any month between two charges: from 28 February until 30 March is more than one."""


class Mover:
    """Advances the merchant's test clock in a cell, and says when it is `on_its_way`."""

    def __init__(self, play: Play, client: OutboundClient) -> None:
        self.on_its_way = asyncio.Event()
        self._play = play
        self._client = client

    async def advance(self, cell: Cell, by: Period) -> Summary:
        sender = PingbackSender(cell.database, cell.vault, self._client)
        return await advance(cell.desk, sender, self._play.merchant.id, by, report=self._hear)

    def _hear(self, _made: Progress) -> None:
        self.on_its_way.set()


@pytest.fixture
async def mover(play: Play) -> AsyncIterator[Mover]:
    client = OutboundClient([ip_network("127.0.0.0/8")], timeout=15.0)
    yield Mover(play, client)
    await client.close()


async def test_an_advance_gives_way_to_a_move_and_goes_on_there(
    play: Play, mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "CLOCK_ENDS", 1.5)
    monkeypatch.setattr(fencing, "_CLOCK_ENDS", 600.0)
    heard = Heard()
    advancing = asyncio.create_task(mover.advance(play.here, YEARS))
    await asyncio.wait_for(mover.on_its_way.wait(), 30)
    moved = await move_merchant(play.move, passed=heard.passed, waits=heard.waits)
    assert (heard.what[:4], str(moved.left)) == (["copied", "clocks begins", "clocks ends", "fenced"], "")
    with pytest.raises(OnItsWay, match=r"stands at .* being moved to another server; once .* advance it by the rest"):
        await advancing
    stopped = advancing.exception()
    assert isinstance(stopped, OnItsWay)
    clock = await read_clock(play.there.database, play.merchant.id, real_now=utc_now())
    assert timedelta(0) <= clock.now - stopped.now < timedelta(minutes=5)
    summary = await mover.advance(play.there, WITH_A_CHARGE)
    assert summary.counts[What.PAYMENT] >= 1
    assert (await clean(play.here), await clean(play.there)) == ([], [])


async def test_one_that_ends_soon_is_waited_for_while_the_shop_is_open(play: Play) -> None:
    heard, theirs = Heard(), {"id": play.merchant.id}
    await say(play.here.database, "merchant", theirs, clock_held_until=utc_now() + timedelta(hours=1))
    going_on = asyncio.create_task(move_merchant(play.move, passed=heard.passed, waits=heard.waits))
    await heard.comes_to("clocks begins", going_on)
    await say(play.here.database, "merchant", theirs, clock_held_until=utc_now())
    await going_on
    assert heard.what == ["copied", "clocks begins", "clocks ends", "fenced", "closed"]


async def test_one_that_does_not_give_way_has_the_shop_closed_for_seconds(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "CLOCK_ENDS", 0.0)
    monkeypatch.setattr(fencing, "_CLOCK_ENDS", 0.5)
    heard, theirs = Heard(), {"id": play.merchant.id}
    await say(play.here.database, "merchant", theirs, clock_held_until=utc_now() + timedelta(hours=1))
    moved = await move_merchant(play.move, passed=heard.passed, waits=heard.waits)
    assert (heard.what, str(moved.left)) == (["copied", "fenced", "closed"], "")


@pytest.mark.parametrize("step", [Step.fenced, Step.closed])
async def test_none_begins_once_it_is_fenced(play: Play, mover: Mover, step: Step) -> None:
    before = await read_clock(play.here.database, play.merchant.id, real_now=utc_now())
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(step))
    with pytest.raises(Fenced, match="nothing was done"):
        await mover.advance(play.here, MONTH)
    with pytest.raises(Fenced, match="nothing was done"):
        await reset_test_side(play.here.database, play.merchant.id)
    after = await read_clock(play.here.database, play.merchant.id, real_now=utc_now())
    assert (after.ahead, after.moving) == (before.ahead, False)


async def test_who_holds_a_clock_when_it_is_closed_hears_why_the_block_ended(play: Play) -> None:
    async def hold() -> None:
        async with held_clock(play.here.database, play.merchant.id):
            await _close(play)
            raise Conflict("this one stopped")

    with pytest.raises(Conflict, match="this one stopped"):
        await hold()


async def test_a_reset_is_told_that_it_deleted_in_part(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = resetting._delete

    async def delete(database: Database, kind: str, merchant_id: int) -> int:
        if kind == "payments":
            await _close(play)
        return await begun(database, kind, merchant_id)

    monkeypatch.setattr(resetting, "_delete", delete)
    with pytest.raises(Conflict, match=r"deleted in part: reset it again once its shop is open again"):
        await reset_test_side(play.here.database, play.merchant.id)


async def _close(play: Play) -> None:
    await fence(play.here.database, play.merchant.id, other_cell=play.move.to, tables=GUARDED)
    await close(play.here.database, play.merchant.id, patience=0)
