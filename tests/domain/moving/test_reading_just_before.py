"""A reading of a merchant's account that begins just before the merchant is fenced is never cut
off, and has the shop closed for seconds at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from tests.breaking import say
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import Killed, going, killing

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.domain.moving import accounts, moving
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.payments.results import Paid

HOUR = timedelta(hours=1)


@dataclass
class Readings:
    """A worker reads the merchant's account for an hour, as often as it is told to `begin`; before
    the move waits for it anew, customers buy, and the reading ends.
    """

    own: Owning
    begin: int
    begun: int = 0

    async def wait(self, *given: Any) -> None:
        """What the move calls before it fences; the reading begins once it has waited."""
        here = self.own.play.here
        if self.begun:
            assert await self.own.till(here).buy(f"meanwhile-{self.begun}") == Paid()
        await self._lease(None)
        await accounts.wait_until_they_may_go(*given)
        if self.begun < self.begin:
            self.begun += 1
            await self._lease(HOUR)

    async def _lease(self, time: timedelta | None) -> None:
        until = None if time is None else utc_now() + time
        await say(self.own.play.here.database, "dispute_reading", {"acquirer": THEIRS}, leased_until=until)


@pytest.fixture
async def reading(own: Owning, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Readings]:
    """A move that goes on when everything was copied, and how often a reading begins."""
    await own.read(own.play.here)
    with pytest.raises(Killed):
        await move_merchant(going(own.play), passed=killing(Step.followed))

    def begin(times: int) -> Readings:
        # The first one begins after the copy, and is waited for.
        made = Readings(own, times + 1)
        monkeypatch.setattr(moving, "wait_until_they_may_go", made.wait)
        monkeypatch.setattr(moving, "CLOSED_FOR_READINGS", 0.5, raising=False)
        return made

    return begin


async def test_it_sells_until_the_reading_is_over_and_goes_then(
    own: Owning, reading: Callable[[int], Readings]
) -> None:
    readings = reading(2)
    await move_merchant(going(own.play), patience=1)
    assert (readings.begun, await own.play.is_open(own.play.there)) == (3, True)


async def test_it_goes_on_here_if_it_is_read_again_and_again(own: Owning, reading: Callable[[int], Readings]) -> None:
    readings = reading(100)
    with pytest.raises(Conflict, match="run the same command again"):
        await move_merchant(going(own.play), patience=1)
    assert (readings.begun, await own.play.is_open(own.play.here)) == (moving.MOST_FENCES + 1, True)


async def test_all_is_ready_for_the_fence_when_readings_are_waited_for(
    own: Owning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No table is waited for after that, while another reading would begin."""
    play, on = own.play, []
    counted = "select count(*) from pg_trigger where tgname = 'merchant_is_fenced' and tgenabled <> 'D'"

    async def wait(*given: Any) -> None:
        await accounts.wait_until_they_may_go(*given)
        on.append(await play.here.database.fetchval(counted))

    monkeypatch.setattr(moving, "wait_until_they_may_go", wait)
    await move_merchant(going(play))
    assert on[-1] >= len(GUARDED)
    assert await play.here.database.fetchval(counted) == 0
