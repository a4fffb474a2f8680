"""A cell asks the others which of the refunds that its bank says have failed are theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.breaking import emptied
from tests.till import Till
from tests.web.cells.two_cells import HOME, SECOND, Cells, silent

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.mail import Mailbox
from paydesk.core.clock import utc_now
from paydesk.domain.acquirers.other_cells import MOST, Elsewhere, Heard, Known
from paydesk.domain.merchants.merchant import shop_of
from paydesk.domain.operations.history import History
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.hold_gate import Standing
from paydesk.equipment import payment_desk
from paydesk.web.cells import asking
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import other_cells
from paydesk.web.cells.refunds import REFUNDS, refunds_elsewhere
from paydesk.web.cells.watching import FIGURES
from paydesk.worker import work


@pytest.fixture
async def elsewhere(cells: Cells) -> AsyncIterator[Elsewhere[str]]:
    """What a worker of the first cell asks by."""
    async with other_cells() as others:
        yield refunds_elsewhere(Asking(others, cells.vault), cells.databases[HOME])


def till_of(cells: Cells, cell: int, *, bank_of: int | None = None) -> Till:
    """A cell's merchant, at the cell's bank or that of another one, which both then share."""
    folder = cells.settings[bank_of or cell].data_dir
    bank = SimulatedAcquirer(Bank(Record(folder / "bank.sqlite")), base_url=cells.settings[cell].address)
    desk = payment_desk(cells.settings[cell], cells.databases[cell], cells.vault, bank)
    return Till(desk, shop_of(cells.merchants[cell], live=False))


async def given_back(till: Till) -> asyncpg.Record:
    """The merchant has given something back."""
    await till.give_back(await till.sell("sold"), "1.00", "back")
    (row,) = await till.rows("movement")
    return row


async def test_a_cell_says_which_are_its_own(cells: Cells, elsewhere: Elsewhere[str]) -> None:
    made = [await given_back(till_of(cells, cell)) for cell in (SECOND, HOME)]
    keys = [*(row["idempotency_key"] for row in made), "nobody's"]
    assert await elsewhere(keys) == Heard((Known(keys[0], is_over=False),))
    assert [one.path for one in cells.served[SECOND].arrived] == [REFUNDS]


async def test_as_many_as_one_reading_tries_fit_into_a_question(cells: Cells, elsewhere: Elsewhere[str]) -> None:
    assert await elsewhere([f"{number:0200}" for number in range(MOST)]) == Heard()
    assert await elsewhere([f'{number:"<200}' for number in range(MOST)]) == Heard(), "with signs that JSON escapes"


async def test_a_cell_that_does_not_answer_is_silent(
    cells: Cells, elsewhere: Elsewhere[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 0.2)
    cells.served[SECOND].instead = silent
    assert await elsewhere(["a key"]) == Heard(silent=(SECOND,))


async def test_nobody_else_is_told(cells: Cells) -> None:
    web = cells.web[SECOND]
    asked = await web.post(REFUNDS, json={"keys": []})
    assert asked.status_code == (await web.post(FIGURES, json={})).status_code == 404


async def test_where_there_are_no_other_cells_nobody_is_asked(cells: Cells) -> None:
    await emptied(cells.databases[HOME], "cell")
    async with other_cells() as others:
        ask = refunds_elsewhere(Asking(others, cells.vault), cells.databases[HOME])
        assert await ask(["a key"]) == Heard(has_others=False)
    assert cells.served[SECOND].arrived == []


async def test_a_worker_asks_for_what_it_does_not_know_and_tells_nobody_of_what_another_cell_has(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All loops of a worker begin at once, and both cells are of this process.
    monkeypatch.setattr(asking, "PATIENCE", 60.0)
    theirs, ours = till_of(cells, SECOND), till_of(cells, HOME, bank_of=SECOND)
    theirs.bank.fail_refund((await given_back(theirs))["acquirer_reference"], "lost_or_stolen_card")
    assert await read_failed_refunds(theirs.desk, now=utc_now()) == 1
    stop, history, database = asyncio.Event(), History(), cells.databases[HOME]
    history.gate.say(Standing.OPEN)
    working = asyncio.create_task(
        work(cells.settings[HOME], database, cells.vault, ours.desk, stop, history=history, mailbox=Mailbox())
    )
    over = "select count(*) from failed_refund_waiting where next_at is null"
    while not await database.fetchval(over):
        assert not working.done(), working.exception()
        await asyncio.sleep(0.05)
    stop.set()
    await working
    assert [one.path for one in cells.served[SECOND].arrived] == [REFUNDS]
    assert await database.fetchval("select count(*) from alarm where kind = 'refund_unknown'") == 0
