"""A deployment whose code changes while customers pay:
one database, one bank, and processes of any release.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path
from subprocess import CompletedProcess

import aiohttp
import asyncpg
from tests.faults.customers import APPROVED, Customer, Plan, plan
from tests.faults.keeping import CAPTURED_AT_ONCE, Staff, Task
from tests.faults.merchant import Receiver
from tests.faults.stage import (
    CONNECTIONS,
    UNLIMITED,
    Cast,
    as_environment,
    bank_open,
    bank_process,
)
from tests.processes import Kept, environment, eventually, free_port
from tests.upgrade.balancer import Balancer
from tests.upgrade.code import PAYDESK, Code
from tests.upgrade.waits import LockWaits

from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.database.embedded import EmbeddedServer
from paydesk.settings import load_settings
from paydesk_client import Gateway

AT_ONCE = 4
_PAUSE = 0.4
"""Seconds between two customers of a queue: a busy shop, and no machine that has nothing left
for the upgrade."""
_COMES_BACK = 0.4
PINGBACK_PATIENCE = 60.0
"""Seconds that the shop may take to answer: however busy the machine is,
no pingback is sent again half an hour on."""


@dataclass(slots=True)
class Deployment:
    """Everything but the code; `all_processes` are those that ever ran."""

    env: Mapping[str, str]
    postgres: EmbeddedServer
    record: Path
    balancer: Balancer
    waits: LockWaits
    receiver: Receiver
    staff: Staff
    browser: aiohttp.ClientSession
    stack: AsyncExitStack
    chance: random.Random
    merchant_id: int = 0
    gateway: Gateway | None = None
    customers: list[Customer] = field(default_factory=list)
    all_processes: list[Kept] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def admin_url(self) -> str:
        """The deployment's database, for a superuser."""
        return self.postgres.dsn(role="postgres")

    async def command(self, code: Code, *words: str) -> CompletedProcess[str]:
        """Run `paydesk` of some release until it ends."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *PAYDESK, *words, env={**self.env, **code.env}, stdout=pipe, stderr=pipe
        )
        result, said = await process.communicate()
        assert process.returncode is not None
        return CompletedProcess(words, process.returncode, result.decode(), said.decode())

    async def open_shop(self, code: Code, hears_at: str) -> None:
        """Make the schema of a release, and a merchant in it."""
        for words in (("migrate",), self._merchant(f"{hears_at}/socks")):
            said = await self.command(code, *words)
            assert said.returncode == 0, said.stderr
        merchant = json.loads(said.stdout)
        self.merchant_id = merchant["id"]
        self.gateway = Gateway(merchant["public_key"], merchant["private_key"], base_url=self.env["PAYDESK_BASE_URL"])
        self.receiver.gateways["socks"] = self.gateway
        self.receiver.tell = self.staff.hear

    def _merchant(self, url: str) -> tuple[str, ...]:
        shop = ("--name", "Socks", "--email", "owner@shop.example", "--pingback-url", url, "--json")
        return ("merchant", "create", *shop)

    async def begin(self, code: Code) -> tuple[Kept, Kept]:
        """Start a release's web service and worker; once both work, customers come to them, too."""
        port = free_port()
        web_env = {**self.env, **code.env, "PAYDESK_PORT": str(port)}
        worker_env = {**self.env, **code.env, "PAYDESK_DATABASE_CONNECTIONS": str(CONNECTIONS)}
        web = Kept(f"{code.name} web", [*PAYDESK, "serve"], web_env, "ready to answer")
        worker = Kept(f"{code.name} worker", [*PAYDESK, "work"], worker_env, "working")
        self.all_processes += [web, worker]
        for kept in (web, worker):
            await self.stack.enter_async_context(kept.running())
        await eventually(lambda: bool(web.ready and worker.ready), f"{code.name} code works", web.tail, worker.tail)
        self.balancer.behind[code.name] = port
        return web, worker

    async def end(self, code: Code, both: tuple[Kept, Kept]) -> None:
        """Send no more customers to a release, and stop it in good order."""
        self.balancer.behind.pop(code.name, None)
        for kept, status in zip(both, await asyncio.gather(*(kept.stop() for kept in both)), strict=True):
            assert (status, kept.starts) == (0, 1), f"{kept.name} died: {kept.tail()}"

    @asynccontextmanager
    async def paying(self) -> AsyncIterator[None]:
        """Customers come, one after the other and several at once, for the length of a block,
        and see it through.
        """
        closing = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(self._queue(closing))
            try:
                yield
            finally:
                closing.set()

    async def sold(self, more: int) -> None:
        """Wait until so many more customers have paid who came from now on."""
        before = len(self.customers)
        await eventually(
            lambda: sum(customer.is_paid for customer in self.customers[before:]) >= more,
            f"{more} more pay",
            *(kept.tail for kept in self.all_processes),
        )

    async def _queue(self, closing: asyncio.Event) -> None:
        while not closing.is_set():
            await asyncio.sleep(_PAUSE)
            customer = self._customer(next(self._numbers))
            while not await customer.visit():  # noqa: ASYNC110
                await asyncio.sleep(_COMES_BACK)

    def _customer(self, number: int) -> Customer:
        """The next customer, some of whom join a club, and what the staff do with the order."""
        assert self.gateway is not None
        wants = Plan((APPROVED,), joins=True) if number % 7 == 3 else plan(self.chance)
        amount = f"{number % 90 + 10}.{number % 100:02}"
        customer = Customer(f"order-{number}", amount, wants, self.gateway, self.browser)
        wish = CAPTURED_AT_ONCE[number % len(CAPTURED_AT_ONCE)]
        self.staff.tasks[customer.order] = Task(wish, Decimal(amount), self.gateway)
        self.customers.append(customer)
        return customer


