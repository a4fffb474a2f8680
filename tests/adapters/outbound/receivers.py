"""Servers of merchants on the loopback, a client for them, and names that a test answers for."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_network

from paydesk.adapters.outbound import Network, OutboundClient

LOOPBACK: tuple[Network, ...] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
Talk = Callable[[bytes, asyncio.StreamWriter], Awaitable[bool]]


class Names:
    """Answers each look-up with the next of `answers`, the last one again and again."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    async def close(self) -> None:
        pass


class Receiver:
    """A server that records whole requests and answers them with `talk`,
    which says whether to go on.
    """

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.connections = 0
        self.requests: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                if not await self.talk(self.requests[-1], writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def answering(*answers: bytes, go_on: bool = True) -> Talk:
    left = list(answers)

    async def talk(_request: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        await writer.drain()
        return go_on

    return talk


def response(body: bytes, *extra: str, status: str = "200 OK") -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *extra])
    return head.encode() + b"\r\n\r\n" + body


OK = response(b"ok")


@asynccontextmanager
async def receiving(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(talk)
    tasks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(receiver.serve(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def client(
    allow: Sequence[Network] = LOOPBACK,
    timeout: float = 15.0,
    *,
    resolver: Names | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[OutboundClient]:
    made = OutboundClient(allow, timeout, resolver=resolver, tls=tls)
    try:
        yield made
    finally:
        await made.close()
