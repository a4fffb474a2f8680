"""A deployment in front of two database servers, of which the second one takes over again
and again.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from tests.faults.customers import APPROVED, Customer, Plan
from tests.faults.stage import Cast, as_environment, bank_open, bank_process, stage_settings
from tests.processes import PATIENCE, Kept, environment, eventually, free_port
from tests.set_back import times
from tests.standing_by import Pair, pair_of_servers
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Record
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.database.migrating import migrate
from paydesk.database.pool import AWAY, Database, connected
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.operations.history import read
from paydesk.domain.operations.holding import accept
from paydesk.equipment import vault_of
from paydesk_client import Gateway

PAYDESK = (sys.executable, "-m", "paydesk")


@dataclass(slots=True)
class Deployment:
    """Two servers, `serve` and `work` before them, a bank of its own, and customers."""

    pair: Pair
    database: Database
    bank: Path
    browser: aiohttp.ClientSession
    gateway: Gateway
    said: Callable[[], str]
    customers: list[Customer] = field(default_factory=list)

    def customer(self, *, joins: bool = False) -> Customer:
        """One more customer, with an order of their own;
        who joins the club is charged every month.
        """
        number = len(self.customers) + 1
        plan = Plan((APPROVED,), joins=joins)
        found = Customer(f"order-{number}", f"{number}.{number % 10}1", plan, self.gateway, self.browser)
        self.customers.append(found)
        return found

    async def sell(self, *, joins: bool = False) -> Customer:
        """A customer who comes back until the order is paid."""
        customer = self.customer(joins=joins)
        async with asyncio.timeout(PATIENCE):
            while not await customer.visit():  # noqa: ASYNC110 (people send no event)
                await asyncio.sleep(0.1)
        return customer

    def charges(self) -> list[Standing]:
        """The bank's own word on which purchases took money and kept it."""
        record = Record(self.bank)
        try:
            return [standing for standing in standings(record.operations()).values() if standing.net]
        finally:
            record.close()

    async def renewals_fall_due(self) -> None:
        """Everybody who joined the club is to be charged now."""
        await times(self.database, "subscription", {"state": "Active"}, date_next=utc_now())

    async def until_renewed(self) -> None:
        """Wait until everything that fell due was charged."""
        due = "select count(*) from subscription where state = 'Active' and date_next <= now()"
        await self._until(lambda: self.database.fetchval(due), lambda count: count == 0, "renewals are charged")

    async def held_because(self) -> str:
        """Why nothing is begun; empty if nothing is held."""
        return (await read(self.database)).held_because

    async def until_held(self) -> str:
        """Wait until it is held; why."""
        return str(await self._until(self.held_because, bool, "it is held"))

    async def take_what_is_left(self) -> None:
        """An operator ends the hold, and all processes hear of it."""
        await accept(self.database, COMMAND_LINE, "looked at", is_live=False, now=utc_now())

    async def _until(self, ask: Callable[[], Awaitable[Any]], condition: Callable[[Any], bool], what: str) -> Any:
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    # The database may be away: it is just taken over.
                    with suppress(*AWAY):
                        if condition(answer := await ask()):
                            return answer
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it never came to this: {what}\n{self.said()}") from None


@asynccontextmanager
async def deployed(folder: Path) -> AsyncIterator[Deployment]:
    """The deployment at work, for the length of a block; what was forgotten is not adopted,
    so that a hold stays.
    """
    async with AsyncExitStack() as stack:
        pair = await stack.enter_async_context(pair_of_servers(folder))
        bank_port, record = free_port(), folder / "bank.sqlite"
        settings = stage_settings(folder, pair.url, f"http://127.0.0.1:{bank_port}")
        env = environment(as_environment(settings)) | {"PAYDESK_ADOPT_FORGOTTEN": "0"}
        database = await stack.enter_async_context(connected(pair.url, most=2))
        await migrate(database)
        merchant = await create_merchant(
            database, vault_of(settings), name="Socks", email="owner@shop.example", now=utc_now()
        )
        gateway = Gateway(merchant.public_key, merchant.private_key, base_url=settings.address)
        bank = bank_process(bank_port, record, env, Cast(), seed=0)
        web = Kept("web", [*PAYDESK, "serve"], env, "ready to answer")
        worker = Kept("worker", [*PAYDESK, "work"], env, "working")
        for kept in (bank, web, worker):
            await stack.enter_async_context(kept.running())
        browser = await stack.enter_async_context(
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30), cookie_jar=aiohttp.DummyCookieJar())
        )
        await bank_open(settings.simulator_url)
        for kept in (web, worker):
            await eventually(lambda kept=kept: bool(kept.ready), f"{kept.name} is at work", kept.tail)  # type: ignore[misc]
        yield Deployment(pair, database, record, browser, gateway, lambda: f"{web.tail()}\n{worker.tail()}")
        for kept in (web, worker):
            assert kept.starts == 1, kept.tail()


@asynccontextmanager
async def shopping(deployment: Deployment) -> AsyncIterator[None]:
    """Customers come all the time, for the length of a block; each has paid once at its end."""
    is_closing = asyncio.Event()

    async def come() -> None:
        while not is_closing.is_set():
            await deployment.sell()

    tasks = [asyncio.create_task(come()) for _ in range(3)]
    try:
        yield
    finally:
        is_closing.set()
        await asyncio.gather(*tasks)


def lags(rounds: int, seed: int) -> list[float]:
    """For how long, in seconds, the standby hears nothing before each failover:
    some beats, or less than one.
    """
    chance = random.Random(seed)
    return [chance.uniform(1.5, 3.0) if number % 2 == 0 else chance.uniform(0.0, 0.5) for number in range(rounds)]
