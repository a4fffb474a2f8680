"""A merchant is fenced for seconds whoever else writes in one transaction for long: it sells while
they are waited for, and passes of other merchants' moves are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.breaking import say
from tests.domain.moving.play import HERE, Play, going
from tests.till import Till

from paydesk.core.errors import Unavailable
from paydesk.database.pool import Database
from paydesk.domain.cells import fencing
from paydesk.domain.cells.fencing import fence
from paydesk.domain.moving import ending, passes
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.payments.results import Paid

OTHER_CELL = 2
SOMEBODY = 4 * 10**13
"""A merchant of another cell."""


@asynccontextmanager
async def writing(database: Database, merchant_id: int) -> AsyncIterator[None]:
    """Somebody writes a merchant's rows in one transaction for as long as the block."""
    async with database.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await say(connection, "payment", {"merchant_id": merchant_id}, revision=77)
        yield
        await transaction.commit()


async def put_up(play: Play) -> None:
    await fence(play.here.database, play.merchant.id, other_cell=OTHER_CELL, tables=GUARDED)


@asynccontextmanager
async def beginning_late(play: Play, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Event]:
    """Somebody comes to write the merchant's rows just before the fence does, until the event."""
    begin, ends, tasks = fencing.queries.begin, asyncio.Event(), []

    async def write(has_written: asyncio.Event) -> None:
        async with writing(play.here.database, play.merchant.id):
            has_written.set()
            await ends.wait()

    async def begin_late(*given: object, **asked: object) -> object:
        has_written = asyncio.Event()
        tasks.append(asyncio.create_task(write(has_written)))
        await has_written.wait()
        return await begin(*given, **asked)

    monkeypatch.setattr(fencing.queries, "begin", begin_late)
    try:
        yield ends
    finally:
        ends.set()
        await asyncio.gather(*tasks)


@pytest.fixture
async def guarded(play: Play) -> Play:
    """Triggers are on, as where another merchant is on the way."""
    await fence(play.here.database, SOMEBODY, arrives=True, other_cell=OTHER_CELL, tables=GUARDED)
    return play


async def test_it_sells_while_somebody_writes_for_long(guarded: Play) -> None:
    play = guarded
    async with writing(play.here.database, play.beside.merchant_id):
        putting = asyncio.create_task(put_up(play))
        await asyncio.wait({putting}, timeout=2 * fencing._MOMENT)
        assert (putting.done(), await play.is_open(play.here)) == (False, True)
        assert await Till(play.here.desk, play.shop).buy("meanwhile") == Paid()
    await putting
    assert not await play.is_open(play.here)


async def test_nothing_has_changed_when_somebody_writes_for_too_long(
    guarded: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = guarded
    monkeypatch.setattr(fencing, "_PATIENCE", 0.0)
    async with writing(play.here.database, play.beside.merchant_id):
        with pytest.raises(Unavailable, match="nobody was fenced"):
            await put_up(play)
    assert await play.is_open(play.here)


async def test_who_began_to_write_just_before_the_fence_is_waited_for(
    guarded: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = guarded
    monkeypatch.setattr(fencing, "_CLOSED_FOR", 600.0)
    async with beginning_late(play, monkeypatch) as ends:
        putting = asyncio.create_task(put_up(play))
        while await play.is_open(play.here):
            assert not putting.done()
            await asyncio.sleep(0.01)
        await asyncio.wait({putting}, timeout=0.3)
        assert (putting.done(), await play.is_open(play.here)) == (False, False)
        ends.set()
        await putting


async def test_it_sells_again_when_who_began_just_before_goes_on(
    guarded: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = guarded
    monkeypatch.setattr(fencing, "_CLOSED_FOR", 0.5)
    async with beginning_late(play, monkeypatch):
        with pytest.raises(Unavailable, match="run the same again"):
            await put_up(play)
        assert await play.is_open(play.here)
    assert await Till(play.here.desk, play.shop).buy("afterwards") == Paid()


@pytest.mark.parametrize("comes", [True, False])
async def test_moves_of_other_merchants_are_not_waited_for(
    joined: Play, monkeypatch: pytest.MonkeyPatch, *, comes: bool
) -> None:
    """One comes here, in a pass that takes hours, or what has gone from here is deleted."""
    play = joined
    there = replace(going(play), merchant_id=play.beside.merchant_id)
    if comes:
        await move_merchant(there)
    other = replace(there, source=there.target, target=there.source, to=HERE) if comes else there
    room, name = (passes, "hand_over") if comes else (ending, "leave_accounts")
    stands, goes_on = asyncio.Event(), asyncio.Event()
    last_act = getattr(room, name)

    async def long(*given: Any, **asked: Any) -> Any:
        stands.set()
        await goes_on.wait()
        return await last_act(*given, **asked)

    monkeypatch.setattr(room, name, long)
    monkeypatch.setattr(fencing, "_PATIENCE", 0.0)
    under_way = asyncio.create_task(move_merchant(other))
    await stands.wait()
    try:
        await put_up(play)
    finally:
        goes_on.set()
        await under_way
    assert not await play.is_open(play.here)
