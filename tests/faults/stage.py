"""The whole deployment as real processes, with a bank, a merchant and customers around it."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from tests.faults.customers import Crowd, Customer, plan
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
    crowd: Crowd
    record: Path
    chance: random.Random


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays: how `paydesk serve` is run, and how many customers come, who may be too patient to click twice."""

    customers: int
    web: Sequence[str] = PAYDESK
    patient: bool = False


@asynccontextmanager
async def staged(folder: Path, cast: Cast, seed: int) -> AsyncIterator[Stage]:
    """Everything running, for the length of a block; the embedded PostgreSQL is not supervised yet."""
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        postgres = EmbeddedServer(folder / "data")
        await postgres.start()
        stack.push_async_callback(postgres.stop)
        receiver = Receiver(random.Random(seed + 1), slow_for=PINGBACK_TIMEOUT + 1)
        pingback_url = await stack.enter_async_context(receiver.listening())
        bank_port = free_port()
        settings = _settings(folder, postgres.url, f"http://127.0.0.1:{bank_port}")
        env = environment(as_environment(settings)) | {"TMPDIR": str(folder)}
        receiver.gateway = await _open_shop(settings, pingback_url)
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
        crowd = Crowd(_customers(cast, receiver.gateway, browser, random.Random(seed + 2)))
        await bank_open(settings.simulator_url)
        await eventually(
            lambda: len(web.ready) == 2 and all(one.ready for one in workers), "all processes run", web.tail
        )
        yield Stage(settings, env, postgres, web, workers, receiver, crowd, record, chance)


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
        declines_per_hour=1_000_000,
        attempts_per_checkout=50,
    )


def as_environment(settings: Settings) -> dict[str, object]:
    """What was set, as it is written in an environment."""
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    secrets = {name: given[name].get_secret_value() for name in ("secret_key", "vault_keys")}
    return {name.upper(): value for name, value in (given | secrets).items()}


async def _open_shop(settings: Settings, pingback_url: str) -> Gateway:
    """A merchant with a key pair and a pingback URL, in a fresh database."""
    async with connected(settings.database_url, most=2) as database:
        await migrate(database)
        merchant = await create_merchant(
            database,
            vault_of(settings),
            name="Sock Shop",
            email="owner@shop.example",
            pingback_url=pingback_url,
            now=utc_now(),
        )
    return Gateway(merchant.public_key, merchant.private_key, base_url=settings.address)


def _customers(cast: Cast, gateway: Gateway, browser: aiohttp.ClientSession, chance: random.Random) -> list[Customer]:
    """Each has an order and an amount of their own."""
    return [
        Customer(
            order=f"order-{number:03}",
            amount=f"{number + 1}.{number % 100:02}",
            plan=plan(chance, patient=cast.patient),
            gateway=gateway,
            web=browser,
        )
        for number in range(cast.customers)
    ]
