"""The whole deployment as real processes, with a bank, a merchant and customers around it."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
from pydantic import SecretStr
from tests.conftest import accept_waiting, submit_profile
from tests.faults.clerk import Clerk
from tests.faults.customers import Crowd, Customer, Plan
from tests.faults.fail_points import FailPoints
from tests.faults.keeping import Staff, Task, Wish
from tests.faults.live_banks import LiveBank, live_bank, live_settings
from tests.faults.merchant import Receiver
from tests.faults.planting import BUGS, PROCESSES
from tests.faults.supervising import Outage
from tests.processes import PATIENCE, Kept, environment, eventually, free_port
from tests.standing_by import replicated, standing_by

from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.cluster import PORT
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import connected
from paydesk.domain.merchants.merchant import change_merchant, create_merchant, go_live
from paydesk.equipment import vault_of
from paydesk.settings import Settings, load_settings
from paydesk_client import Gateway

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAYDESK = (sys.executable, "-m", "paydesk")
STOPPABLE = (sys.executable, "-m", "tests.faults.stoppable")
"""Paydesk that stops at fail points."""

BANK_LATENCY = 0.1
LOSES = 0.02
"""The share of questions, and of answers, that an unreliable bank's line loses."""
PINGBACK_TIMEOUT = 2.0
CONNECTIONS = 6
"""Of each worker; the embedded PostgreSQL takes a hundred in all."""

UNLIMITED: dict[str, Any] = {
    "forms_per_minute": 1_000_000,
    "calls_per_minute": 1_000_000,
    "declines_per_hour": 1_000_000,
    "tries_per_card": 1_000_000,
    "wrong_cvcs_per_card": 1_000_000,
    "checks_per_card": 1_000_000,
    "declines_before_challenge": 1_000_000,
    "attempts_per_checkout": 50,
}
"""All customers come from one address, with few cards."""


@dataclass(frozen=True, slots=True)
class Order:
    """What one customer orders, how they pay, and what the shop's staff do with the order.

    Of the two shops `socks` takes money at once, `mugs` when it ships.
    """

    name: str
    plan: Plan
    wish: Wish = Wish.KEEP
    shop: str = "socks"


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays: how `paydesk` is run, by how many processes, and how reliable bank
    and merchant are.

    What is stoppable runs each worker in so many `forks`, and `bugs` are planted into it. An
    unreliable bank loses messages and is slow to know what it did.
    """

    command: Sequence[str] = STOPPABLE
    web_workers: int = 1
    workers: int = 1
    forks: int = 1
    bugs: Sequence[str] = ()
    unreliable: bool = False
    hides_for: float = 0.0
    """Seconds until the bank knows what it did."""
    stands_by: bool = False
    """Whether commits wait for a second server."""
    live: str = ""
    """The live acquirer that takes all payments, instead of the simulated bank."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that plays a part; `record` is the file of the bank's own record.
    The workers are not at work yet.

    `own_server` is there unless the stage was given a database.
    """

    settings: Settings
    env: Mapping[str, str]
    cast: Cast
    own_server: EmbeddedServer | None
    web: Kept
    workers: tuple[Kept, ...]
    receiver: Receiver
    staff: Staff
    crowd: Crowd
    points: FailPoints
    record: Path
    browser: aiohttp.ClientSession
    clerk: Clerk
    standby: EmbeddedServer | None = None
    live: LiveBank | None = None
    outages: list[Outage] = field(default_factory=list)

    async def let_pass(self, hours: float) -> None:
        """It is so many hours later at the live acquirer, if there is one."""
        if self.live is not None:
            await self.live.do("let_pass", hours)

    @property
    def postgres(self) -> EmbeddedServer:
        """The stage's own server."""
        assert self.own_server is not None
        return self.own_server

    def expect(self, order: Order) -> Customer:
        """The customer of an order, who may come from now on; the staff know what to do with it."""
        gateway = self.receiver.gateways[order.shop]
        number = len(self.staff.tasks)
        amount, v1 = f"{number + 1}.{number % 100:02}", self.live is None
        customer = Customer(order.name, amount, order.plan, gateway, self.browser, v1)
        self.staff.tasks[order.name] = Task(order.wish, Decimal(customer.amount), gateway)
        self.crowd.customers.append(customer)
        return customer

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """The workers at work for the length of a block; they stop in good order."""
        async with AsyncExitStack() as stack:
            for worker in self.workers:
                await stack.enter_async_context(worker.running())
            yield
            await stop_workers(self.workers, self.points, self.cast.forks)


