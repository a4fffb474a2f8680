"""Cells that share an account each read all that its lists have: what is of a merchant who is in
another cell waits, and is booked once, wherever the merchant is by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from secrets import token_hex
from typing import Any

import asyncpg
import pytest
from tests.breaking import say
from tests.domain.moving.both import SOON, Both, BothDisputes, BothRefunds
from tests.domain.moving.play import Cell as PlayedCell
from tests.domain.moving.play import Killed, Play, back, clean, going

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.database.pool import connected
from paydesk.domain.acquirers import waiting
from paydesk.domain.acquirers.other_cells import MOST, Heard, Known, alone
from paydesk.domain.acquirers.waiting import ON_THE_WAY, SILENT, UNBOOKED, UNREAD
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step


@pytest.fixture(params=[BothRefunds, BothDisputes], ids=["refunds", "disputes"])
async def both(joined: Play, request: pytest.FixtureRequest) -> Both:
    """The second cell is a deployment of its own; test databases are copies of one."""
    await say(joined.there.database, "deployment", {}, tag="another")
    of: type[Both] = request.param
    return of(joined)


def without_accounts(cell: PlayedCell) -> PlayedCell:
    """A cell that reads its account no more."""
    return replace(cell, desk=replace(cell.desk, acquirers={}))


async def test_it_is_booked_where_its_merchant_has_gone_before_it_was_read(both: Both) -> None:
    play = both.play
    name = await both.comes()
    assert await both.read(play.there) == 0
    assert [one["acquirer_reference"] for one in await both.waiting(play.there)] == [name]
    await move_merchant(going(play))
    assert await both.read(play.here) == 0, "it is not here any more"
    assert await both.differences(play.there) == [], "it is on its way into the books"
    assert await both.read(play.there, SOON) == 1
    assert await both.booked() == [0, 1]
    assert await both.waiting(play.there) == []
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]
    assert [await both.differences(cell) for cell in (play.here, play.there)] == [[], []]


async def test_where_the_merchant_stays_the_other_cell_says_nothing_and_asks_no_more(both: Both) -> None:
    play = both.play
    await both.comes()
    assert await both.read(play.there) == 0
    assert await both.read(play.there, SOON) == 0, "the other cell has it, and has not read it"
    assert await both.stand(play.there) == ["elsewhere"]
    assert await both.read(play.here) == 1
    assert await both.read(play.there, 2 * SOON) == 0
    many = len(both.asked)
    assert await both.stand(play.there) == ["over"]
    assert await both.read(play.there, timedelta(hours=20)) == 0
    assert len(both.asked) == many
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]
    assert await both.booked() == [1, 0]


async def test_what_was_booked_before_its_merchant_comes_is_not_booked_again(both: Both) -> None:
    play = both.play
    await both.comes()
    await both.read(play.there)
    assert await both.read(play.here) == 1
    await move_merchant(going(play))
    assert await both.read(play.there, SOON) == 0
    assert await both.booked() == [0, 1], "it came along"
    assert await both.waiting(play.there) == []
    await move_merchant(back(play))
    assert [await both.read(cell, 2 * SOON) for cell in (play.here, play.there)] == [0, 0]
    assert await both.booked() == [1, 0]
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]
    assert [await clean(cell) for cell in (play.here, play.there)] == [[], []]


async def test_who_was_there_before_and_comes_back_is_booked_where_they_are(both: Both) -> None:
    play = both.play
    name = await both.comes()
    await move_merchant(going(play))
    assert await both.read(play.here) == 0
    assert [one["acquirer_reference"] for one in await both.waiting(play.here)] == [name], "its keys are forgotten here"
    await move_merchant(back(play))
    assert await both.read(play.here, SOON) == 1
    assert await both.read(play.there, SOON) == 0
    assert await both.booked() == [1, 0]
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]


async def test_whose_merchant_is_on_the_way_waits_and_is_booked_once_it_is_there(both: Both) -> None:
    play = await both.on_the_way(Step.moved)
    async with connected(play.there.settings.database_url, name="work") as worker:
        at_work = replace(play.there, desk=replace(play.there.desk, database=worker))
        assert await both.read(at_work, SOON) == 0
        assert (await both.booked(), await both.told(play.there)) == ([0, 0], [])
        with suppress(Killed):
            await move_merchant(going(play))
        assert await both.read(at_work, ON_THE_WAY) == 1
    assert await both.booked() == [0, 1]
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]


async def test_whose_move_is_called_off_is_booked_where_it_stayed(both: Both) -> None:
    play = await both.on_the_way(Step.closed)
    assert await both.read(play.there, SOON) == 0
    await cancel_move(going(play))
    assert [await both.read(cell, 2 * SOON) for cell in (play.here, play.there)] == [1, 0]
    assert await both.booked() == [1, 0]
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]


async def test_whose_merchant_goes_between_the_question_and_its_answer_is_booked_once(both: Both) -> None:
    play = both.play
    await both.comes()

    async def goes() -> None:
        both.meanwhile = None
        await move_merchant(going(play))

    both.meanwhile = goes
    assert await both.read(play.there) == 0, "when it was tried, it was not here"
    assert await both.read(play.there, SOON) == 1
    assert await both.read(play.here, SOON) == 0
    assert await both.booked() == [0, 1]
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]
    assert [await clean(cell) for cell in (play.here, play.there)] == [[], []]


async def test_whose_merchant_comes_once_it_was_booked_there_and_the_answer_is_lost(both: Both) -> None:
    play = both.play
    await both.comes()
    assert await both.read(play.here) == 1
    both.silent = True
    assert await both.read(play.there) == 0
    both.silent = False
    await move_merchant(going(play))
    assert await both.read(play.there, SOON) == 0
    assert await both.booked() == [0, 1], "it came along"
    assert await both.waiting(play.there) == []
    assert [await clean(cell) for cell in (play.here, play.there)] == [[], []]


async def test_whoever_hears_nothing_of_what_was_written_writes_it_once_more(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, raised = both.play.there, list[int]()
    cell = both.telling(there, both.named("by hand"))
    honest = waiting.Later.write

    async def lost(later: Any, connection: Any) -> None:
        await honest(later, connection)
        raised.append(1)
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    with monkeypatch.context() as broken, suppress(asyncpg.ConnectionDoesNotExistError):
        broken.setattr(waiting.Later, "write", lost)
        await both.read(cell, ON_THE_WAY)
    assert raised
    await both.read(cell, ON_THE_WAY + SOON)
    await both.read(cell, 3 * ON_THE_WAY)
    assert await both.told(there) == [(both.alarm, both.subject("by hand"))]


async def test_cells_that_read_at_once_book_it_once(both: Both) -> None:
    play = both.play
    await both.comes()
    for later in (timedelta(0), SOON, 2 * SOON):
        await asyncio.gather(*(both.read(cell, later) for cell in (play.here, play.there)))
    assert await both.booked() == [1, 0]
    assert await both.stand(play.there) == ["over"]
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]


async def test_one_that_no_cell_knows_is_told_once_and_not_before_it_can_be_on_the_way(both: Both) -> None:
    there = both.play.there
    cell, told = both.telling(there, both.named("by hand")), [(both.alarm, both.subject("by hand"))]
    await both.read(cell)
    await both.read(cell, ON_THE_WAY - SOON)
    assert await both.told(there) == []
    await both.read(cell, ON_THE_WAY + SOON)
    assert await both.told(there) == told
    await settle_alarms(there.database, both.alarm, [told[0][1]], shop=None, by="ops", now=utc_now())
    await both.read(cell, timedelta(days=1))
    assert await both.told(there) == [], "whoever has seen to it hears of it no more"


async def test_a_cell_that_does_not_answer_may_have_it_and_is_named_after_hours(both: Both) -> None:
    there = both.play.there
    name = await both.comes()
    both.silent = True
    await both.read(there)
    await both.read(there, SILENT - SOON)
    assert await both.told(there) == []
    await both.read(there, SILENT + SOON)
    assert await both.told(there) == [(both.alarm, both.subject(name))]
    assert "of cell 7 there was no answer" in await both.told_of(there)
    both.silent = False
    await both.read(there, 2 * SILENT)
    assert await both.told(there) == [], "it answers, and has it"


async def test_a_cell_of_an_older_release_is_named_and_waited_for_no_longer_than_for_a_merchant(both: Both) -> None:
    there = both.play.there
    name = await both.comes()
    both.older = True
    await both.read(there)
    assert await both.told(there) == []
    await both.read(there, ON_THE_WAY + SOON)
    assert await both.told(there) == [(both.alarm, both.subject(name))]
    assert "cell 7 runs a release that can't say it" in await both.told_of(there)
    both.older = False
    await both.read(there, 3 * ON_THE_WAY)
    assert await both.told(there) == [], "it is of this release by now, and has it"


async def test_a_cell_that_has_it_and_is_silent_for_moments_is_not_named_for_hours(both: Both) -> None:
    there = both.play.there
    await both.comes()
    await both.read(there)
    await both.read(there, SILENT)
    both.silent = True
    await both.read(there, SILENT + ON_THE_WAY)
    assert await both.told(there) == []
    await both.read(there, 2 * SILENT)
    assert await both.told(there) == []
    await both.read(there, 2 * SILENT + ON_THE_WAY)
    assert [kind for kind, _ in await both.told(there)] == [both.alarm]


async def test_a_cell_that_has_booked_it_and_is_silent_for_moments_a_day_later_is_not_named(both: Both) -> None:
    play = both.play
    await both.comes()
    await both.read(play.there)
    assert await both.read(play.here) == 1
    await both.read(play.there, SOON)
    both.silent = True
    await both.read(play.there, timedelta(days=2))
    assert await both.told(play.there) == []
    both.silent = False
    await both.read(play.there, timedelta(days=2) + ON_THE_WAY + SOON)
    assert (await both.told(play.there), await both.stand(play.there)) == ([], ["over"])


async def test_what_the_other_cell_has_and_does_not_book_is_told_after_a_day(both: Both) -> None:
    play = both.play
    name = await both.comes()
    await both.read(play.there)
    await both.read(play.there, UNBOOKED - SOON)
    assert await both.told(play.there) == []
    await both.read(play.there, UNBOOKED + ON_THE_WAY)
    await both.read(play.there, UNBOOKED + 3 * ON_THE_WAY)
    assert await both.told(play.there) == [(both.alarm, both.subject(name))]
    assert "has not booked it for a day" in await both.told_of(play.there)
    assert await both.read(play.here) == 1
    await both.read(play.there, UNBOOKED + 6 * ON_THE_WAY)
    assert (await both.told(play.there), await both.booked()) == ([], [1, 0])


async def test_what_waits_at_an_account_that_is_read_no_more_is_told_after_hours(both: Both) -> None:
    there = both.play.there
    name = await both.comes()
    await both.read(there)
    left = without_accounts(there)
    await both.read(left, UNREAD - SOON)
    assert await both.told(there) == []
    for hours in (1, 2, 5):
        await both.read(left, UNREAD + timedelta(hours=hours))
    assert await both.told(there) == [(both.alarm, both.subject(name))]
    assert "nobody in this cell reads the account simulator any more" in await both.told_of(there)
    times = "select times from alarm where settled_at is null"
    assert await there.database.fetchval(times) == 1
    await both.read(there, UNREAD + timedelta(hours=6))
    assert await both.told(there) == [], "it is read again"


async def test_what_waits_at_an_account_that_is_read_no_more_is_over_once_the_other_cell_has_booked_it(
    both: Both,
) -> None:
    play = both.play
    await both.comes()
    await both.read(play.there)
    assert await both.read(play.here) == 1
    await both.read(without_accounts(play.there), UNREAD + SOON)
    assert (await both.told(play.there), await both.stand(play.there)) == ([], ["over"])


async def test_what_was_told_at_an_account_that_is_read_no_more_is_settled_once_the_other_cell_has_booked_it(
    both: Both,
) -> None:
    play = both.play
    name = await both.comes()
    await both.read(play.there)
    left = without_accounts(play.there)
    await both.read(left, UNREAD + SOON)
    assert await both.told(play.there) == [(both.alarm, both.subject(name))]
    assert await both.read(play.here) == 1
    await both.read(left, 2 * (UNREAD + SOON) + SOON)
    assert (await both.told(play.there), await both.stand(play.there)) == ([], ["over"])


async def test_of_very_many_each_is_asked_for_in_one_reading(both: Both) -> None:
    there, many = both.play.there, 2 * MOST + 50
    told = [both.named(f"re_{n:03}") for n in range(many)]
    await both.read(both.telling(there, *told))
    assert [len(keys) for keys in both.asked] == [MOST, MOST, 50]
    assert {key for keys in both.asked for key in keys} == {f"key re_{n:03}" for n in range(many)}
    assert await both.told(there) == []


async def test_of_very_many_each_is_told_in_one_reading_where_a_cell_is_alone(both: Both) -> None:
    there, many = both.play.there, 2 * MOST + 50
    cell = both.telling(there, *(both.named(f"re_{n:03}") for n in range(many)))
    await both.read_by(cell, timedelta(0), alone)
    assert await both.told(there) == sorted((str(both.alarm), both.subject(f"re_{n:03}")) for n in range(many))


async def test_a_cell_that_does_not_answer_is_asked_once_in_a_reading(both: Both) -> None:
    both.silent = True
    await both.read(both.telling(both.play.there, *(both.named(f"re_{n}") for n in range(3 * MOST))))
    assert len(both.asked) == 1


async def test_what_nobody_ever_knows_keeps_nothing_new_waiting(both: Both) -> None:
    cell = both.telling(both.play.there, *(both.named(f"re_{n}") for n in range(MOST + 50)))
    for hours in range(4):
        await both.read(cell, timedelta(hours=hours))
    both.asked.clear()
    await both.from_the_start(cell)
    await both.read(both.telling(cell, both.named("new")), timedelta(hours=5))
    assert "key new" in both.asked[0]


@pytest.mark.parametrize("name", ["re\x001", token_hex(5000)], ids=["no text", "very long"])
async def test_whatever_an_account_calls_one_it_waits_beside_the_others(both: Both, name: str) -> None:
    told = [both.named(name, "this"), both.named(f"{name} too", "that"), both.named("ours")]
    cell = both.telling(both.play.there, *told)
    await both.read(cell)
    await both.read(cell, ON_THE_WAY + SOON)
    assert len(await both.waiting(cell)) == len(await both.told(cell)) == 3
    assert {kind for kind, _ in await both.told(cell)} == {both.alarm}


async def test_an_account_whose_list_breaks_off_keeps_nothing_waiting(both: Both) -> None:
    cell = both.telling(both.play.there, both.named("by hand"), after_all=OutcomeUnknown("no answer"))
    await both.read(cell)
    await both.read(cell, ON_THE_WAY + SOON)
    assert await both.told(cell) == [(both.alarm, both.subject("by hand"))]


async def test_what_was_booked_in_a_cell_that_came_back_from_before_is_booked_where_its_merchant_goes(
    both: Both,
) -> None:
    play = both.play
    name = await both.comes()
    await both.read(play.there)

    async def booked(asked: Sequence[Any]) -> Heard:
        keys = [both.key(one) for one in asked] if isinstance(both, BothRefunds) else [name]
        return Heard(tuple(Known(key, is_over=True) for key in keys))

    await both.read_by(play.there, SOON, booked)
    assert await both.stand(play.there) == ["over"]
    # Here nothing of that is known: as in a backup, of which the merchant is taken away at once.
    await move_merchant(going(play))
    assert await both.read(play.there, timedelta(days=1, hours=1)) == 1
    assert (await both.booked(), await both.waiting(play.there)) == ([0, 1], [])
    assert await clean(play.there) == []


async def test_what_no_key_of_ours_can_be_keeps_the_others_from_nothing(both: Both) -> None:
    cell = both.play.there
    keys = ["x" * 500, "clé", "\n" * 200, "ours"]
    await both.read(both.telling(cell, *(both.named(f"re_{place}", key) for place, key in enumerate(keys))))
    assert both.asked == [["ours"]]
