"""Whoever moves a merchant hears of each wait: for what, and how long it may last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from tests import set_back
from tests.breaking import say
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import Play, going

from paydesk.core.clock import utc_now
from paydesk.domain.cells import fencing, waits
from paydesk.domain.cells.waits import Wait
from paydesk.domain.moving import accounts
from paydesk.domain.moving.moving import Moved, move_merchant
from paydesk.domain.moving.steps import Step

HOUR = timedelta(hours=1)


@dataclass
class Heard:
    """What was heard of waits and steps, in their order, and how long each wait may last."""

    what: list[str] = field(default_factory=list)
    seconds: dict[Wait, float] = field(default_factory=dict)

    @contextmanager
    def waits(self, wait: Wait, seconds: float) -> Iterator[None]:
        self.seconds[wait] = seconds
        self.what.append(f"{wait} begins")
        yield
        self.what.append(f"{wait} ends")

    def passed(self, step: Step) -> None:
        if step in (Step.copied, Step.fenced, Step.closed):
            self.what.append(str(step))

    async def comes_to(self, what: str, moving: asyncio.Task[Moved]) -> None:
        """Wait until it is heard."""
        while what not in self.what:
            assert not moving.done(), self.what
            await asyncio.sleep(0.01)


async def test_that_its_accounts_are_opened_there_and_read_here(own: Owning, monkeypatch: pytest.MonkeyPatch) -> None:
    play, heard = own.play, Heard()
    await own.read(play.here)
    monkeypatch.setattr(accounts, "OPENED_AFTER", HOUR)
    reading = {"acquirer": THEIRS}
    await say(play.here.database, "balance_reading", reading, leased_until=utc_now() + HOUR)
    moving = asyncio.create_task(move_merchant(going(play), passed=heard.passed, waits=heard.waits))
    await heard.comes_to("opened begins", moving)
    async with play.there.database.acquire() as there, there.transaction():
        await there.execute("set local session_replication_role = replica")
        await set_back.accounts_serve(there)
    await heard.comes_to("readings begins", moving)
    await say(play.here.database, "balance_reading", reading, leased_until=utc_now())
    await moving
    before = heard.what[: heard.what.index("fenced")]
    assert before == ["copied", "opened begins", "opened ends", "readings begins", "readings ends"]
    assert heard.seconds[Wait.opened] <= HOUR.total_seconds()
    assert heard.seconds[Wait.readings] == accounts.READ_FOR


async def test_calls_in_the_air(play: Play) -> None:
    heard, theirs = Heard(), {"merchant_id": play.merchant.id}
    await say(play.here.database, "pingback", theirs, state="due", leased_until=utc_now() + HOUR)
    await move_merchant(play.move, passed=heard.passed, waits=heard.waits, patience=2)
    assert heard.what == ["copied", "fenced", "calls begins", "calls ends", "closed"]
    assert heard.seconds == {Wait.calls: 2}


async def test_who_writes_in_one_transaction(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "MOMENT", 0.0)
    heard, is_told = Heard(), asyncio.Event()

    @contextmanager
    def told(wait: Wait, seconds: float) -> Iterator[None]:
        is_told.set()
        with heard.waits(wait, seconds):
            yield

    async with play.here.database.acquire() as connection:
        writing = connection.transaction()
        await writing.start()
        await say(connection, "merchant", {"id": play.beside.merchant_id}, name="Besides")
        moving = asyncio.create_task(move_merchant(play.move, waits=told))
        await is_told.wait()
        assert (heard.what, heard.seconds) == (["writers begins"], {Wait.writers: fencing._PATIENCE})
        await writing.commit()
    await moving


async def test_what_is_over_in_a_moment_is_worth_no_word(own: Owning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "MOMENT", 600.0)
    heard, theirs = Heard(), {"id": own.play.merchant.id}
    await say(own.play.here.database, "merchant", theirs, clock_held_until=utc_now() + timedelta(seconds=3))
    await move_merchant(going(own.play), passed=heard.passed, waits=heard.waits)
    assert heard.what == ["copied", "fenced", "closed"]
