"""Head and body of an answer in one write: each is a call of the kernel, which wakes the client."""

from __future__ import annotations

import asyncio
from typing import Any

LARGEST = 64 * 1024
"""So many bytes are not kept until more follows."""


class JoinedWrites:
    """A transport that writes once what came within one turn of the event loop, in its order.

    All else is the transport's own; what ends a connection in good order is done after what was
    written before.
    """

    __slots__ = ("_kept", "_loop", "_size", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._kept: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write it with what follows at once."""
        if not data:
            return
        if not self._kept:
            self._loop.call_soon(self._flush)
        self._kept.append(data)
        self._size += len(data)
        if self._size >= LARGEST:
            self._flush()

    def write_eof(self) -> None:
        """Say that nothing follows what was written."""
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        """End the connection once all that was written is sent."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if not self._kept:
            return
        joined = self._kept[0] if len(self._kept) == 1 else b"".join(self._kept)
        self._kept.clear()
        self._size = 0
        if not self._transport.is_closing():
            self._transport.write(joined)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
