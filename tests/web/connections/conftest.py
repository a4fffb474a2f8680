"""A service on the event loop of production, in a thread of its own,
to which tests speak over raw sockets.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import uvicorn
import uvloop
from prometheus_client import REGISTRY
from tests.processes import PATIENCE

from paydesk.commands.serving import EmbeddedUvicorn
from paydesk.commands.starting import listen
from paydesk.web.connections.limits import ConnectionLimits
from paydesk.web.connections.open import OpenConnections
from paydesk.web.connections.protocol import LimitedProtocol

LONG = 3600.0
SURELY_HEARD = 1000
"""Bytes that are read of whatever comes."""
PATIENT = ConnectionLimits(head_seconds=LONG, body_seconds=LONG, unread_seconds=LONG, in_all=1000, per_address=1000)
GET = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


class Service:
    """A service within limits, and what became of its requests;
    `/hold` answers when `let_go` is set.

    The time of its connections stands still until it has heard what it was just told: a busy
    machine may take longer to tell it than somebody who is slow gets.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.connections = OpenConnections(limits, clock=self._clock)
        self.heard = 0
        """Bytes that have come."""
        self._told = 0
        self._stands_at = time.monotonic()
        self.port = 0
        self.end: Callable[[], None] = lambda: None
        self.seen: list[Any] = []
        self.let_go = threading.Event()
        self.broke_off = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(scope)
        if scope["path"] == "/hold":
            await asyncio.to_thread(self.let_go.wait, PATIENCE)
        if scope["path"] == "/large":
            await self._send_for_ever(receive, send)
            return
        body = await self._body(receive) if scope["method"] == "POST" and scope["path"] != "/deaf" else b""
        if body is not None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"%d bytes at %s" % (len(body), scope["raw_path"])})

    async def _body(self, receive: Any) -> bytes | None:
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.broke_off.set()
                return None
            body += bytes(message["body"])
            if not message["more_body"]:
                return body

    async def _send_for_ever(self, receive: Any, send: Any) -> None:
        await receive()
        leaving = asyncio.create_task(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not leaving.done():
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        self.broke_off.set()

    def _clock(self) -> float:
        if self.heard >= self._told:
            self._stands_at = time.monotonic()
        return self._stands_at

    async def told(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection over which something is said."""
        # What is refused for its size is not heard to its end.
        self._told = max(self._told, self.heard) + min(len(data), SURELY_HEARD)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        return reader, writer

    async def ask(self, data: bytes) -> bytes:
        """All that the service says to these bytes until it ends the connection."""
        reader, writer = await self.told(data)
        try:
            return await said(reader)
        finally:
            writer.close()

    async def serves(self) -> bool:
        """Whether it answers somebody else."""
        answer = await self.ask(b"GET /else HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return answer.startswith(b"HTTP/1.1 200") and b"/else" in answer


async def said(reader: asyncio.StreamReader) -> bytes:
    """All until the end of the connection, however it ends."""
    heard = b""
    async with asyncio.timeout(PATIENCE):
        try:
            while part := await reader.read(65536):
                heard += part
        except ConnectionResetError:
            pass
    return heard


class Hearing(LimitedProtocol):
    """A connection that counts what its service hears."""

    def __init__(self, service: Service, **given: Any) -> None:
        super().__init__(service.connections, **given)
        self._service = service

    def data_received(self, data: bytes) -> None:
        self._service.heard += len(data)
        super().data_received(data)


Serve = Callable[..., Service]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a service within some limits, patient ones unless they are given."""
    running = []

    def start(*, idle_seconds: int = 3600, grace: int = 1, **given: Any) -> Service:
        service = Service(replace(PATIENT, **given))
        config = uvicorn.Config(
            service,
            http=partial(Hearing, service),  # type: ignore[arg-type]
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_keep_alive=idle_seconds,
            timeout_graceful_shutdown=grace,
        )
        listener = listen("127.0.0.1", 0, "PORT")
        service.port = listener.getsockname()[1]
        server = EmbeddedUvicorn(config)
        thread = threading.Thread(target=lambda: uvloop.run(server.serve([listener])), daemon=True)
        thread.start()

        def end() -> None:
            server.should_exit = True

        service.end = end
        running.append((service, server, thread))
        return service

    yield start
    for service, server, thread in running:
        service.let_go.set()
        server.should_exit = True
        thread.join(PATIENCE)


@asynccontextmanager
async def connected(service: Service, data: bytes = b"") -> AsyncIterator[tuple[Any, Any]]:
    """A connection over which something has been said."""
    reader, writer = await service.told(data)
    try:
        yield reader, writer
    finally:
        writer.close()


def refused(why: str) -> float:
    return REGISTRY.get_sample_value("paydesk_connections_refused_total", {"why": why}) or 0.0


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])
