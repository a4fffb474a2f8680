"""The whole deployment as real processes, with a bank, a merchant and customers around it."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import aiohttp
from tests.faults.customers import Crowd, Customer, plan
from tests.faults.keeping import CAPTURED_AT_ONCE, SHIPPED, Staff, Task, Wish
from tests.faults.merchant import Receiver
from tests.processes import PATIENCE, Kept, environment, eventually, free_port

from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.app import vault_of
from paydesk.core.clock import utc_now
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import connected
from paydesk.domain.merchants.accounts import create_merchant
from paydesk.settings import Settings, load_settings
from paydesk_client import Gateway

HERE = Path(__file__).parent
PAYDESK = (sys.executable, "-m", "paydesk")
WITH_BUG = (sys.executable, str(HERE / "call_before_intent.py"))

BANK_LATENCY = 0.1
BANK_HIDES_FOR = 1.0
"""Seconds until the bank knows what it did."""
PINGBACK_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that plays a part; `record` is the file of the bank's own record."""

    settings: Settings
    env: Mapping[str, str]
    postgres: EmbeddedServer
    web: Kept
    workers: tuple[Kept, ...]
    receiver: Receiver
    staff: Staff
    crowd: Crowd
    record: Path
    chance: random.Random


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays: how `paydesk serve` is run, and how many customers come, who may be too patient to click twice.

    Two shops take turns: `socks` takes money at once, `mugs` when it ships; `wishes` says what each does with orders.
    """

    customers: int
    web: Sequence[str] = PAYDESK
    patient: bool = False
    wishes: Sequence[tuple[str, Sequence[Wish]]] = (("socks", CAPTURED_AT_ONCE), ("mugs", SHIPPED))

    def wish(self, number: int) -> tuple[str, Wish]:
        """The shop of an order, and what its staff do with it."""
        shop, wishes = self.wishes[number % len(self.wishes)]
        return shop, wishes[number // len(self.wishes) % len(wishes)]


@asynccontextmanager
async def staged(folder: Path, cast: Cast, seed: int) -> AsyncIterator[Stage]:
    """Everything running, for the length of a block; the embedded PostgreSQL is not supervised yet."""
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        postgres = EmbeddedServer(folder / "data")
        await postgres.start()
        stack.push_async_callback(postgres.stop)
        receiver = Receiver(random.Random(seed + 1), slow_for=PINGBACK_TIMEOUT + 1)
        hears_at = await stack.enter_async_context(receiver.listening())
        bank_port = free_port()
        settings = _settings(folder, postgres.url, f"http://127.0.0.1:{bank_port}")
        env = environment(as_environment(settings)) | {"TMPDIR": str(folder)}
        receiver.gateways = await _open_shops(settings, hears_at)
        record = folder / "bank.sqlite"
        orders = [bank_port, record, BANK_LATENCY, BANK_HIDES_FOR, seed]
        bank = Kept("bank", [sys.executable, str(HERE / "lying_bank.py"), *map(str, orders)], env, ready_event="")
        web = Kept("web", [*cast.web, "serve", "--workers", "2"], env, ready_event="ready to answer")
        workers = tuple(Kept(f"worker {n}", [*PAYDESK, "work"], env, ready_event="working") for n in (1, 2))
        for kept in (bank, web, *workers):
            await stack.enter_async_context(kept.running())
        browser = await stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True, limit=0),
                timeout=aiohttp.ClientTimeout(total=30),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        )
        crowd = Crowd(_customers(cast, receiver.gateways, browser, random.Random(seed + 2)))
        staff = await stack.enter_async_context(Staff(_tasks(cast, crowd), settings.database_url).working())
        receiver.tell = staff.hear
        await bank_open(settings.simulator_url)
        await eventually(
            lambda: len(web.ready) == 2 and all(one.ready for one in workers), "all processes run", web.tail
        )
        yield Stage(settings, env, postgres, web, workers, receiver, staff, crowd, record, chance)


async def bank_open(address: str) -> None:
    """Wait until the bank opens."""
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as browser:
        while True:
            with suppress(aiohttp.ClientError):
                async with browser.get(f"{address}/healthz"):
                    return
            await asyncio.sleep(0.05)


def _settings(folder: Path, database_url: str, bank_url: str) -> Settings:
    port = free_port()
    return load_settings(
        data_dir=folder / "data",
        database_url=database_url,
        port=port,
        metrics_port=0,
        secret_key=generate_secret(),
        vault_keys=generate_key_setting(),
        simulator_url=bank_url,
        outbound_allow="127.0.0.0/8",
        pingback_timeout=PINGBACK_TIMEOUT,
        forms_per_minute=1_000_000,
        calls_per_minute=1_000_000,
        declines_per_hour=1_000_000,
        attempts_per_checkout=50,
    )


def as_environment(settings: Settings) -> dict[str, object]:
    """What was set, as it is written in an environment."""
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    secrets = {name: given[name].get_secret_value() for name in ("secret_key", "vault_keys")}
    return {name.upper(): value for name, value in (given | secrets).items()}


async def _open_shops(settings: Settings, hears_at: str) -> dict[str, Gateway]:
    """Two merchants, each with a key pair and a pingback URL, in a fresh database; the second one ships its goods."""
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
            gateways[name] = Gateway(merchant.public_key, merchant.private_key, base_url=settings.address)
    return gateways


def _customers(
    cast: Cast, gateways: Mapping[str, Gateway], browser: aiohttp.ClientSession, chance: random.Random
) -> list[Customer]:
    """Each has an order and an amount of their own."""
    return [
        Customer(
            order=f"order-{number:03}",
            amount=f"{number + 1}.{number % 100:02}",
            plan=plan(chance, patient=cast.patient),
            gateway=gateways[cast.wish(number)[0]],
            web=browser,
        )
        for number in range(cast.customers)
    ]


def _tasks(cast: Cast, crowd: Crowd) -> dict[str, Task]:
    """What the staff are to do with each order."""
    return {
        one.order: Task(cast.wish(number)[1], Decimal(one.amount), one.gateway)
        for number, one in enumerate(crowd.customers)
    }
