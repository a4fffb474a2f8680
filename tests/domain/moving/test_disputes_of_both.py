"""Disputes alone are asked for again once another cell has booked them, and wait with their reason
where their payment is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.breaking import say
from tests.domain.moving.both import SOON, BothDisputes
from tests.domain.moving.play import Play

from paydesk.adapters.acquirers.disputes import DisputeStatus
from paydesk.core.clock import utc_now
from paydesk.domain.acquirers.other_cells import Heard, Known
from paydesk.domain.acquirers.waiting import ON_THE_WAY, SILENT
from paydesk.domain.chargebacks.reckoning import Waits
from paydesk.domain.chargebacks.waiting_disputes import keep_known


@pytest.fixture
async def both(joined: Play) -> BothDisputes:
    await say(joined.there.database, "deployment", {}, tag="another")
    return BothDisputes(joined)


async def booked(asked: Sequence[Any]) -> Heard:
    return Heard(tuple(Known(one.reference, is_over=True) for one in asked))


async def silent(_asked: Sequence[Any]) -> Heard:
    return Heard(silent=(7,))


async def test_what_was_told_of_while_it_was_here_is_settled_once_another_cell_has_booked_it(
    both: BothDisputes,
) -> None:
    here, there = both.play.here, both.play.there
    name = await both.comes()
    why = {name: (both.named(name), Waits("its amount is no sum of money"))}
    await keep_known(there.database, "simulator", why, {}, now=utc_now())
    assert await both.told(there) == [(both.alarm, both.subject(name))]
    assert await both.read(here) == 1, "its merchant has gone there since"
    await both.read(there, ON_THE_WAY)
    assert (await both.told(there), await both.stand(there)) == ([], ["over"])


async def test_what_is_told_otherwise_later_waits_for_a_silent_cell_as_for_the_first_time(both: BothDisputes) -> None:
    there, later = both.play.there, timedelta(hours=20)
    told = both.named("theirs")
    await both.read_by(both.telling(there, told), timedelta(0), booked)
    assert await both.stand(there) == ["over"]
    await both.from_the_start(there)
    lost = both.telling(there, replace(told, status=DisputeStatus.LOST))
    await both.read_by(lost, later, silent)
    assert (await both.told(there), await both.stand(there)) == ([], ["waits"])
    await both.read_by(lost, later + SILENT + SOON, silent)
    assert await both.told(there) == [(both.alarm, both.subject("theirs"))]
