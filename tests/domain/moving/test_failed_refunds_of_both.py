"""What is told of failed refunds in cells that share an account, beside what is so of all that
waits (`test_told_of_both.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.banks import answering
from tests.breaking import say
from tests.domain.moving.both import SOON, WHY, BothRefunds
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import Cell, Killed, Play, going, killing

from paydesk.adapters.acquirers.disputes import FailedRefundPage
from paydesk.core.clock import utc_now
from paydesk.database.pool import connected
from paydesk.domain.acquirers.waiting import KEPT, ON_THE_WAY
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.waiting_refunds import known_here


@pytest.fixture
async def both(joined: Play) -> BothRefunds:
    """The second cell is a deployment of its own; test databases are copies of one."""
    await say(joined.there.database, "deployment", {}, tag="another")
    return BothRefunds(joined)


@asynccontextmanager
async def closing(both: BothRefunds) -> AsyncIterator[Cell]:
    """The cell that a refund is told to while its merchant is closed for a move that has died, as
    its worker has it.
    """
    play = both.play
    await both.comes()
    with pytest.raises(Killed):
        await move_merchant(going(play), passed=killing(Step.closed))
    async with connected(play.here.settings.database_url, name="work") as worker:
        yield replace(play.here, database=worker, desk=replace(play.here.desk, database=worker))


async def test_what_is_left_where_it_was_while_its_merchant_is_on_the_way_is_not_known_there(both: BothRefunds) -> None:
    play = await both.on_the_way(Step.moved)
    key = await play.there.database.fetchval("select idempotency_key from movement where request_key = 'failing-back'")
    known = [[one.key for one in await known_here(cell.database, [key])] for cell in (play.here, play.there)]
    assert known == [[], [key]]


async def test_one_that_is_told_while_its_merchant_is_closed_needs_nobody(both: BothRefunds) -> None:
    """It is read again until it is booked, in whichever cell has the merchant by then."""
    play = both.play
    async with closing(both) as here:
        assert await both.read(here) == 0
    assert (await both.booked(), await both.told(play.here)) == ([0, 0], [])
    await move_merchant(going(play))
    assert await both.read(play.there) == 1
    assert await both.read(play.here, timedelta(hours=1)) == 0
    assert (await both.booked(), await both.told(play.here), await both.told(play.there)) == ([0, 1], [], [])


async def test_one_that_was_told_while_its_merchant_was_closed_is_booked_though_it_is_told_no_more(
    both: BothRefunds,
) -> None:
    """Acquirers forget, and a move that has died may be ended late."""
    play = both.play
    async with closing(both) as here:
        assert [await both.read(here, later * SOON) for later in range(3)] == [0, 0, 0]
    await cancel_move(going(play))
    forgetful = both.telling(play.here)
    assert await both.read(forgetful, timedelta(days=1)) == 1
    assert await both.read(forgetful, timedelta(days=2)) == 0
    assert (await both.booked(), await both.told(play.here), await both.waiting(play.here)) == ([1, 0], [], [])


async def test_one_that_is_told_again_and_again_waits_once(both: BothRefunds) -> None:
    play = both.play
    await both.comes()
    told = (await play.here.desk.acquirers["simulator"].failed_refunds("")).refunds

    async def page(after: str) -> FailedRefundPage:
        return FailedRefundPage((*told, *told) if not after.endswith("read") else (), f"{after} read")

    bank = answering(play.there.desk.acquirers["simulator"], failed_refunds=page)
    cell = replace(play.there, desk=replace(play.there.desk, acquirers={"simulator": bank}))
    await both.read(cell)
    assert len(await both.waiting(cell)) == 1
    await both.read(play.here)
    for hours in range(1, 4):
        await both.from_the_start(cell)
        await both.read(cell, timedelta(hours=hours))
    assert [one["next_at"] for one in await both.waiting(cell)] == [None]
    assert await both.told(cell) == []
    await move_merchant(going(play))
    await both.from_the_start(cell)
    assert await both.read(cell, timedelta(hours=5)) == 0
    assert (await both.booked(), await both.waiting(cell)) == ([0, 1], [])


async def test_one_of_the_acquirers_own_pages_goes_with_its_merchant_and_is_nobodys_if_none_has_it(
    both: BothRefunds,
) -> None:
    # A refund that was made by hand has no key of ours: it is known by its name.
    play = both.play
    name = await both.comes()
    key = f"{name}-given-back-at-the-bank"
    await say(play.here.database, "movement", {"request_key": "failing-back"}, idempotency_key=key)
    nobodys = replace(both.named("re_1"), key="")
    there = both.telling(play.there, replace(nobodys, reference=name), nobodys)
    await both.read(there)
    await both.read(there, SOON + ON_THE_WAY)
    assert sorted(map(str, await both.stand(there))) == ["elsewhere", "over"]
    assert await both.told(there) == []
    await move_merchant(going(play))
    assert await both.read(there, SOON + 2 * ON_THE_WAY) == 1
    assert [await both.read(cell, timedelta(hours=1)) for cell in (there, both.telling(play.here))] == [0, 0]
    assert (await both.booked(), await both.told(there)) == ([0, 1], [])
    assert [one["acquirer_reference"] for one in await both.waiting(there)] == ["re_1"]


async def test_one_that_each_reading_tells_is_written_once_in_an_hour(both: BothRefunds) -> None:
    cell = both.play.there
    told_last = "select array_agg(last_at order by acquirer_reference) from failed_refund_waiting"
    await both.read(both.telling(cell, both.named("re_1"), both.named("re_2")))
    first = await cell.database.fetchval(told_last)
    await both.from_the_start(cell)
    await both.read(both.telling(cell, both.named("re_1"), replace(both.named("re_2"), amount=Decimal(2))), SOON)
    second = await cell.database.fetchval(told_last)
    assert (second[0], second[1] > first[1]) == (first[0], True), "one was told as before, the other otherwise"
    await both.from_the_start(cell)
    await both.read(both.telling(cell, both.named("re_1")), timedelta(hours=2))
    assert (await cell.database.fetchval(told_last))[0] > first[0]


async def test_what_is_over_is_forgotten_once_nobody_tells_it_and_what_is_not_stays(both: BothRefunds) -> None:
    play = both.play
    await both.comes()
    await both.read(play.there)
    await both.read(play.there, KEPT + SOON)
    assert len(await both.waiting(play.there)) == 1, "it is not booked anywhere"
    await both.read(play.here)
    await both.read(play.there, KEPT + 2 * ON_THE_WAY)
    assert await both.waiting(play.there) == []


async def test_what_waits_at_an_account_of_the_merchants_own_goes_with_it(own: Owning) -> None:
    play = own.play
    sold = await own.till(play.here).sell("by-hand")
    of = await play.here.database.fetchval(
        "select acquirer_reference from payment_attempt where payment_id = $1 and state = 'approved'", sold
    )
    by_hand = own.bank.refund("by hand", of, Decimal(1), "USD")
    own.bank.fail_refund(by_hand, WHY)
    assert await read_failed_refunds(play.here.desk, now=utc_now()) == 0
    await move_merchant(going(play))
    await own.look()
    where = "select acquirer, acquirer_reference from failed_refund_waiting"
    rows = [[tuple(row) for row in await cell.database.fetch(where)] for cell in (play.here, play.there)]
    assert rows == [[], [(THEIRS, by_hand)]]
