"""A worker that takes longer than its lease to read what an acquirer tells is not waited for: if
the account has gone to another cell meanwhile, it writes nothing where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from tests.domain.moving.owning import LATER, PATIENCE, TERMS, THEIRS, Owning
from tests.domain.moving.play import clean, going

from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.chargebacks import reading_acquirers
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.payments import failed_refunds
from paydesk.domain.proceeds import reading

SHORT = timedelta(seconds=0.5)


@asynccontextmanager
async def straggling(
    own: Owning, monkeypatch: pytest.MonkeyPatch, module: ModuleType, point: str, read: Callable[[], Awaitable[object]]
) -> AsyncIterator[asyncio.Task[object]]:
    """A worker here that reads stops at a point until its lease has ended and, within the block,
    its account has gone and was read there; then it goes on.
    """
    honest, reached, goes_on = getattr(module, point), asyncio.Event(), asyncio.Event()

    async def late(*given: Any, **named: Any) -> Any:
        if not reached.is_set():
            reached.set()
            await goes_on.wait()
        return await honest(*given, **named)

    with monkeypatch.context() as slow:
        slow.setattr(module, "LEASE", SHORT)
        slow.setattr(module, point, late)
        straggler = asyncio.ensure_future(read())
        await asyncio.wait_for(reached.wait(), 30)
        await move_merchant(going(own.play))
        await own.look()
        await own.read(own.play.there)
        goes_on.set()
        yield straggler
    await asyncio.wait_for(asyncio.gather(straggler, return_exceptions=True), 30)
    assert await own.of_account(own.play.here) == {}
    for cell in (own.play.here, own.play.there):
        told = await cell.database.fetch("select kind, subject from alarm where settled_at is null")
        assert [tuple(one) for one in told] == []
    assert (await clean(own.play.here), await clean(own.play.there)) == ([], [])


@pytest.mark.parametrize("point", ["new_lines", "keep_findings", "examine_payouts"])
async def test_what_it_read_of_a_balance_is_entered_there_alone(
    own: Owning, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    own.bank.balance.agree(TERMS, timedelta(seconds=1))
    await asyncio.sleep(1)
    desk = own.play.here.desk

    async def read() -> None:
        await reading.read_proceeds(desk, THEIRS, patience=PATIENCE, now=utc_now() + LATER, every=timedelta(0))

    async with straggling(own, monkeypatch, reading, point, read) as straggler:
        with pytest.raises(Unavailable, match="theirs is read by another worker, or another cell"):
            await straggler


async def test_what_it_read_of_disputes_waits_nowhere(own: Owning, monkeypatch: pytest.MonkeyPatch) -> None:
    sold = await own.till(own.play.here).sell("disputed")
    own.bank.open_dispute(await own.key_of(own.play.here, sold), "fraudulent")
    desk = own.play.here.desk

    async def read() -> int:
        return await reading_acquirers.read_disputes(desk, now=utc_now())

    async with straggling(own, monkeypatch, reading_acquirers, "record_dispute", read) as straggler:
        await straggler
    booked = "select count(*) from chargeback"
    assert [await cell.database.fetchval(booked) for cell in (own.play.here, own.play.there)] == [0, 1]


async def test_a_failed_refund_that_it_read_is_not_unknown_where_it_was(
    own: Owning, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = own.play
    sold = await own.till(play.here).sell("failing")
    await own.till(play.here).give_back(sold, "1.00", "failing-back")
    key = await play.here.database.fetchval("select idempotency_key from movement where payment_id = $1", sold)
    made = own.bank.record.decided(key)
    assert made is not None
    own.bank.fail_refund(made.reference, "lost_or_stolen_card")

    async def read() -> int:
        return await failed_refunds.read_failed_refunds(play.here.desk, now=utc_now())

    async with straggling(own, monkeypatch, failed_refunds, "record_failed", read) as straggler:
        assert await straggler == 0
    failed = "select count(*) from ledger_posting where kind = 'refund_failure'"
    assert [await cell.database.fetchval(failed) for cell in (play.here, play.there)] == [0, 1]
