"""A cell asks the others which of the disputes that its bank tells of are of their purchases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.till import Till
from tests.web.cells.test_refunds import till_of
from tests.web.cells.two_cells import HOME, SECOND, Cells, silent

from paydesk.adapters.acquirers.disputes import Dispute, DisputeStatus
from paydesk.adapters.mail import Mailbox
from paydesk.core.clock import utc_now
from paydesk.domain.acquirers.other_cells import MOST, Elsewhere, Heard, Known
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.operations.history import History
from paydesk.domain.payments.hold_gate import Standing
from paydesk.web.cells import asking
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import other_cells
from paydesk.web.cells.disputes import DISPUTES, disputes_elsewhere
from paydesk.web.cells.watching import FIGURES
from paydesk.worker import work


@pytest.fixture
async def elsewhere(cells: Cells) -> AsyncIterator[Elsewhere[Dispute]]:
    """What a worker of the first cell asks by."""
    async with other_cells() as others:
        yield disputes_elsewhere(Asking(others, cells.vault), cells.databases[HOME])


async def disputed(till: Till) -> Dispute:
    """A customer's bank wants the money of a sale back."""
    sold = await till.sell("disputed")
    (made,) = [row for row in await till.rows("payment_attempt") if row["payment_id"] == sold]
    till.bank.open_dispute(made["idempotency_key"], "fraudulent")
    (told,) = (await till.desk.acquirers["simulator"].disputes("")).disputes
    return told


async def test_a_cell_says_which_are_its_own_and_which_it_has_booked(
    cells: Cells, elsewhere: Elsewhere[Dispute]
) -> None:
    theirs = till_of(cells, SECOND)
    told, ours = await disputed(theirs), await disputed(till_of(cells, HOME))
    asked = [told, ours, replace(told, reference="dp_1", of_key="nobody's")]
    assert await elsewhere(asked) == Heard((Known(told.reference, is_over=False),))
    unmarked = [replace(one, of_merchant="") for one in asked]
    assert await elsewhere(unmarked) == Heard((Known(told.reference, is_over=False),)), "as an older cell asks"
    assert await read_disputes(theirs.desk, now=utc_now()) == 1
    assert await elsewhere(asked) == Heard((Known(told.reference, is_over=True),))
    won = replace(told, status=DisputeStatus.WON, at=utc_now())
    assert await elsewhere([won]) == Heard((Known(told.reference, is_over=False),)), "of that it has not read"
    assert {one.path for one in cells.served[SECOND].arrived} == {DISPUTES}


@pytest.mark.parametrize("sign", ["a", '"', "é"])
async def test_as_many_as_one_reading_tries_fit_into_a_question(elsewhere: Elsewhere[Dispute], sign: str) -> None:
    now, key = utc_now(), '"' * 200
    told = [
        Dispute(f"{number}{sign * 160}", key, Decimal("1.00"), "USD", "", DisputeStatus.OPEN, now, of_merchant=key)
        for number in range(MOST)
    ]
    assert await elsewhere(told) == Heard()


async def refusing(scope: Any, receive: Any, send: Any) -> None:
    """A cell of an older release, which has no such page."""
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"Not Found"})


async def test_a_cell_that_does_not_answer_is_silent_and_one_that_knows_no_such_question_is_older(
    cells: Cells, elsewhere: Elsewhere[Dispute], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells.served[SECOND].instead = refusing
    assert await elsewhere([]) == Heard(older=(SECOND,))
    monkeypatch.setattr(asking, "PATIENCE", 0.2)
    cells.served[SECOND].instead = silent
    assert await elsewhere([]) == Heard(silent=(SECOND,))


async def test_nobody_else_is_told(cells: Cells) -> None:
    web = cells.web[SECOND]
    asked = await web.post(DISPUTES, json={"disputes": []})
    assert asked.status_code == (await web.post(FIGURES, json={})).status_code == 404


async def test_a_worker_asks_for_what_it_does_not_know_and_tells_nobody_of_what_another_cell_has(cells: Cells) -> None:
    theirs, ours = till_of(cells, SECOND), till_of(cells, HOME, bank_of=SECOND)
    await disputed(theirs)
    assert await read_disputes(theirs.desk, now=utc_now()) == 1
    stop, history, database = asyncio.Event(), History(), cells.databases[HOME]
    history.gate.say(Standing.OPEN)
    working = asyncio.create_task(
        work(cells.settings[HOME], database, cells.vault, ours.desk, stop, history=history, mailbox=Mailbox())
    )
    while not await database.fetchval("select count(*) from dispute_waiting where stands = 'over'"):
        assert not working.done(), working.exception()
        await asyncio.sleep(0.05)
    stop.set()
    await working
    assert await database.fetchval("select count(*) from alarm where kind = 'dispute_waits'") == 0
