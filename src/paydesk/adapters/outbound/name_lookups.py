"""Name look-ups in threads of their own.

The loop's own threads are few (four under uvloop) and shared: names on a dead name server would
keep everybody waiting.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

_THREADS = 32

_Found = Sequence[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]]


class NameResolver(AbstractResolver):
    """Ask the system's resolver; what it answers is checked when the connection is made,
    not here.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of `host`, in the system's order.

        Raises: OSError (gaierror) if there are none.
        """
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port, family)
        return [
            ResolveResult(
                hostname=host, host=str(address[0]), port=port, family=family, proto=proto, flags=socket.AI_NUMERICHOST
            )
            for family, _, proto, _, address in found
        ]

    async def close(self) -> None:
        """Let go of the threads; a look-up under way ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: socket.AddressFamily) -> _Found:
    """Ask the system (blocks, in a thread)."""
    return socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
