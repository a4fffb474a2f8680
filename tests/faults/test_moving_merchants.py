"""While customers pay and workers work in both cells, the move or a database is killed at each
step, and nothing is lost and nothing is done twice.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
from tests import shopfront
from tests.adapters.mail.post_offices import PostOffice, post_office
from tests.breaking import say
from tests.cell_servers import CellServer, cell_server
from tests.conftest import fast_place
from tests.domain.pingbacks.receiver import Receiver, receiving
from tests.faults.clerk import Clerk
from tests.faults.fail_points import FailPoints
from tests.faults.stage import ROOT, STOPPABLE
from tests.faults.supervising import answering, kill, supervised
from tests.lengths import one_of
from tests.processes import environment
from tests.proving import check
from tests.set_back import times
from tests.standings import standings
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.mail import SmtpMailer, parse_smtp_url
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable, Unsure
from paydesk.database.pool import AWAY, Database, connected
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.cells.fencing import Fenced, find_fence
from paydesk.domain.ledger.settling import settle_due as settle_money
from paydesk.domain.mail.telling import tell_events
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.results import Paid
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.equipment import outbound_client, payment_desk, sender_settings
from paydesk.settings import Settings
from paydesk.worker import mail_sender

pytestmark = pytest.mark.faults

HERE, THERE = 1, 2
SUBSCRIPTIONS = 3
SHORTLY = 0.1
"""Seconds for which all go on beside what is done."""
LOST = (*AWAY, Unavailable, Unsure, ExceptionGroup)
"""What is raised where a database is away."""

ROUNDS = 100
WAITS = "select exists (select from mail where state = 'due') or exists (select from pingback where state = 'due')"

MOVE = "the move"
Death: TypeAlias = tuple[str, str | int]
"""Where the move stands still, and who is killed there."""
SOME: list[Death] = [
    ("amid pass changes", MOVE),
    ("after step closed", MOVE),
    ("after step completed", MOVE),
    ("after step moved", MOVE),
]
EVERY: list[Death] = [
    ("amid pass whole", MOVE),
    ("after step copied", MOVE),
    ("amid pass changes", MOVE),
    ("after step followed", MOVE),
    ("after step fenced", MOVE),
    ("after step closed", MOVE),
    ("amid pass last", MOVE),
    ("after step completed", MOVE),
    ("after step moved", MOVE),
    ("after step switched", MOVE),
    ("after step opened", MOVE),
    ("after moving.remember_keys", MOVE),
]
# Who makes a call as the database dies holds a lease, which the fence waits for: so the one that
# the merchant leaves dies when nobody makes any.
SERVERS: list[Death] = [
    ("amid pass whole", THERE),
    ("amid pass changes", THERE),
    ("amid pass last", THERE),
    ("amid pass last", HERE),
    ("after step moved", HERE),
]


@dataclass
class Cell:
    """A cell with a worker: its doors' database, and the one that the worker is connected by."""

    server: CellServer
    database: Database
    working: Database
    vault: Vault
    desk: Desk
    settings: Settings
    mailer: SmtpMailer

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
        await tell_events(self.working, real_now=now, keep_test=False)
        mails = mail_sender(self.settings, self.working, self.vault, self.mailer)
        try:
            await mails.start_due(now)
        finally:
            await mails.finish()


@dataclass(frozen=True)
class Cells:
    """Both cells over one bank, and what runs `paydesk merchant move` in the one."""

    here: Cell
    there: Cell
    bank: Bank
    receiver: Receiver
    office: PostOffice
    points: FailPoints
    clerk: Clerk
    file: Path

    @property
    def both(self) -> tuple[Cell, Cell]:
        return self.here, self.there


