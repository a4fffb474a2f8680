from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from tests.adapters.acquirers.counters import BankClock, BankCounter, Counter, StripeCounter
from tests.adapters.acquirers.stripe.localstripe import SECRET_KEY, Front, running_localstripe
from tests.standins.account import Account, running
from tests.standins.json_parameters import checked

from paydesk.adapters.acquirers.simulator import Bank, Record, RemoteSimulator, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.server import bank_app
from paydesk.adapters.acquirers.stripe import StripeAcquirer


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


@pytest.fixture(scope="session")
async def localstripe() -> AsyncIterator[Front]:
    async with running_localstripe() as front:
        yield front


@pytest.fixture(scope="session")
def mollie_started() -> Iterator[Account]:
    with running("tests.standins.mollie") as account:
        yield account


@pytest.fixture
def mollie_account(mollie_started: Account, clock: BankClock) -> Iterator[Account]:
    """A new account at the stand-in for Mollie, at which nothing is sent that its library's types
    don't know.
    """
    mollie_started.do("forget")
    mollie_started.do("set", time=clock.now.isoformat())
    with checked() as wrong:
        yield mollie_started
    assert wrong == [], "what is given to the library is what its types allow"


@asynccontextmanager
async def open_counter(request: pytest.FixtureRequest, kind: str) -> AsyncIterator[Counter]:
    clock = request.getfixturevalue("clock")
    if kind == "stripe":
        front = request.getfixturevalue("localstripe")
        await front.forget()
        stripe = StripeAcquirer(SECRET_KEY, api_base=front.base_url, now=clock)
        yield StripeCounter(stripe, clock, front, declined_card="4000000000000341")
        await stripe.close()
        return
    street, record = request.getfixturevalue("street"), request.getfixturevalue("record")
    inside = SimulatedAcquirer(Bank(record, now=clock), base_url=street.base_url)
    street.bank = bank_app(inside)
    acquirer = inside if kind == "in process" else RemoteSimulator(street.base_url)
    yield BankCounter(acquirer, clock, record, street.base_url)
    await acquirer.close()
    await inside.close()


@pytest.fixture(params=["in process", "remote", "stripe"])
async def counter(
    request: pytest.FixtureRequest, street: Street, localstripe: Front, record: Record, clock: BankClock
) -> AsyncIterator[Counter]:
    async with open_counter(request, request.param) as opened:
        yield opened