async def stop_workers(workers: Sequence[Kept], points: FailPoints, forks: int) -> None:
    """Have workers stop in good order; who has just begun, after another was killed,
    knows nothing of that yet.
    """

    def all_work(worker: Kept) -> bool:
        begun, ended, at_work = (
            {event["pid"] for event in worker.events if event["event"] == what}
            for what in ("forked", "ended", "working")
        )
        if not begun:
            return bool(worker.ready)
        # One may have ended by itself, too, since the database was just starting again.
        living = begun - ended
        return len(living) == forks and living <= at_work and points.killed & begun <= ended

    for worker in workers:
        await eventually(partial(all_work, worker), "all workers work", worker.tail)
        assert await worker.stop() == 0, worker.tail()


@asynccontextmanager
async def staged(folder: Path, cast: Cast, seed: int = 0, database_url: str = "") -> AsyncIterator[Stage]:
    """Everything but the workers running, for the length of a block, on the database at an address.

    Without one it is on an embedded PostgreSQL of its own, which is not supervised yet.
    """
    async with AsyncExitStack() as stack:
        own: EmbeddedServer | None = None
        standby: EmbeddedServer | None = None
        if not database_url:
            own, standby = await _servers(stack, folder, cast)
            database_url = both(own, standby) if standby else own.url
        receiver = Receiver(random.Random(seed + 1), slow_for=PINGBACK_TIMEOUT + 1, moody=cast.unreliable)
        hears_at = await stack.enter_async_context(receiver.listening())
        bank_port, port = free_port(), free_port()
        live = await _live_bank(stack, cast, f"http://127.0.0.1:{port}")
        more = live_settings(live.name, live.account.base_url) if live else {}
        settings = stage_settings(folder, database_url, f"http://127.0.0.1:{bank_port}", port=port, **more)
        points = FailPoints(folder / "points")
        env = environment(as_environment(settings)) | points.env | planted_env(cast) | {"TMPDIR": str(folder)}
        receiver.gateways = await _open_shops(settings, hears_at)
        record = folder / "bank.sqlite"
        bank = bank_process(bank_port, record, env, cast, seed)
        web = Kept("web", [*cast.command, "serve", "--workers", f"{cast.web_workers}"], env, "ready to answer")
        many = env | {PROCESSES: str(cast.forks), "PAYDESK_DATABASE_CONNECTIONS": str(CONNECTIONS)}
        workers = tuple(Kept(f"worker {n}", [*cast.command, "work"], many, "working") for n in range(cast.workers))
        for kept in (bank, web):
            await stack.enter_async_context(kept.running())
        browser = await stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True, limit=0),
                timeout=aiohttp.ClientTimeout(total=30),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        )
        staff = await stack.enter_async_context(Staff({}, settings.database_url).working())
        clerk = await stack.enter_async_context(Clerk(STOPPABLE, env).working())
        await bank_open(settings.simulator_url)
        await eventually(lambda: len(web.ready) == cast.web_workers, "the web service answers", web.tail)
        crowd = Crowd([])
        played = (settings, env, cast, own, web, workers, receiver, staff, crowd, points, record, browser, clerk)
        yield Stage(*played, standby, live)


