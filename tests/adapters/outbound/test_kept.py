from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network

import pytest

from paydesk.adapters.outbound import Bounds, OutboundClient, kept

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass
class Shop:
    """A server that answers together what is asked together, and counts its connections."""

    url: str = ""
    together: int = 1
    made: int = 0
    waiting: list[asyncio.StreamWriter] = field(default_factory=list)
    open: set[asyncio.StreamWriter] = field(default_factory=set)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.made += 1
        self.open.add(writer)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.waiting.append(writer)
                if len(self.waiting) == self.together:
                    for each in self.waiting:
                        each.write(OK)
                    self.waiting.clear()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.open.discard(writer)
            self.closed.set()
            writer.close()

    async def left(self, number: int) -> None:
        """Wait until so many connections are left."""
        while len(self.open) > number:
            self.closed.clear()
            await self.closed.wait()


@asynccontextmanager
async def shops(**bounds: int) -> AsyncIterator[tuple[Shop, OutboundClient]]:
    shop = Shop()
    server = await asyncio.start_server(shop.serve, "127.0.0.1", 0)
    shop.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    outbound = OutboundClient([ip_network("127.0.0.0/8")], keep=Bounds(**bounds))
    async with server:
        yield shop, outbound
        await outbound.close()
        await shop.left(0)


async def ask(shop: Shop, outbound: OutboundClient, *whose: int) -> None:
    """Ask once for each, all together."""
    shop.together = len(whose)
    answers = await asyncio.gather(*(outbound.post(shop.url, b"", {}, whose=each) for each in whose))
    assert [answer.error for answer in answers] == [None] * len(whose)


async def test_what_is_asked_together_needs_connections_and_then_no_more() -> None:
    async with shops() as (shop, outbound):
        for _ in range(3):
            await ask(shop, outbound, *[1] * 5)
        assert shop.made == 5


async def test_only_so_many_connections_of_one_are_kept() -> None:
    async with shops(each=2) as (shop, outbound):
        await ask(shop, outbound, *[1] * 5)
        await shop.left(2)
        await ask(shop, outbound, 2)
        assert len(shop.open) == 3


async def test_only_so_many_connections_are_kept_in_all_and_the_oldest_goes() -> None:
    async with shops(in_all=3) as (shop, outbound):
        for whose in range(5):
            await ask(shop, outbound, whose)
        await shop.left(3)
        await ask(shop, outbound, 4)
        assert shop.made == 5
        await ask(shop, outbound, 0)
        assert shop.made == 6


async def test_an_unused_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_IDLE_SECONDS", 0.05)
    async with shops() as (shop, outbound):
        await ask(shop, outbound, 1, 2, 3)
        await shop.left(0)


async def test_a_connection_that_has_waited_too_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shops() as (shop, outbound):
        await ask(shop, outbound, 1)
        monkeypatch.setattr(kept, "_IDLE_SECONDS", 0.0)
        await ask(shop, outbound, 1)
        assert shop.made == 2


async def test_a_connection_is_not_kept_for_ever_however_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with shops() as (shop, outbound):
        await ask(shop, outbound, 1)
        monkeypatch.setattr(kept, "_LONGEST_LIFE", 0.0)
        await ask(shop, outbound, 1)
        await ask(shop, outbound, 1)
        assert shop.made == 2
