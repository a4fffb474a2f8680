"""While a database may have forgotten something nothing that moves money is begun;
what ends that, and what goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests import breaking, set_back
from tests.banks import answering, ending_in
from tests.conftest import migrated_database
from tests.till import Till

from paydesk.adapters.acquirers.gated import GatedAcquirer
from paydesk.adapters.acquirers.interface import Acquirer, OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.purchase_state import Standing as AtTheBank
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Held, Malformed
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.billing.charging import BillingRun, run_billing
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations import holding
from paydesk.domain.operations.history import History, hold, read
from paydesk.domain.operations.holding import accept, lift_if_whole, tend_hold, watch_history
from paydesk.domain.operations.memory_file import memory_file, recall
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hold_gate import MoneyGate, Standing
from paydesk.domain.payments.refunding import refund

Buy = Callable[..., Awaitable[int]]


@pytest.fixture(scope="module")
async def database_url(server_url: str) -> AsyncIterator[str]:
    """A database that these tests have to themselves: what they hold is held for nobody else."""
    async with migrated_database(server_url) as url:
        yield url


@pytest.fixture(scope="module")
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url) as pool:
        yield pool


@pytest.fixture(autouse=True)
async def _nothing_is_held(database: Database) -> None:
    """And what the test before left was paid at a bank of its own."""
    await set_back.history_begins_here(database)
    await breaking.paid_elsewhere(database)


@pytest.fixture
def history() -> History:
    """What a process knows that has just been started for the first time: nothing."""
    return History()


@pytest.fixture
def gated(desk: Desk, history: History) -> Desk:
    """The desk of that process."""
    bank = GatedAcquirer(desk.acquirers["simulator"], history.gate.held)
    return replace(desk, acquirers={"simulator": bank}, gate=history.gate)


@asynccontextmanager
async def watching(desk: Desk, history: History, file: Path | None = None) -> AsyncIterator[None]:
    """A process that watches, for the length of a block."""
    stop = asyncio.Event()
    task = asyncio.create_task(watch_history(desk, history, file, stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what must come; the test run's timeout ends what never does."""
    while not condition():  # noqa: ASYNC110 (nothing here sends an event)
        await asyncio.sleep(0.01)


async def because(database: Database) -> str:
    return (await read(database)).held_because


def deaf(desk: Desk) -> Acquirer:
    """A bank whose list can't be read."""
    return answering(desk.acquirers["simulator"], list_purchases=ending_in(OutcomeUnknown("no answer")))


