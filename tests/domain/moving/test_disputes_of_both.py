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
from paydesk.domain.acquirers.waiting import KEPT, ON_THE_WAY, SELDOM, SILENT
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.chargebacks.reckoning import Waits
from paydesk.domain.chargebacks.waiting_disputes import keep_known
from paydesk.domain.operations.chargebacks import list_waiting
from paydesk.domain.operations.told_unknown import list_told_unknown


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


async def test_what_all_cells_say_that_they_do_not_know_is_asked_for_once_a_day(both: BothDisputes) -> None:
    there = both.play.there
    cell, told = both.telling(there, both.named("by hand")), [(both.alarm, both.subject("by hand"))]
    await both.read(cell)
    await both.read(cell, ON_THE_WAY + SOON)
    assert await both.told(there) == told
    both.asked.clear()
    for hours in (1, 2, 20):
        await both.from_the_start(cell)
        await both.read(cell, timedelta(hours=hours))
    assert (both.asked, await both.told(there)) == ([], told), "told as before, it is no news"
    await both.read(cell, ON_THE_WAY + SELDOM + 2 * SOON)
    assert both.asked == [["key by hand"]]


async def test_what_no_cell_ever_knows_is_given_up_once_it_is_not_told_any_more(both: BothDisputes) -> None:
    there = both.play.there
    cell, subject = both.telling(there, both.named("by hand")), both.subject("by hand")
    for later in (timedelta(0), ON_THE_WAY + SOON, KEPT - SOON):
        await both.read(cell, later)
    assert await both.stand(there) == ["unknown"]
    await both.read(cell, KEPT + SELDOM)
    (given_up,) = await list_told_unknown(there.database, account=None, most=9)
    assert (await both.stand(there), "tried no more" in given_up.reason) == (["given_up"], True)
    assert [(one.told.reference, one.next_at) for one in await list_waiting(there.database, most=9)] == [
        ("by hand", None)
    ]
    both.asked.clear()
    await both.read(cell, KEPT + 9 * SELDOM)
    assert (both.asked, await both.told(there)) == ([], [(both.alarm, subject)])
    await settle_alarms(there.database, both.alarm, [subject], shop=None, by="ops", now=utc_now())
    await both.read(cell, KEPT + 9 * SELDOM)
    assert await both.waiting(there) == [], "whoever has seen to it sees it no more"


async def test_what_was_given_up_and_is_told_again_begins_anew(both: BothDisputes) -> None:
    there, later = both.play.there, KEPT + 9 * SELDOM
    cell, subject = both.telling(there, both.named("by hand")), both.subject("by hand")
    for at in (timedelta(0), ON_THE_WAY + SOON, KEPT + SOON):
        await both.read(cell, at)
    assert await both.stand(there) == ["given_up"]
    await both.from_the_start(cell)
    await both.read(cell, later)
    assert (await both.stand(there), both.asked[-1]) == (["waits"], ["key by hand"])
    await settle_alarms(there.database, both.alarm, [subject], shop=None, by="ops", now=utc_now())
    await both.read(cell, later + ON_THE_WAY + SOON)
    assert await both.told(there) == [(both.alarm, subject)]
