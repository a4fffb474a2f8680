"""A database comes back from before: a move, its going on and its cancelling never open a merchant
in two cells, nor delete what nobody else has, and say what to do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest
from tests.domain.moving.play import HERE, SEALED, THERE, Play
from tests.domain.moving.putting_back import HOME, Past
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.database.pool import Database
from paydesk.domain.cells import directory
from paydesk.domain.cells.adding import add_cell
from paydesk.domain.cells.directory import Entry, Kind, enter, switch_merchant
from paydesk.domain.cells.fencing import Fence, fence, find_fence, lift
from paydesk.domain.moving import witnesses
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.passes import CalledBack
from paydesk.domain.moving.steps import Step
from paydesk.domain.moving.tables import GUARDED


@dataclass(frozen=True)
class Case:
    """Which database came back, from which step (none: from before the move) of a move that had
    died at another one (none: it had ended); in which cells the merchant is open then; and what is
    said of `--cancel` and of the move (nothing: it is done).
    """

    back: str
    begun: Step | None
    died: Step | None
    is_open: list[int]
    cancelled: str = ""
    moved: str = ""

    def __str__(self) -> str:
        return f"{self.back} {self.begun or 'before'} {self.died or 'ended'}"


ENDS, BOTH, NOT_MOVED = "the move again ends it", "is in both cells", "is not being moved"
CASES = [
    Case("here", None, Step.completed, [HERE]),
    Case("here", None, Step.moved, [HERE]),
    Case("here", None, Step.switched, [HERE], ENDS),
    Case("here", Step.closed, Step.moved, []),
    Case("here", Step.closed, Step.switched, [], ENDS),
    Case("here", Step.fenced, Step.opened, [THERE], f"{BOTH}.*It stays closed here", BOTH),
    Case("here", Step.closed, None, [THERE], f"{BOTH}.*It stays closed here", BOTH),
    Case("here", None, None, [HERE, THERE], f"{BOTH}.*merchant suspend", f"{BOTH}.*merchant suspend"),
    Case("there", None, Step.closed, []),
    Case("there", Step.copied, Step.completed, []),
    Case("there", None, Step.moved, [], ENDS),
    Case("there", Step.copied, Step.switched, [], ENDS),
    Case("there", Step.followed, Step.opened, [], ENDS),
    Case("there", Step.completed, Step.opened, [], ENDS),
    Case("there", Step.completed, None, [], "put it back to a later time"),
    Case("there", Step.copied, None, [], "has a part of it", "has a part of it.*put it back to a later time"),
    Case("there", None, None, [], NOT_MOVED, "directory leads to cell 2: its database came back"),
    Case("home", None, Step.switched, [], ENDS),
    Case("home", None, None, [THERE], f"{NOT_MOVED}: it is in cell 2", "in cell 2, where the directory does not lead"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_where_a_merchant_is_when_a_database_came_back(past: Past, case: Case) -> None:
    rows = await past.play.rows(past.play.here, past.play.merchant.id)
    if case.begun:
        await past.until(case.begun)
    copy = await past.copy(case.back)
    await past.until(case.died)
    past.put_back(case.back, copy)
    assert await past.open_in() == case.is_open
    if case.cancelled:
        with pytest.raises(Conflict, match=case.cancelled):
            await cancel_move(past.going)
        assert await past.open_in() == case.is_open
    else:
        await cancel_move(past.going)
        assert await past.open_in() == [HERE]
        assert await past.play.rows(past.play.here, past.play.merchant.id) == rows
    if case.moved:
        with pytest.raises((Conflict, NotFound), match=case.moved):
            await move_merchant(past.going)
        assert await past.open_in() == case.is_open
        return
    await move_merchant(past.going)
    assert (await past.open_in(), await past.led_to()) == ([THERE], THERE)
    there = await past.play.rows(past.play.there, past.play.merchant.id)
    assert [name for name in rows if name not in SEALED and rows[name] != there[name]] == []
    assert await find_fence(past.play.here.database, past.play.merchant.id) is None


async def test_a_cell_that_came_back_from_before_a_move_that_goes_on(past: Past) -> None:
    copy = await past.copy("there")
    await past.until(Step.closed)
    past.put_back("there", copy)
    with pytest.raises(CalledBack, match=r"other cell came back from before it began.*begins anew"):
        await move_merchant(past.going)
    assert await past.open_in() == [HERE]
    await move_merchant(past.going)
    assert await past.open_in() == [THERE]


async def test_without_a_directory_what_has_moved_does_not_come_again(past: Past) -> None:
    """It may have gone on from there to a third cell."""
    copy = await past.copy("there")
    await past.until(Step.opened)
    past.put_back("there", copy)
    rows = await past.play.rows(past.play.here, past.play.merchant.id)
    with pytest.raises(Conflict, match=r"put it back to a later time.*nothing is deleted here"):
        await move_merchant(past.play.move)
    assert await past.play.rows(past.play.here, past.play.merchant.id) == rows


async def test_who_has_gone_on_to_a_third_cell_is_led_there_still(past: Past) -> None:
    """The first move died before it had deleted what was left, and is done again at last."""
    await past.until(Step.opened)
    await move_merchant(past.going_home)
    with pytest.raises(Conflict, match=rf"goes by: paydesk merchant move {past.play.merchant.id} --to {HOME}"):
        await move_merchant(past.going)
    assert (await past.open_in(), await past.led_to()) == ([], HOME)
    await move_merchant(replace(past.going, target=past.home, to=HOME))
    assert (await past.open_in(), await past.led_to()) == ([], HOME)
    assert await find_fence(past.play.here.database, past.play.merchant.id) is None
    for side, many in ((past.play.here, 0), (past.home, 1)):
        asked = "select count(*) from merchant where id = $1"
        assert await side.database.fetchval(asked, past.play.merchant.id) == many


async def test_who_is_on_the_way_to_a_third_cell_goes_on_there(past: Past) -> None:
    """Neither is its fence lifted, nor does the directory lead back."""
    await past.until(Step.opened)
    there = past.play.there.database
    await fence(there, past.play.merchant.id, other_cell=HOME, tables=GUARDED)
    await switch_merchant(past.home.database, past.play.merchant.id, left=HERE, to=THERE, now=utc_now())
    with pytest.raises(Conflict, match=f"handed it over to cell {HOME}, or is about to"):
        await move_merchant(past.going)
    assert await find_fence(there, past.play.merchant.id) is not None


@pytest.mark.parametrize("step", [None, Step.closed])
async def test_who_came_back_after_having_gone_far_away_stays_where_it_is(past: Past, step: Step | None) -> None:
    if step:
        await past.until(step)
    copy = await past.copy("here")
    await past.until(None)
    await move_merchant(past.going_home)
    past.put_back("here", copy)
    before = await past.open_in()
    for command in (move_merchant, cancel_move):
        with pytest.raises(Conflict, match=f"leads to merchant .* in cell {HOME}|{NOT_MOVED}"):
            await command(past.going)
        assert (await past.open_in(), await past.led_to()) == (before, HOME)


async def test_who_comes_from_a_third_cell_is_not_overwritten(past: Past) -> None:
    there = past.play.there.database
    await fence(there, past.play.merchant.id, arrives=True, other_cell=HOME, tables=GUARDED)
    with pytest.raises(Conflict, match=re.escape(f"is coming to cell {THERE} from cell {HOME}: end that move first")):
        await move_merchant(past.going)
    assert await there.fetchval("select count(*) from payment") == 0


async def test_whom_the_directory_does_not_know_is_entered_first(past: Past) -> None:
    unknown = replace(past.going, home=past.play.there.database)
    with pytest.raises(Conflict, match=r"directory does not know merchant .* cell check --mend"):
        await move_merchant(unknown)
    assert await past.open_in() == [HERE]


async def test_who_looks_in_the_wrong_cell_is_told_which_it_is(past: Past) -> None:
    """Nothing is here, so nothing came back from before."""
    await past.until(None)
    await move_merchant(past.going_home)
    with pytest.raises(NotFound, match=f"no merchant .* here: the directory leads to it in cell {HOME}$"):
        await move_merchant(past.going)


async def test_a_move_again_while_the_merchant_goes_on_to_a_third_cell(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has begun to look, and the other cell has handed over the merchant before it has seen
    that.
    """
    await past.until(Step.opened)

    async def find_late(database: Database, merchant_id: int) -> Fence | None:
        monkeypatch.undo()
        await move_merchant(past.going_home)
        return await find_fence(database, merchant_id)

    monkeypatch.setattr(witnesses, "find_fence", find_late)
    with pytest.raises(Conflict, match=f"goes by: paydesk merchant move .* --to {HOME}"):
        await move_merchant(past.going)
    assert (await past.open_in(), await past.led_to()) == ([], HOME)