async def _live_bank(stack: AsyncExitStack, cast: Cast, service: str) -> LiveBank | None:
    """The live acquirer of the cast, which tells a service of payments; it ends with the stack."""
    return await stack.enter_async_context(live_bank(cast.live, service)) if cast.live else None


async def _servers(stack: AsyncExitStack, folder: Path, cast: Cast) -> tuple[EmbeddedServer, EmbeddedServer | None]:
    """The database, and its standby if the cast has one; they end with the stack."""
    if cast.stands_by:
        primary = await stack.enter_async_context(replicated(folder / "data"))
        return primary, await stack.enter_async_context(standing_by(primary, folder / "second"))
    postgres = EmbeddedServer(folder / "data")
    await postgres.start()
    stack.push_async_callback(postgres.stop)
    return postgres, None


def both(primary: EmbeddedServer, standby: EmbeddedServer) -> str:
    """The address of a database on either of two servers."""
    hosts = [parse_qs(urlsplit(server.url).query)["host"][0] for server in (primary, standby)]
    return f"postgresql://paydesk@/paydesk?host={','.join(hosts)}&port={PORT},{PORT}"


def planted_env(cast: Cast) -> dict[str, str]:
    """What a process must find in its environment to stop at fail points,
    and to have the cast's bugs.
    """
    return {BUGS: ",".join(cast.bugs), "PYTHONPATH": str(ROOT)}


def bank_process(port: int, record: Path, env: Mapping[str, str], cast: Cast, seed: int) -> Kept:
    """The simulated bank, as reliable as the cast says."""
    orders = [port, record, BANK_LATENCY if cast.unreliable else 0.0, cast.hides_for, LOSES * cast.unreliable, seed]
    command = [sys.executable, str(HERE / "lying_bank.py"), *map(str, orders)]
    return Kept("bank", command, {**env, "PYTHONPATH": str(ROOT)}, ready_event="")


async def bank_open(address: str) -> None:
    """Wait until the bank opens."""
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as browser:
        while True:
            with suppress(aiohttp.ClientError):
                async with browser.get(f"{address}/healthz"):
                    return
            await asyncio.sleep(0.05)


def stage_settings(folder: Path, database_url: str, bank_url: str, port: int = 0, **more: Any) -> Settings:
    """The settings of a deployment in which nobody is refused for coming often."""
    return load_settings(
        data_dir=folder / "data",
        database_url=database_url,
        port=port or free_port(),
        metrics_port=0,
        secret_key=generate_secret(),
        vault_keys=generate_key_setting(),
        simulator_url=bank_url,
        outbound_allow="127.0.0.0/8",
        slow_methods=True,
        pingback_timeout=PINGBACK_TIMEOUT,
        **UNLIMITED,
        **more,
    )


def as_environment(settings: Settings) -> dict[str, object]:
    """What was set, as it is written in an environment."""
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    open_words = {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in given.items()
    }
    return {name.upper(): value for name, value in open_words.items()}


async def _open_shops(settings: Settings, hears_at: str) -> dict[str, Gateway]:
    """Two merchants, each with a key pair and a pingback URL, in a fresh database;
    the second one ships its goods.
    """
    gateways = {}
    async with connected(settings.database_url, most=2) as database:
        await migrate(database)
        for name, shipped_goods in (("socks", False), ("mugs", True)):
            merchant = await create_merchant(
                database,
                vault_of(settings),
                name=name.title(),
                email="owner@shop.example",
                pingback_url=f"{hears_at}/{name}",
                shipped_goods=shipped_goods,
                now=utc_now(),
            )
            if settings.live_acquirer:
                await submit_profile(database, merchant.id)
                await accept_waiting(database, merchant.id)
                await go_live(database, merchant.id, now=utc_now())
            else:
                await change_merchant(database, merchant.id, slow_methods=True)
            gateways[name] = Gateway(merchant.public_key, merchant.private_key, base_url=settings.address)
    return gateways
