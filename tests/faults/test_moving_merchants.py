"""While customers pay, workers work in both cells and the move dies at each step, nothing is lost
and nothing is done twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests import shopfront
from tests.conftest import migrated_database
from tests.domain.pingbacks.receiver import Receiver, receiving
from tests.lengths import one_of
from tests.proving import check
from tests.set_back import times
from tests.standings import standings
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.cells.fencing import Fenced, find_fence
from paydesk.domain.ledger.settling import settle_due as settle_money
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.moving.copying import Side
from paydesk.domain.moving.moving import Move, Step, move_merchant
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.equipment import outbound_client, payment_desk, sender_settings
from paydesk.settings import Settings

pytestmark = pytest.mark.faults

HERE, THERE = 1, 2
SUBSCRIPTIONS = 8


class Killed(BaseException):
    """What ends a process at once."""


@dataclass
class Cell:
    """A cell with a worker: its doors' database, and the one that the worker is connected by."""

    database: Database
    working: Database
    vault: Vault
    desk: Desk
    settings: Settings

    @property
    def side(self) -> Side:
        return Side(self.database, self.vault)

    async def round(self) -> None:
        """What a worker does once."""
        desk, now = replace(self.desk, database=self.working), utc_now()
        await BillingRun(desk).charge_due()
        await settle_due(desk, now=now)
        await finish_movements(desk, now=now)
        await settle_money(self.working, real_now=now)
        outbound = await outbound_client(self.settings, self.working)
        try:
            sender = PingbackSender(self.working, self.vault, outbound, sender_settings(self.settings))
            await sender.send_due_once(now)
        finally:
            await outbound.close()


@dataclass
class Play:
    """Two cells with their workers, over one bank, and two shops that sell all the time."""

    here: Cell
    there: Cell
    bank: Bank
    receiver: Receiver
    moving: Shop
    beside: Shop
    sold: Counter[int] = field(default_factory=Counter)
    refused: int = 0

    @property
    def move(self) -> Move:
        return Move(self.here.side, self.there.side, None, self.moving.merchant_id, THERE, same_simulator=True)

    async def sell(self, shop: Shop, cell: Cell) -> None:
        """A customer buys; who is told to come back does so."""
        url = f"{self.receiver.base}/{shop.merchant_id}"
        try:
            await shopfront.buy(cell.desk, shop, pingback_url=url)
            self.sold[shop.merchant_id] += 1
        except Fenced:
            self.refused += 1
            await asyncio.sleep(0.02)

    async def sell_where_it_is(self) -> None:
        """The shop that moves sells in the cell whose merchant it is by now."""
        is_here = await self.here.database.fetchval(
            "select exists (select from merchant m left join merchant_fence f on f.merchant_id = m.id"
            " where m.id = $1 and f.moved_at is null)",
            self.moving.merchant_id,
        )
        await self.sell(self.moving, self.here if is_here else self.there)

    async def open_cells(self) -> int:
        """In how many cells somebody may write something of the merchant's."""
        count = 0
        for cell in (self.here, self.there):
            there = await cell.database.fetchval("select 1 from merchant where id = $1", self.moving.merchant_id)
            fence = await find_fence(cell.database, self.moving.merchant_id)
            count += bool(there) and (fence is None or fence.closed_at is None)
        return count