async def test_nobody_goes_to_a_cell_that_the_directory_can_not_lead_to(play: Play) -> None:
    home = play.here.database
    cell = directory.Cell(HERE, "https://pay1.test", "http://inside")
    await add_cell(home, cell, database_id=str(HERE), now=utc_now())
    await enter(home, [Entry(Kind.merchant, str(play.merchant.id), play.merchant.id)], HERE, now=utc_now())
    with pytest.raises(Conflict, match=f"cell {THERE} is not in the directory.*paydesk cell add {THERE}"):
        await move_merchant(replace(play.move, home=home))
    assert await play.is_open(play.here)


async def test_what_came_before_an_earlier_try_failed_is_not_all(past: Past) -> None:
    """The other cell came back from before the merchant went on here, and was fenced anew."""
    await past.until(Step.completed)
    copy = await past.copy("there")
    await lift(past.play.here.database, past.play.merchant.id, tables=GUARDED)
    assert await Till(past.play.here.desk, past.play.shop).sell("meanwhile")
    rows = await past.play.rows(past.play.here, past.play.merchant.id)
    await past.until(Step.switched)
    past.put_back("there", copy)
    await move_merchant(past.going)
    assert (await past.open_in(), await past.led_to()) == ([THERE], THERE)
    there = await past.play.rows(past.play.there, past.play.merchant.id)
    assert [name for name in rows if name not in SEALED and rows[name] != there[name]] == []