class TestLooking:
    async def test_a_process_without_memory_looks_and_goes_on_once_all_is_known(
        self, gated: Desk, history: History, desk: Desk, buy: Buy, tmp_path: Path
    ) -> None:
        await buy()
        file = memory_file(tmp_path)
        async with watching(gated, history, file):
            await history.gate.require()
            await until(lambda: recall(file) is not None)
        assert recall(file) == history.memory
        assert await because(desk.database) == ""

    async def test_on_another_server_one_look_is_enough_for_all(
        self, gated: Desk, history: History, desk: Desk, buy: Buy
    ) -> None:
        await buy()
        await breaking.say(desk.database, "history", {}, whole="another/00000001")
        known = History((await read(desk.database)).memory)
        async with watching(gated, history), watching(replace(gated, gate=known.gate), known):
            await until(lambda: history.gate.is_open and known.gate.is_open)
        reading = await read(desk.database)
        assert (reading.whole, reading.held_because) == (reading.place, "")

    async def test_who_looked_on_one_server_says_nothing_of_the_one_that_took_over(
        self, gated: Desk, history: History, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await breaking.say(desk.database, "history", {}, whole="before/00000001")
        honest, compared = holding._compare, asyncio.Event()

        async def compare_and_fail_over(*asked: Any, **how: Any) -> Any:
            compared.set()
            return await honest(*asked, **how)

        looked = replace(await read(desk.database), place="before/00000001")
        monkeypatch.setattr(holding, "_compare", compare_and_fail_over)
        await holding._Look(gated, history)._judge(looked)
        assert compared.is_set()
        assert (await read(desk.database)).whole == "before/00000001"

    async def test_what_only_the_bank_knows_holds_everything(
        self, gated: Desk, history: History, desk: Desk, buy: Buy, shop: Shop
    ) -> None:
        await buy()
        await breaking.forget_payments(desk.database, shop)
        async with watching(gated, history):
            await until(lambda: history.gate.standing is Standing.HELD)
        assert "differ in 1 places, the first: it is not in our books" in await because(desk.database)
        kinds = await desk.database.fetch("select kind from alarm where settled_at is null order by 1")
        assert [row["kind"] for row in kinds] == ["held"]

    async def test_what_is_still_being_written_down_is_waited_for(
        self, gated: Desk, history: History, desk: Desk, buy: Buy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment_id = await buy()
        monkeypatch.setattr(holding, "EVERY", 0.01)
        given = "update payment set refunded = $2 where id = $1"
        await desk.database.execute(given, payment_id, Decimal(1))
        async with watching(gated, history):
            await asyncio.sleep(0.2)
            assert history.gate.standing is Standing.LOOKING
            await desk.database.execute(given, payment_id, Decimal(0))
            await until(lambda: history.gate.is_open)

    async def test_a_list_that_cannot_be_read_lets_nothing_begin_and_then_holds(
        self, gated: Desk, history: History, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(holding, "EVERY", 0.01)
        async with watching(replace(gated, acquirers={"simulator": deaf(desk)}), history):
            await asyncio.sleep(0.1)
            assert history.gate.standing is Standing.LOOKING
            monkeypatch.setattr(holding, "UNREADABLE", 0.0)
            await until(lambda: history.gate.standing is Standing.HELD)
        assert "can't be read" in await because(desk.database)

    async def test_a_test_bank_out_of_reach_keeps_nobody_from_live_payments(
        self, gated: Desk, history: History, desk: Desk
    ) -> None:
        banks = {"simulator": deaf(desk), "live": desk.acquirers["simulator"]}
        async with watching(replace(gated, acquirers=banks, live_acquirer="live"), history):
            await history.gate.require()


class TestLifting:
    @pytest.fixture
    async def held(self, desk: Desk, buy: Buy, shop: Shop) -> Desk:
        """It is held, and the bank has a purchase that our books don't, and that nobody adopts."""
        await buy()
        await breaking.forget_payments(desk.database, shop)
        await hold(desk.database, epoch=1, above=1, because="restored", since=utc_now() - timedelta(days=1))
        assert await because(desk.database) == "restored"
        return replace(desk, adopts=False)

    @pytest.fixture(autouse=True)
    async def _first_epoch(self, database: Database) -> None:
        await breaking.say(database, "deployment", {}, epoch=1)

    async def test_workers_lift_it_once_both_agree(self, desk: Desk, buy: Buy) -> None:
        await buy()
        await hold(desk.database, epoch=1, above=1, because="restored", since=utc_now() - timedelta(days=1))
        stop, history = asyncio.Event(), History()
        desk = replace(desk, gate=history.gate)
        async with asyncio.TaskGroup() as working:
            working.create_task(watch_history(desk, history, None, stop))
            working.create_task(tend_hold(desk, stop))
            while await because(desk.database):  # noqa: ASYNC110 (a row sends no event)
                await asyncio.sleep(0.01)
            stop.set()
        (alarm,) = await desk.database.fetch("select * from alarm where kind = 'held'")
        assert alarm["settled_by"] == "acquirers' lists and our books agree"

    async def test_what_was_forgotten_is_adopted_and_then_it_ends(self, held: Desk, shop: Shop) -> None:
        assert await lift_if_whole(replace(held, adopts=True), await read(held.database)) == []
        assert await because(held.database) == ""
        paid = "select count(*) from payment where merchant_id = $1 and state = 'captured'"
        assert await held.database.fetchval(paid, shop.merchant_id) == 1

    @pytest.mark.parametrize("meanwhile", ["held for more", "another server took over"])
    async def test_a_comparison_ends_only_the_hold_that_it_was_of(self, desk: Desk, buy: Buy, meanwhile: str) -> None:
        await buy()
        await hold(desk.database, epoch=1, above=1, because="went back", since=None)
        compared = await read(desk.database)
        if meanwhile == "held for more":
            epoch = compared.beat.epoch
            await hold(desk.database, epoch=epoch, above=epoch, because="restored", since=utc_now() - timedelta(days=7))
        else:
            compared = replace(compared, place="another/00000001")
        assert await lift_if_whole(desk, compared) == []
        assert await because(desk.database) == "went back"
        assert await lift_if_whole(desk, await read(desk.database)) == []
        assert await because(desk.database) == ""

    async def test_it_stays_while_anything_differs_and_the_alarm_says_what(self, held: Desk) -> None:
        (left,) = await lift_if_whole(held, await read(held.database))
        assert "it is not in our books" in left.reason
        assert await because(held.database) == "restored"
        reason = await held.database.fetchval("select reason from alarm where kind = 'held'")
        assert reason.startswith("restored. acquirers' lists and our books differ in 1 places")

    async def test_an_operator_takes_what_is_left_and_says_why(self, held: Desk) -> None:
        with pytest.raises(Malformed, match="say why"):
            await accept(held.database, COMMAND_LINE, "  ", is_live=False, now=utc_now())
        assert (
            await accept(held.database, COMMAND_LINE, "given back by hand", is_live=False, now=utc_now()) == "restored"
        )
        assert await because(held.database) == ""
        row = await held.database.fetchrow("select details::text from audit_entry where action = 'hold_accepted'")
        assert "given back by hand" in row["details"]
        with pytest.raises(Conflict, match="nothing is held"):
            await accept(held.database, COMMAND_LINE, "again", is_live=False, now=utc_now())

    async def test_what_was_taken_holds_no_process_that_starts_later(
        self, held: Desk, gated: Desk, history: History
    ) -> None:
        await accept(held.database, COMMAND_LINE, "given back by hand", is_live=False, now=utc_now())
        async with watching(gated, history):
            await history.gate.require()


class TestHeld:
    """Whatever begins to move money is refused, in words, and nothing of it is written down."""

    @pytest.fixture
    async def paid(self, buy: Buy) -> int:
        return await buy()

    async def test_no_payment_refund_renewal_or_deadline_is_begun(
        self, paid: int, desk: Desk, gated: Desk, history: History, shop: Shop, bank: Bank
    ) -> None:
        club = Till(desk, shop)
        subscription = await club.subscribe()
        history.gate.say(Standing.HELD, "restored")
        before = len(list(bank.record.operations()))
        due = (await club.now(subscription)).date_next
        refused: list[Callable[[], Awaitable[Any]]] = [
            lambda: Till(gated, shop).subscribe(order="club-2"),
            lambda: refund(gated, shop, paid, Decimal(4), requested_by="api", now=utc_now()),
            lambda: BillingRun(gated).charge_due(merchant_id=shop.merchant_id, at=due),
            lambda: act_on_due(gated, real_now=utc_now()),
        ]
        for begin in refused:
            with pytest.raises(Held, match=r"payments are held: restored\. Nothing was begun and nobody charged"):
                await begin()
        assert len(list(bank.record.operations())) == before
        for table, rows in (("payment_attempt", 2), ("movement", 0)):
            count = f"select count(*) from {table} where merchant_id = $1"
            assert await desk.database.fetchval(count, shop.merchant_id) == rows

    async def test_an_intent_that_was_just_committed_is_not_sent_and_eats_no_try(
        self,
        gated: Desk,
        history: History,
        shop: Shop,
        charges: Callable[[], list[AtTheBank]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        history.gate.say(Standing.OPEN)
        club = Till(gated, shop)
        subscription = await club.subscribe()
        charged = charges()
        due = (await club.now(subscription)).date_next
        assert due is not None
        run = BillingRun(gated)
        honest = run.claim

        async def claim_and_be_held(*asked: Any, **more: Any) -> Any:
            claimed = await honest(*asked, **more)
            history.gate.say(Standing.HELD, "went back")
            return claimed

        monkeypatch.setattr(run, "claim", claim_and_be_held)
        assert await run.charge_due(merchant_id=shop.merchant_id, at=due) == 1
        await club.settle_all(minutes=3)
        after = await club.now(subscription)
        assert (after.paid_number_counter, after.failures, after.state) == (1, 0, subscription.state)
        assert charges() == charged
        history.gate.say(Standing.OPEN)
        assert (await club.charge_due(subscription)).paid_number_counter == 2

    async def test_a_renewal_that_is_held_for_long_is_due_again_and_charged_once(
        self, gated: Desk, history: History, shop: Shop, charges: Callable[[], list[AtTheBank]]
    ) -> None:
        history.gate.say(Standing.OPEN)
        club = Till(gated, shop)
        subscription = await club.subscribe()
        assert (await club.charge_due(subscription)).paid_number_counter == 2
        before, charged = await club.now(subscription), charges()
        count = "select count(*) from payment_attempt where merchant_id = $1"
        past = "update subscription set date_next = now() - interval '1 second' where id = $1"
        await gated.database.execute(past, subscription.id)
        due = (await club.now(subscription)).date_next
        history.gate.say(Standing.HELD, "restored")
        stop = asyncio.Event()
        working = asyncio.create_task(run_billing(gated, stop, pause=0.01))
        await asyncio.sleep(0.3)
        while_held = await club.now(subscription)
        assert (while_held, charges()) == (msgspec.structs.replace(before, date_next=due), charged)
        assert await gated.database.fetchval(count, shop.merchant_id) == 2
        history.gate.say(Standing.OPEN)
        while len(charges()) == len(charged):  # noqa: ASYNC110 (a bank sends no event)
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        stop.set()
        await working
        after = await club.now(subscription)
        assert (after.paid_number_counter, after.failures, len(charges())) == (3, 0, len(charged) + 1)

    async def test_look_ups_go_on(self, gated: Desk, history: History, paid: int) -> None:
        history.gate.say(Standing.HELD, "restored")
        acquirer = gated.acquirers["simulator"]
        page = await acquirer.list_purchases(utc_now() - timedelta(hours=1), "")
        assert [await acquirer.look_back(one.key) is not None for one in page.purchases] == [True]
        with pytest.raises(OutcomeUnknown, match="not sent to the acquirer: restored"):
            await acquirer.refund("key", page.purchases[0].reference, Decimal(1), "USD")


async def test_a_gate_waits_a_moment_while_it_is_looked() -> None:
    gate = MoneyGate(Standing.LOOKING)
    waiting = asyncio.create_task(gate.require())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    gate.say(Standing.OPEN)
    await waiting


async def test_a_gate_that_stays_shut_says_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paydesk.domain.payments.hold_gate.PATIENCE", 0.01)
    with pytest.raises(Held, match="nothing was begun, try again") as refused:
        await MoneyGate(Standing.LOOKING).require()
    assert refused.value.retry_after == 3