@dataclass
class Play:
    """Two cells with their workers, and two shops that sell all the time."""

    cells: Cells
    moving: Shop
    beside: Shop
    sold: Counter[int] = field(default_factory=Counter)
    unsure: Counter[int] = field(default_factory=Counter)
    killed_server: bool = False

    async def sell(self, shop: Shop, cell: Cell) -> None:
        """A customer buys; who is told to come back does so."""
        url = f"{self.cells.receiver.base}/{shop.merchant_id}"
        try:
            link = await shopfront.order(cell.database, shop, pingback_url=url)
            is_paid = isinstance(await shopfront.pay(cell.desk, link), Paid)
            (self.sold if is_paid else self.unsure)[shop.merchant_id] += 1
        except Fenced:
            await asyncio.sleep(0.02)
        except LOST:
            self.unsure[shop.merchant_id] += 1
            await asyncio.sleep(0.1)

    async def sell_where_it_is(self) -> None:
        """The shop that moves sells in the cell whose merchant it is by now."""
        asked = (
            "select exists (select from merchant m left join merchant_fence f on f.merchant_id = m.id"
            " where m.id = $1 and f.moved_at is null)"
        )
        with suppress(*LOST):
            is_here = await self.cells.here.database.fetchval(asked, self.moving.merchant_id)
            await self.sell(self.moving, self.cells.here if is_here else self.cells.there)

    async def open_cells(self) -> int:
        """In how many cells somebody may write something of the merchant's."""
        count = 0
        for cell in self.cells.both:
            there = await cell.database.fetchval("select 1 from merchant where id = $1", self.moving.merchant_id)
            fence = await find_fence(cell.database, self.moving.merchant_id)
            count += bool(there) and (fence is None or fence.closed_at is None)
        return count

    async def move(self) -> int:
        """Give the command; its exit status."""
        name = str(self.moving.merchant_id)
        return await self.cells.clerk.command(
            "merchant", "move", name, "--to", str(THERE), "--to-env", str(self.cells.file)
        )

    async def die(self, point: str, victim: str | int) -> None:
        """A move during which somebody dies at a point."""
        points = self.cells.points
        points.arm(point)
        moving = asyncio.create_task(self.move())
        stopped = await points.stopped(point)
        if victim == MOVE:
            stopped.kill()
            moving.cancel()
            await asyncio.gather(moving, return_exceptions=True)
            return
        self.killed_server = True
        server = (self.cells.here if victim == HERE else self.cells.there).server.server
        try:
            kill(server)
            await answering(server)
        finally:
            stopped.go_on()
        await moving


@pytest.fixture(scope="module")
async def cells(usual_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cells]:
    folder = tmp_path_factory.mktemp("moves")
    (folder / "bank").mkdir()
    keys = {number: generate_key_setting() for number in (HERE, THERE)}
    secret, made = generate_secret(), []
    async with AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(receiving())
        office = await stack.enter_async_context(post_office())
        bank = Bank(Record(folder / "bank" / "record.sqlite"))
        stack.callback(bank.record.close)
        for number in (HERE, THERE):
            place = stack.enter_context(fast_place(tmp_path_factory))
            server = await stack.enter_async_context(cell_server(number, place))
            await stack.enter_async_context(supervised(server.server))
            pool = await stack.enter_async_context(connected(server.admin_url))
            working = await stack.enter_async_context(connected(server.admin_url, name="work"))
            vault = Vault.from_settings(vault_keys=keys[number], secret_key=secret)
            changed = {"data_dir": folder, "database_url": server.admin_url, "outbound_allow": "127.0.0.0/8"}
            settings = usual_settings.model_copy(update=changed)
            desk = payment_desk(settings, pool, vault, SimulatedAcquirer(bank, base_url=settings.address))
            mailer = SmtpMailer(parse_smtp_url(office.url), mail_from="Paydesk <pay@desk.example>")
            made.append(Cell(server, pool, working, vault, desk, settings, mailer))
        envs = [
            environment(
                {
                    "CELL": number,
                    "DATABASE_URL": cell.server.admin_url,
                    "DATA_DIR": folder,
                    "VAULT_KEYS": keys[number],
                    "SECRET_KEY": secret,
                    "SIMULATOR_URL": "http://127.0.0.1:9",
                }
            )
            for number, cell in zip((HERE, THERE), made, strict=True)
        ]
        file = folder / "cell2.env"
        file.write_text(
            "".join(f"{name}='{value}'\n" for name, value in envs[1].items() if name.startswith("PAYDESK_"))
        )
        points = FailPoints(folder / "points")
        run = envs[0] | points.env | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
        clerk = await stack.enter_async_context(Clerk(STOPPABLE, run).working())
        yield Cells(made[0], made[1], bank, receiver, office, points, clerk, file)


@pytest.fixture
async def play(cells: Cells) -> Play:
    """Two new shops, whose subscriptions are due."""
    here, shops = cells.here, []
    for name in ("moving", "beside"):
        made = await create_merchant(here.database, here.vault, name=name, email="o@shop.example", now=utc_now())
        await say(here.database, "merchant", {"id": made.id}, test_mails=True)
        shops.append(shop_of(made, live=False))
        till = Till(here.desk, shops[-1])
        for number in range(SUBSCRIPTIONS):
            await till.subscribe(order=f"club-{number}", pingback_url=f"{cells.receiver.base}/{made.id}")
        await times(here.database, "subscription", {"merchant_id": made.id}, date_next=utc_now() - timedelta(hours=1))
    moving, beside = shops
    return Play(cells, moving, beside)


