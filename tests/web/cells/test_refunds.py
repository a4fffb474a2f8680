"""A cell asks the others which of the refunds that its bank says have failed are theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests import shopfront
from tests.breaking import emptied
from tests.till import Till
from tests.web.cells.two_cells import HOME, SECOND, Cells, silent

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.domain.merchants.merchant import shop_of
from paydesk.domain.payments.waiting_refunds import MOST, Elsewhere, Heard, KnownRefund
from paydesk.equipment import payment_desk
from paydesk.web.cells import asking
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import other_cells
from paydesk.web.cells.refunds import REFUNDS, refunds_elsewhere
from paydesk.web.cells.watching import FIGURES


@pytest.fixture
async def elsewhere(cells: Cells) -> AsyncIterator[Elsewhere]:
    """What a worker of the first cell asks by."""
    async with other_cells() as others:
        yield refunds_elsewhere(Asking(others, cells.vault), cells.databases[HOME])


async def given_back(cells: Cells, cell: int) -> str:
    """A merchant of a cell has given something back; the key that its bank knows it by."""
    settings, database = cells.settings[cell], cells.databases[cell]
    bank = SimulatedAcquirer(Bank(Record(settings.data_dir / "bank.sqlite")), base_url=settings.address)
    till = Till(payment_desk(settings, database, cells.vault, bank), shop_of(cells.merchants[cell], live=False))
    await shopfront.give_back(till.desk, till.shop, await till.sell("sold"), "1.00", key="back")
    return str(await database.fetchval("select idempotency_key from movement where kind = 'refund'"))


async def test_a_cell_says_which_are_its_own(cells: Cells, elsewhere: Elsewhere) -> None:
    keys = [await given_back(cells, SECOND), await given_back(cells, HOME), "nobody's"]
    assert await elsewhere(keys) == Heard((KnownRefund(keys[0], is_over=False),))
    assert [one.path for one in cells.served[SECOND].arrived] == [REFUNDS]


async def test_as_many_as_one_reading_tries_fit_into_a_question(cells: Cells, elsewhere: Elsewhere) -> None:
    assert await elsewhere([f"{number:0200}" for number in range(MOST)]) == Heard()


async def test_a_cell_that_does_not_answer_is_silent(
    cells: Cells, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
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
