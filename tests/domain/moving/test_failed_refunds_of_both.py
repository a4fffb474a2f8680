"""Cells that share an account each read all that failed of its refunds: one of a merchant who is in
another cell waits, and is booked once, wherever the merchant is by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from secrets import token_hex
from typing import Any

import pytest
from tests.banks import answering
from tests.breaking import say
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import Cell, Killed, Play, back, clean, going, killing
from tests.proving import check
from tests.till import Till

from paydesk.adapters.acquirers.disputes import FailedRefund, FailedRefundPage
from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.database.pool import connected
from paydesk.domain.acquirers.other_cells import MOST, Heard, Known
from paydesk.domain.acquirers.waiting import KEPT, ON_THE_WAY, SILENT
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.waiting_refunds import known_here

SOON, WHY = timedelta(minutes=1), "lost_or_stolen_card"
WAITING = "select acquirer_reference, next_at, tries, alarmed_at from failed_refund_waiting order by 1"


@dataclass
class Both:
    """Two cells over one account, each of which asks the other while that answers."""

    play: Play
    silent: bool = False
    asked: list[Sequence[str]] = field(default_factory=list)

    async def read(self, cell: Cell, later: timedelta = timedelta(0)) -> int:
        """A worker of a cell reads."""
        other = self.play.there if cell is self.play.here else self.play.here

        async def ask(keys: Sequence[str]) -> Heard:
            self.asked.append(keys)
            return Heard(silent=(7,)) if self.silent else Heard(tuple(await known_here(other.database, keys)))

        return await read_failed_refunds(cell.desk, now=utc_now() + later, elsewhere=ask)

    async def fail(self) -> str:
        """A refund of the merchant's was made, and its customer's bank sends it back; its name."""
        till = Till(self.play.here.desk, self.play.shop)
        await till.give_back(await till.sell("failing"), "1.00", "failing-back")
        (made,) = [row for row in await till.rows("movement") if row["request_key"] == "failing-back"]
        self.play.bank.fail_refund(made["acquirer_reference"], WHY)
        return str(made["acquirer_reference"])

    async def by_hand(self) -> str:
        """A refund that somebody has made in the bank's own pages was sent back; its name."""
        attempt = "select acquirer_reference from payment_attempt where merchant_id = $1 and state = 'approved' limit 1"
        of = await self.play.here.database.fetchval(attempt, self.play.merchant.id)
        made = self.play.bank.refund("by hand", of, Decimal(1), "USD")
        self.play.bank.fail_refund(made, WHY)
        return made

    async def booked(self) -> list[int]:
        """How often the merchant got money back, in each cell."""
        many = "select count(*) from ledger_posting where kind = 'refund_failure'"
        return [await cell.database.fetchval(many) for cell in (self.play.here, self.play.there)]

    async def told(self, cell: Cell) -> list[tuple[str, str]]:
        """The kinds and subjects of the operator's open alarms in a cell."""
        rows = await cell.database.fetch("select kind, subject from alarm where settled_at is null")
        return [tuple(row) for row in rows]

    async def waiting(self, cell: Cell) -> list[Any]:
        """What waits in a cell, or is over there."""
        return [dict(row) for row in await cell.database.fetch(WAITING)]


@pytest.fixture
async def both(joined: Play) -> Both:
    """The second cell is a deployment of its own; test databases are copies of one."""
    await say(joined.there.database, "deployment", {}, tag="another")
    return Both(joined)


def telling(cell: Cell, *told: FailedRefund, after_all: FailedRefundPage | Exception | None = None) -> Cell:
    """A cell whose account's list has these, and then what comes after all of them."""

    async def page(after: str) -> FailedRefundPage:
        if not after:
            return FailedRefundPage(told, "all")
        if isinstance(after_all, Exception):
            raise after_all
        return after_all or FailedRefundPage((), "all")

    bank = answering(cell.desk.acquirers["simulator"], failed_refunds=page)
    return replace(cell, desk=replace(cell.desk, acquirers={"simulator": bank}))


def named(reference: str, key: str = "") -> FailedRefund:
    """A refund that no cell has made."""
    return FailedRefund(reference, key or f"key {reference}", Decimal(1), "USD", WHY, utc_now())


async def differences(both: Both, cell: Cell) -> list[Any]:
    """What `paydesk check` finds in a cell, beside the bank's record."""
    found = await check(cell.database, now=utc_now() + timedelta(hours=1), record=both.play.bank.record)
    return [(one.rule.statement, one.differences) for one in found if one.found]


async def test_it_is_booked_where_its_merchant_has_gone_before_it_was_read(both: Both) -> None:
    play = both.play
    failed = await both.fail()
    assert await both.read(play.there) == 0
    assert [one["acquirer_reference"] for one in await both.waiting(play.there)] == [failed]
    await move_merchant(going(play))
    assert await both.read(play.here) == 0, "it is not here any more"
    assert await differences(both, play.there) == [], "it is on its way into the books"
    assert await both.read(play.there, SOON) == 1
    assert await both.booked() == [0, 1]
    assert await both.waiting(play.there) == []
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]
    assert [await differences(both, cell) for cell in (play.here, play.there)] == [[], []]


