"""Name look-ups in threads of their own, remembered for a few seconds.

The loop's own threads are few (four under uvloop) and shared: names on a dead name server would
keep everybody waiting.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

_THREADS = 32

_KNOWN_SECONDS = 10.0
_MOST_KNOWN = 1024

_Found = Sequence[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[object, ...]]]


class Resolver(Protocol):
    """Finds addresses; they are checked when a connection is made, not here."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of `host`. Raises: OSError (gaierror) if there are none."""

    async def close(self) -> None:
        """Let go of what it works with."""


class NameResolver:
    """Asks the system's resolver."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="names")

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of `host`, in the system's order.

        Raises: OSError (gaierror) if there are none.
        """
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port)
        return [str(address[0]) for *_, address in found]

    async def close(self) -> None:
        """Let go of the threads; a look-up under way ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class KnownNames:
    """Asks a resolver, once for all who want to know the same, and remembers what it said."""

    def __init__(self, resolver: Resolver | None = None) -> None:
        self._resolver = resolver
        self._known: dict[tuple[str, int], tuple[float, Sequence[str]]] = {}
        self._asking: dict[tuple[str, int], asyncio.Future[Sequence[str]]] = {}

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of `host`. Raises: OSError (gaierror) if there are none."""
        until, addresses = self._known.get((host, port), (0.0, ()))
        if time.monotonic() < until:
            return addresses
        asking = self._asking.get((host, port))
        if asking is None:
            self._resolver = self._resolver or NameResolver()
            asking = asyncio.ensure_future(self._resolver.resolve(host, port))
            self._asking[host, port] = asking
            asking.add_done_callback(lambda done: self._learn(host, port, done))
        # Who gives up takes nobody along who still waits.
        return await asyncio.shield(asking)

    async def close(self) -> None:
        """Ask no more."""
        for asking in list(self._asking.values()):
            asking.cancel()
        if self._resolver is not None:
            await self._resolver.close()

    def _learn(self, host: str, port: int, done: asyncio.Future[Sequence[str]]) -> None:
        """Remember an answer for a while; a failure is asked about again."""
        self._asking.pop((host, port), None)
        if done.cancelled() or done.exception() is not None:
            return
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[host, port] = (time.monotonic() + _KNOWN_SECONDS, done.result())


def _look_up(host: str, port: int) -> _Found:
    """Ask the system (blocks, in a thread)."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