@pytest.fixture
async def play(server_url: str, usual_settings: Settings, tmp_path: Path) -> AsyncIterator[Play]:
    (tmp_path / "bank").mkdir()
    secret, cells = generate_secret(), []
    async with AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(receiving())
        bank = Bank(Record(tmp_path / "bank" / "record.sqlite"))
        stack.callback(bank.record.close)
        for number in (HERE, THERE):
            url = await stack.enter_async_context(migrated_database(server_url, cell=number))
            pool = await stack.enter_async_context(connected(url))
            working = await stack.enter_async_context(connected(url, name="work"))
            vault = Vault.from_settings(vault_keys=generate_key_setting(), secret_key=secret)
            changed = {"data_dir": tmp_path, "database_url": url, "outbound_allow": "127.0.0.0/8"}
            settings = usual_settings.model_copy(update=changed)
            desk = payment_desk(settings, pool, vault, SimulatedAcquirer(bank, base_url=settings.address))
            cells.append(Cell(pool, working, vault, desk, settings))
        here, there = cells
        shops = []
        for name in ("moving", "beside"):
            made = await create_merchant(here.database, here.vault, name=name, email="o@shop.example", now=utc_now())
            shops.append(shop_of(made, live=False))
            till = Till(here.desk, shops[-1])
            for number in range(SUBSCRIPTIONS):
                url = f"{receiver.base}/{made.id}"
                await till.subscribe(order=f"club-{number}", pingback_url=url)
        await times(here.database, "subscription", {}, date_next=utc_now() - timedelta(hours=1))
        moving, beside = shops
        yield Play(here, there, bank, receiver, moving, beside)


async def again_and_again(what: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
    while not stop.is_set():
        await what()
        await asyncio.sleep(0)


@asynccontextmanager
async def under_load(play: Play) -> AsyncIterator[None]:
    """Customers of both shops and the workers of both cells are busy for a block."""
    stop = asyncio.Event()

    async def sell_beside() -> None:
        await play.sell(play.beside, play.here)

    async with asyncio.TaskGroup() as tasks:
        for what in (play.sell_where_it_is, sell_beside, play.here.round, play.there.round):
            tasks.create_task(again_and_again(what, stop))
        try:
            yield
        finally:
            stop.set()


async def finish(play: Play) -> None:
    """All that is due is done, in both cells."""
    for cell in (play.here, play.there):
        for _ in range(4):
            await cell.round()


def told_of(play: Play, shop: Shop) -> Counter[str]:
    """What the shop's server was told, and how often each."""
    return Counter(one.body.decode() for one in play.receiver.at(f"/{shop.merchant_id}"))


async def payments_of(cell: Cell, shop: Shop) -> int:
    taken = "select count(*) from payment where merchant_id = $1 and paid_at is not null"
    return int(await cell.database.fetchval(taken, shop.merchant_id))


@pytest.mark.parametrize("step", one_of(2, list(Step)[:-1]))
async def test_a_move_that_dies_at_a_step_and_goes_on(play: Play, step: Step) -> None:
    def dies(done: Step) -> None:
        if done is step:
            raise Killed

    async with under_load(play):
        await asyncio.sleep(0.5)
        with pytest.raises(Killed):
            await move_merchant(play.move, passed=dies)
        assert await play.open_cells() <= 1
        await asyncio.sleep(0.5)
        await move_merchant(play.move)
        await asyncio.sleep(0.5)
    await finish(play)
    assert await play.open_cells() == 1
    await prove(play)


async def prove(play: Play) -> None:
    """Every payment has one charge and one pingback, and the books of both cells are right."""
    charged = [one for one in standings(play.bank.record.operations()).values() if one.net]
    expected = 0
    for shop, cell in ((play.moving, play.there), (play.beside, play.here)):
        paid = await payments_of(cell, shop)
        expected += paid
        assert paid == play.sold[shop.merchant_id] + 2 * SUBSCRIPTIONS
        told = told_of(play, shop)
        assert {body: times for body, times in told.items() if times > 1} == {}
        sent = "select count(*) from pingback where merchant_id = $1 and url is not null"
        assert len(told) == await cell.database.fetchval(sent, shop.merchant_id)
        left = "select count(*) from pingback where merchant_id = $1 and state <> 'acknowledged' and url is not null"
        assert await cell.database.fetchval(left, shop.merchant_id) == 0
    assert len(charged) == expected
    for cell in (play.here, play.there):
        found = await check(cell.database, now=utc_now() + timedelta(minutes=1))
        assert [f"{one.rule}: {one.differences}" for one in found if one.found] == []
