"""`paydesk check` against the record of a simulated bank that several cells share."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.breaking import forget, say
from tests.domain.moving.play import Cell, Killed, Play, killing
from tests.proving import check
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.payments.results import Paid


@pytest.fixture
async def play(play: Play) -> Play:
    """The second cell is a deployment of its own; test databases are copies of one."""
    await say(play.there.database, "deployment", {}, tag="another")
    return play


async def compared(play: Play, cell: Cell) -> tuple[dict[str, list[int | str]], bool]:
    """What a cell's check finds, rule by rule, and whether anything was left out."""
    found = await check(cell.database, now=utc_now() + timedelta(hours=1), record=play.bank.record)
    broken = {one.rule.statement: [row.id for row in one.differences] for one in found if one.found}
    return broken, any(one.left_out for one in found)


async def test_what_other_cells_took_is_left_out(play: Play) -> None:
    assert await compared(play, play.here) == ({}, False)
    assert await compared(play, play.there) == ({}, True)


@pytest.mark.parametrize("step", [Step.copied, Step.moved, Step.opened])
async def test_who_is_on_the_way_is_no_difference_in_either(play: Play, step: Step) -> None:
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(step))
    if step is Step.opened:
        assert await Till(play.there.desk, play.shop).buy("there") == Paid()
    assert (await compared(play, play.here))[0] == {}
    assert (await compared(play, play.there))[0] == {}


async def test_what_is_lost_of_a_merchant_is_named_whichever_cell_took_it(play: Play) -> None:
    await move_merchant(play.move)
    assert await Till(play.there.desk, play.shop).buy("there") == Paid()
    assert await compared(play, play.here) == ({}, True)
    assert await compared(play, play.there) == ({}, True)
    asked = "select idempotency_key from payment_attempt where merchant_id = $1 and state = 'approved' order by id"
    keys = [row["idempotency_key"] for row in await play.there.database.fetch(asked, play.merchant.id)]
    for key in (keys[0], keys[-1]):
        await forget(play.there.database, play.merchant.id, "payment_attempt", idempotency_key=key)
    found, _ = await compared(play, play.there)
    assert set(found["bank_money_known"]) == {keys[0], keys[-1]}
    assert await compared(play, play.here) == ({}, True)