async def test_where_the_merchant_stays_the_other_cell_says_nothing_and_asks_no_more(both: Both) -> None:
    play = both.play
    await both.fail()
    assert await both.read(play.there) == 0
    assert await both.read(play.there, SOON) == 0, "the other cell has it, and has not read it"
    assert [one["next_at"] is None for one in await both.waiting(play.there)] == [False]
    assert await both.read(play.here) == 1
    assert await both.read(play.there, 2 * SOON) == 0
    many = len(both.asked)
    assert [one["next_at"] for one in await both.waiting(play.there)] == [None], "it is over"
    assert await both.read(play.there, timedelta(days=1)) == 0
    assert len(both.asked) == many
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]
    assert await both.booked() == [1, 0]


async def test_what_was_booked_before_its_merchant_comes_is_not_booked_again(both: Both) -> None:
    play = both.play
    await both.fail()
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


async def failed_on_the_way(both: Both, step: Step) -> Play:
    """A refund failed, of which the other cell has read, and its merchant's move died after a
    step.
    """
    await both.fail()
    await both.read(both.play.there)
    with pytest.raises(Killed):
        await move_merchant(going(both.play), passed=killing(step))
    return both.play


async def test_whose_merchant_is_on_the_way_waits_and_is_booked_once_it_is_there(both: Both) -> None:
    play = await failed_on_the_way(both, Step.moved)
    async with connected(play.there.settings.database_url, name="work") as worker:
        at_work = replace(play.there, desk=replace(play.there.desk, database=worker))
        assert await both.read(at_work, SOON) == 0
        assert (await both.booked(), await both.told(play.there)) == ([0, 0], [])
        key = await play.there.database.fetchval(
            "select idempotency_key from movement where request_key = 'failing-back'"
        )
        known = [[one.key for one in await known_here(cell.database, [key])] for cell in (play.here, play.there)]
        assert known == [[], [key]], "what is left where it was is what was"
        with suppress(Killed):
            await move_merchant(going(play))
        assert await both.read(at_work, ON_THE_WAY) == 1
    assert await both.booked() == [0, 1]
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]


async def test_whose_move_is_called_off_is_booked_where_it_stayed(both: Both) -> None:
    play = await failed_on_the_way(both, Step.closed)
    assert await both.read(play.there, SOON) == 0
    await cancel_move(going(play))
    assert [await both.read(cell, 2 * SOON) for cell in (play.here, play.there)] == [1, 0]
    assert await both.booked() == [1, 0]
    assert [await both.told(cell) for cell in (play.here, play.there)] == [[], []]


async def test_one_that_no_cell_knows_is_told_once_and_not_before_it_can_be_on_the_way(both: Both) -> None:
    cell = both.play.there
    by_hand = await both.by_hand()
    await both.read(cell)
    await both.read(cell, ON_THE_WAY - SOON)
    assert await both.told(cell) == []
    await both.read(cell, ON_THE_WAY + SOON)
    assert await both.told(cell) == [("refund_unknown", by_hand)]
    await settle_alarms(cell.database, AlarmKind.refund_unknown, [by_hand], shop=None, by="ops", now=utc_now())
    await both.read(cell, timedelta(days=1))
    assert await both.told(cell) == [], "whoever has seen to it hears of it no more"


async def test_a_cell_that_does_not_answer_may_have_it_and_is_named_after_hours(both: Both) -> None:
    play = both.play
    failed = await both.fail()
    both.silent = True
    await both.read(play.there)
    await both.read(play.there, SILENT - SOON)
    assert await both.told(play.there) == []
    await both.read(play.there, SILENT + SOON)
    assert await both.told(play.there) == [("refund_unknown", failed)]
    reason = await play.there.database.fetchval("select reason from alarm where kind = 'refund_unknown'")
    assert "of cell 7 there was no answer" in reason
    both.silent = False
    await both.read(play.there, 2 * SILENT)
    assert await both.told(play.there) == [], "it answers, and has it"


async def test_one_that_is_told_again_and_again_waits_once(both: Both) -> None:
    play = both.play
    await both.fail()
    told = (await play.here.desk.acquirers["simulator"].failed_refunds("")).refunds

    async def page(after: str) -> FailedRefundPage:
        return FailedRefundPage((*told, *told) if not after.endswith("read") else (), f"{after} read")

    bank = answering(play.there.desk.acquirers["simulator"], failed_refunds=page)
    cell = replace(play.there, desk=replace(play.there.desk, acquirers={"simulator": bank}))
    await both.read(cell)
    assert len(await both.waiting(cell)) == 1
    await both.read(play.here)
    for hours in range(1, 4):
        await say(cell.database, "failed_refund_reading", {}, place="")
        await both.read(cell, timedelta(hours=hours))
    assert [one["next_at"] for one in await both.waiting(cell)] == [None]
    assert await both.told(cell) == []
    await move_merchant(going(play))
    await say(cell.database, "failed_refund_reading", {}, place="")
    assert await both.read(cell, timedelta(hours=5)) == 0
    assert (await both.booked(), await both.waiting(cell)) == ([0, 1], [])


