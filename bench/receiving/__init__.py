"""A shop's server, as light as it can be: it reads requests and answers each with `ok`.

A shop has a machine of its own, so what its server costs is not ours: where it shares two cores
with what is measured, one that does a framework's work for each request is a third of the load.
"""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from typing import cast
from urllib.parse import parse_qs

import httptools

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
_OK = _HEAD % (b"text/plain", 2, b"ok")


class Heard:
    """When requests were heard, on a clock that only goes on."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def one(self) -> None:
        """Note one."""
        self._times.append(time.monotonic())

    def seen(self, *, forget: bool) -> dict[str, float]:
        """How many, and the seconds from the first to the last; forgotten after that if asked."""
        seconds = self._times[-1] - self._times[0] if self._times else 0.0
        seen = {"count": len(self._times), "seconds": seconds}
        if forget:
            self._times.clear()
        return seen


class Receiver(asyncio.Protocol):
    """One connection: `ok` to all but what is asked below /hang, which gets no answer, and /seen,
    which tells what was heard.
    """

    def __init__(self, heard: Heard) -> None:
        self._heard = heard

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """A request begins."""
        self._url = url

    def on_message_complete(self) -> None:
        """A request is there as a whole."""
        if self._url.startswith(b"/hang"):
            return
        if self._url.startswith(b"/seen"):
            asked = parse_qs(httptools.parse_url(self._url).query or b"")
            seen = json.dumps(self._heard.seen(forget=asked.get(b"forget") == [b"1"])).encode()
            self._transport.write(_HEAD % (b"application/json", len(seen), seen))
            return
        self._heard.one()
        self._transport.write(_OK)


async def start_light() -> int:
    """Answer what is sent to a free port of this machine from now on; gives the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(receivers(), "127.0.0.1", 0, backlog=1024)
    return int(server.sockets[0].getsockname()[1])


def receivers() -> partial[Receiver]:
    """What makes the receivers of a server's connections."""
    return partial(Receiver, Heard())