async def again_and_again(what: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
    while not stop.is_set():
        await what()
        await asyncio.sleep(0)


@asynccontextmanager
async def under_load(play: Play) -> AsyncIterator[None]:
    """Customers of both shops and the workers of both cells are busy for a block."""
    stop = asyncio.Event()

    async def sell_beside() -> None:
        await play.sell(play.beside, play.cells.here)

    def working(cell: Cell) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            try:
                await cell.round()
            except LOST:
                await asyncio.sleep(0.1)

        return work

    async with asyncio.TaskGroup() as tasks:
        for what in (play.sell_where_it_is, sell_beside, *map(working, play.cells.both)):
            tasks.create_task(again_and_again(what, stop))
        try:
            yield
        finally:
            stop.set()


async def finish(play: Play) -> None:
    """All that is due is done, in both cells, also what somebody has died over."""
    later = utc_now() + timedelta(hours=1)
    for cell in play.cells.both:
        await settle_due(replace(cell.desk, database=cell.working), now=later)
        await cell.round()
        for _ in range(ROUNDS):
            if not await cell.database.fetchval(WAITS):
                break
            for table in ("pingback", "mail"):
                await times(cell.database, table, {"state": "due"}, leased_until=None, due_at=utc_now())
            await cell.round()


def told_of(play: Play, shop: Shop) -> Counter[str]:
    """What the shop's server was told, whenever it was, and how often each."""
    told = [json.loads(one.body) for one in play.cells.receiver.at(f"/{shop.merchant_id}")]
    return Counter(json.dumps({**one, "pingback_ts": None}) for one in told)


def mailed(play: Play, shop: Shop) -> Counter[str]:
    """Which mails of the shop the mail server took, and how often each."""
    names = [str(one["Message-ID"]).strip("<").partition("@")[0] for one in play.cells.office.mails]
    return Counter(name for name in names if name.startswith(f"paydesk-{shop.merchant_id}-"))


@pytest.mark.parametrize("deaths", one_of(3, [SOME, EVERY, SERVERS]), ids=["some", "every", "servers"])
async def test_a_move_that_dies_again_and_again_and_goes_on(play: Play, deaths: list[Death]) -> None:
    async with under_load(play):
        for point, victim in deaths:
            await asyncio.sleep(SHORTLY)
            await play.die(point, victim)
            assert await play.open_cells() <= 1
        await play.move()
        await asyncio.sleep(SHORTLY)
    await finish(play)
    here, there = play.cells.both
    assert await there.database.fetchval("select count(*) from merchant where id = $1", play.moving.merchant_id) == 1
    assert await here.database.fetchval("select count(*) from merchant where id = $1", play.moving.merchant_id) == 0
    assert [await find_fence(cell.database, play.moving.merchant_id) for cell in play.cells.both] == [None, None]
    await prove(play)


async def prove(play: Play) -> None:
    """Every payment has one charge, one pingback and one receipt, and the books of both cells are
    right.
    """
    for shop, cell in ((play.moving, play.cells.there), (play.beside, play.cells.here)):
        taken = "select count(*) from payment where merchant_id = $1 and paid_at is not null"
        sold = await cell.database.fetchval(taken, shop.merchant_id) - 2 * SUBSCRIPTIONS
        certain = play.sold[shop.merchant_id]
        assert certain > 0
        assert certain <= sold <= certain + play.unsure[shop.merchant_id]
        told = told_of(play, shop)
        assert play.killed_server or {body: times for body, times in told.items() if times > 1} == {}
        sent = "select count(*) from pingback where merchant_id = $1 and url is not null"
        assert len(told) == await cell.database.fetchval(sent, shop.merchant_id)
        mails = mailed(play, shop)
        assert play.killed_server or {name: times for name, times in mails.items() if times > 1} == {}
        queued = await cell.database.fetch(
            "select id from mail where merchant_id = $1 and state = 'sent'", shop.merchant_id
        )
        assert set(mails) == {f"paydesk-{shop.merchant_id}-{row['id']}" for row in queued}
        receipts = "select count(*) from mail where merchant_id = $1 and kind like '%receipt'"
        assert await cell.database.fetchval(receipts, shop.merchant_id) == sold + SUBSCRIPTIONS
        left = "select count(*) from pingback where merchant_id = $1 and state <> 'acknowledged' and url is not null"
        assert await cell.database.fetchval(left, shop.merchant_id) == 0
    charged = [one for one in standings(play.cells.bank.record.operations()).values() if one.net]
    paid = "select count(*) from payment where paid_at is not null"
    assert len(charged) == sum([await cell.database.fetchval(paid) for cell in play.cells.both])
    for cell in play.cells.both:
        found = await check(cell.database, now=utc_now() + timedelta(minutes=1))
        assert [f"{one.rule}: {one.differences}" for one in found if one.found] == []