@asynccontextmanager
async def deployed(folder: Path, seed: int) -> AsyncIterator[Deployment]:
    """Database, bank, balancer, the shop's server and staff for the length of a block;
    no process of Paydesk yet.
    """
    async with AsyncExitStack() as stack:
        postgres = EmbeddedServer(folder / "data")
        stack.callback(shutil.rmtree, postgres.layout.cluster)
        await postgres.start()
        stack.push_async_callback(postgres.stop)
        chance = random.Random(seed)
        front, bank_port, record = free_port(), free_port(), folder / "bank.sqlite"
        env = environment(_settings(folder, postgres.url, front, bank_port)) | {"TMPDIR": str(folder)}
        bank = bank_process(bank_port, record, env, Cast(), seed)
        await stack.enter_async_context(bank.running())
        balancer, waits = Balancer(), LockWaits(postgres.layout.log)
        await stack.enter_async_context(balancer.listening(front))
        await stack.enter_async_context(waits.watched(postgres.admin_url))
        receiver = Receiver(chance, slow_for=0, moody=False)
        staff = await stack.enter_async_context(Staff({}, postgres.url).working())
        browser = await stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True, limit=0),
                timeout=aiohttp.ClientTimeout(total=60),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        )
        await bank_open(f"http://127.0.0.1:{bank_port}")
        yield Deployment(env, postgres, record, balancer, waits, receiver, staff, browser, stack, chance)


def _settings(folder: Path, database_url: str, front: int, bank_port: int) -> dict[str, object]:
    """What all processes of whichever release are set to."""
    return as_environment(
        load_settings(
            data_dir=folder / "data",
            database_url=database_url,
            base_url=f"http://127.0.0.1:{front}",
            metrics_port=0,
            secret_key=generate_secret(),
            vault_keys=generate_key_setting(),
            simulator_url=f"http://127.0.0.1:{bank_port}",
            outbound_allow="127.0.0.0/8",
            pingback_timeout=PINGBACK_PATIENCE,
            **UNLIMITED,
        )
    )


@asynccontextmanager
async def backup(here: Deployment) -> AsyncIterator[None]:
    """Somebody who reads for the length of a block as pg_dump does:
    by one snapshot, with a lock on every table.
    """
    connection = await asyncpg.connect(here.admin_url)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            tables = await connection.fetchval(
                "select string_agg(oid::regclass::text, ', ') from pg_class"
                " where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')"
            )
            await connection.execute(f"lock table {tables} in access share mode")
            yield
    finally:
        await connection.close()
