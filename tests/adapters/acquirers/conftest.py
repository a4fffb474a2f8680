import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from paydesk.adapters.acquirers.interface import Acquirer, CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record, RemoteSimulator, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.server import bank_app
from paydesk.adapters.acquirers.simulator.standing import Standing, standings

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
SHOP = "http://shop.test/checkout/abc?x=1"


@dataclass
class BankClock:
    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Counter:
    """An acquirer under test, with what only a test can see and do: the bank's record, clock and customer."""

    acquirer: Acquirer
    record: Record
    clock: BankClock
    base_url: str
    keys: int = field(default=0)

    def purchase(self, number: str = "4242424242424242", amount: str = "10.00", **changes: Any) -> Purchase:
        self.keys += 1
        asked: dict[str, Any] = {
            "key": f"key-{self.keys}",
            "amount": Decimal(amount),
            "currency": "USD",
            "card": CardDetails(number, 12, 2030, "Ada Lovelace", "123"),
            "capture": True,
            "not_after": self.clock.now + timedelta(minutes=10),
            "return_url": SHOP,
        }
        return Purchase(**(asked | changes))

    def standing(self, key: str) -> Standing:
        return standings(self.record.operations())[key]

    async def press(self, url: str, decision: str) -> tuple[int, str]:
        """Press a button on the challenge page; gives the status and where the browser goes."""
        async with (
            aiohttp.ClientSession() as browser,
            browser.post(url, data={"decision": decision}, allow_redirects=False) as answer,
        ):
            return answer.status, answer.headers.get("Location", "")


@dataclass
class Street:
    """A web server on a free port of loopback, in which each test opens a bank of its own."""

    base_url: str
    bank: Starlette = field(default_factory=Starlette)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.bank(scope, receive, send)


@pytest.fixture(scope="session")
async def street() -> AsyncIterator[Street]:
    # Named as TCP, or asyncio leaves Nagle's algorithm on and every answer takes 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    street = Street(f"http://127.0.0.1:{listener.getsockname()[1]}")
    server = uvicorn.Server(uvicorn.Config(street, log_level="warning", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    yield street
    server.should_exit = True
    await serving


@pytest.fixture
def clock() -> BankClock:
    return BankClock()


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "bank.sqlite")


@pytest.fixture(params=["in process", "remote"])
async def counter(
    request: pytest.FixtureRequest, street: Street, record: Record, clock: BankClock
) -> AsyncIterator[Counter]:
    inside = SimulatedAcquirer(Bank(record, now=clock), base_url=street.base_url)
    street.bank = bank_app(inside)
    acquirer: Acquirer = inside if request.param == "in process" else RemoteSimulator(street.base_url)
    yield Counter(acquirer, record, clock, street.base_url)
    await acquirer.close()
    await inside.close()