async def test_one_that_each_reading_tells_is_written_once_in_an_hour(both: Both) -> None:
    cell = both.play.there
    told_last = "select array_agg(last_at order by acquirer_reference) from failed_refund_waiting"
    await both.read(telling(cell, named("re_1"), named("re_2")))
    first = await cell.database.fetchval(told_last)
    await say(cell.database, "failed_refund_reading", {}, place="")
    await both.read(telling(cell, named("re_1"), replace(named("re_2"), amount=Decimal(2))), SOON)
    second = await cell.database.fetchval(told_last)
    assert (second[0], second[1] > first[1]) == (first[0], True), "one was told as before, the other otherwise"
    await say(cell.database, "failed_refund_reading", {}, place="")
    await both.read(telling(cell, named("re_1")), timedelta(hours=2))
    assert (await cell.database.fetchval(told_last))[0] > first[0]


async def test_what_is_over_is_forgotten_once_nobody_tells_it_and_what_is_not_stays(both: Both) -> None:
    play = both.play
    await both.fail()
    await both.read(play.there)
    await both.read(play.there, KEPT + SOON)
    assert len(await both.waiting(play.there)) == 1, "it is not booked anywhere"
    await both.read(play.here)
    await both.read(play.there, KEPT + 2 * ON_THE_WAY)
    assert await both.waiting(play.there) == []


async def test_of_very_many_each_reading_tries_the_longest_due(both: Both) -> None:
    cell, many = both.play.there, 2 * MOST + 50
    told = [named(f"re_{n:03}") for n in range(many)]
    cell = telling(cell, *told)
    for _ in range(3):
        await both.read(cell)
    assert [len(keys) for keys in both.asked] == [MOST, MOST, 50]
    assert {key for keys in both.asked for key in keys} == {one.key for one in told}
    assert await both.told(cell) == []


async def test_what_nobody_ever_knows_keeps_nothing_new_waiting(both: Both) -> None:
    cell = telling(both.play.there, *(named(f"re_{n}") for n in range(MOST + 50)))
    for hours in range(4):
        await both.read(cell, timedelta(hours=hours))
    both.asked.clear()
    await say(cell.database, "failed_refund_reading", {}, place="")
    await both.read(telling(cell, named("new")), timedelta(hours=5))
    assert "key new" in both.asked[0]


@pytest.mark.parametrize("name", ["re\x001", token_hex(5000)], ids=["no text", "very long"])
async def test_whatever_an_account_calls_one_it_waits_beside_the_others(both: Both, name: str) -> None:
    cell = telling(both.play.there, named(name, "this"), named(f"{name} too", "that"), named("ours"))
    await both.read(cell)
    await both.read(cell, ON_THE_WAY + SOON)
    assert len(await both.waiting(cell)) == len(await both.told(cell)) == 3
    assert {kind for kind, _ in await both.told(cell)} == {"refund_unknown"}


async def test_an_account_whose_list_breaks_off_keeps_nothing_waiting(both: Both) -> None:
    cell = telling(both.play.there, named("by hand"), after_all=OutcomeUnknown("no answer"))
    await both.read(cell)
    await both.read(cell, ON_THE_WAY + SOON)
    assert await both.told(cell) == [("refund_unknown", "by hand")]


async def test_a_cell_that_has_it_and_is_silent_for_moments_is_not_named_for_hours(both: Both) -> None:
    there = both.play.there
    await both.fail()
    await both.read(there)
    await both.read(there, SILENT)
    both.silent = True
    await both.read(there, SILENT + ON_THE_WAY)
    assert await both.told(there) == []
    await both.read(there, 2 * SILENT + SOON)
    assert [kind for kind, _ in await both.told(there)] == ["refund_unknown"]


async def test_what_was_booked_in_a_cell_that_came_back_from_before_is_booked_where_its_merchant_goes(
    both: Both,
) -> None:
    play = both.play
    await both.fail()
    await both.read(play.there)

    async def booked(keys: Sequence[str]) -> Heard:
        return Heard(tuple(Known(key, is_over=True) for key in keys))

    await read_failed_refunds(play.there.desk, now=utc_now() + SOON, elsewhere=booked)
    assert [one["next_at"] for one in await both.waiting(play.there)] == [None]
    # Here nothing of that is known: as in a backup, of which the merchant is taken away at once.
    await move_merchant(going(play))
    assert await both.read(play.there, 2 * SOON) == 1
    assert (await both.booked(), await both.waiting(play.there)) == ([0, 1], [])
    assert await clean(play.there) == []


async def test_what_no_key_of_ours_can_be_keeps_the_others_from_nothing(both: Both) -> None:
    cell = both.play.there
    await both.fail()
    keys = ["x" * 500, "clé", "\n" * 200, "ours"]
    await both.read(telling(cell, *(named(f"re_{place}", key) for place, key in enumerate(keys))))
    assert both.asked == [["ours"]]


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
