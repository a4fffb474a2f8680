"""A merchant's receiver on the loopback, pingbacks to send to it, and senders."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import pytest
from tests import set_back
from tests.domain.pingbacks.receiver import Receiver, receiving

from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.sending import PingbackSender, SenderSettings

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture(autouse=True)
async def _no_other_pingbacks(database: Database) -> None:
    """A sender sends for all merchants, so that what other tests have left would be in the way."""
    await set_back.no_pingbacks(database)


@pytest.fixture
async def outbound() -> AsyncIterator[OutboundClient]:
    client = OutboundClient([ip_network("127.0.0.0/8")], timeout=15.0)
    yield client
    await client.close()


@pytest.fixture
async def impatient() -> AsyncIterator[OutboundClient]:
    """Waits 0.3 s for an answer."""
    client = OutboundClient([ip_network("127.0.0.0/8")], timeout=0.3)
    yield client
    await client.close()


MakeSender = Callable[..., PingbackSender]


@pytest.fixture
def make_sender(database: Database, vault: Vault, outbound: OutboundClient) -> MakeSender:
    def make(client: OutboundClient | None = None, **settings: Any) -> PingbackSender:
        return PingbackSender(database, vault, client or outbound, SenderSettings(**settings))

    return make


@pytest.fixture
def sender(make_sender: MakeSender) -> PingbackSender:
    return make_sender()


@pytest.fixture
async def run_sender() -> AsyncIterator[Callable[..., asyncio.Event]]:
    """Runs senders until the test ends; what more is given, they run with."""
    running: list[tuple[asyncio.Event, asyncio.Task[None]]] = []

    def start(sender: PingbackSender, **options: Any) -> asyncio.Event:
        stop = asyncio.Event()
        running.append((stop, asyncio.ensure_future(sender.run(stop, **options))))
        return stop

    yield start
    for stop, task in running:
        stop.set()
        await task


Queue = Callable[..., Awaitable[int]]

PAYLOAD = (
    '{"event":"payment","payment_order":{"id":7,"merchant_order_id":"A 1","paid_amount":0.01,'
    '"merchant_net_revenue":-0.2608},"user":{"firstname":"Zoë","email":"a@b.example"},"with_risk_check":false}'
)


@pytest.fixture
def queue(database: Database) -> Queue:
    """Queues pingbacks as a payment would, and returns the id of the last."""

    async def add(
        shop: Shop,
        url: str | None,
        *,
        number: int = 1,
        sign_version: str = "v2",
        body_format: str = "json",
        payload: str = PAYLOAD,
        due_at: datetime | None = None,
    ) -> int:
        rows = await database.fetch(
            """
            insert into pingback (merchant_id, live, event, url, sign_version, key_id, format, payload, state, due_at,
                                  created_at)
            select $1, $2, 'payment', $3, $4, (select max(id) from merchant_key where merchant_id = $1), $5, $6,
                   case when $3::text is null then 'waiting' else 'due' end, $7, $7
              from generate_series(1, $8)
            returning id
            """,
            shop.merchant_id,
            shop.live,
            url,
            sign_version,
            body_format,
            payload,
            due_at or utc_now(),
            number,
        )
        return int(rows[-1]["id"])

    return add


async def eventually(condition: Callable[[], Any]) -> None:
    """Wait until something is true; the test run's own timeout ends a wait for what never comes."""
    while True:
        result = condition()
        if asyncio.iscoroutine(result):
            result = await result
        if result:
            return
        await asyncio.sleep(0.01)


@pytest.fixture(name="eventually")
def _eventually() -> Callable[[Callable[[], Any]], Awaitable[None]]:
    return eventually
