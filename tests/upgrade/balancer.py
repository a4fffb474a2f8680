"""A balancer in front of several web processes: each connection goes to the next one,
and answers are counted.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

_STATUS = re.compile(rb"^HTTP/1\.1 ([0-9]{3})")


class Balancer:
    """Sends connections to the ports of `behind` in turn;
    `answers` counts (name, status) of what came back.
    """

    def __init__(self) -> None:
        self.behind: dict[str, int] = {}
        self.answers: Counter[tuple[str, int]] = Counter()
        self._turns = 0
        self._connections: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        """Listen on loopback for the length of a block."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        try:
            yield
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    def answered(self, name: str) -> int:
        """How often one of them has answered."""
        return sum(count for (who, _), count in self.answers.items() if who == name)

    @property
    def failures(self) -> dict[tuple[str, int], int]:
        """Who answered with which status of 500 and above, and how often."""
        return {answer: count for answer, count in self.answers.items() if answer[1] >= 500}

    async def _connected(self, asked: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        self._turns += 1
        name, port = list(self.behind.items())[self._turns % len(self.behind)]
        with closing(answers), suppress(ConnectionError):
            back, forth = await asyncio.open_connection("127.0.0.1", port)
            asking = asyncio.create_task(self._pass_on(asked, forth))
            try:
                with closing(forth):
                    # Who has closed its end is answered still; when the service has closed its own,
                    # all is said.
                    await self._pass_on(back, answers, name)
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, name: str = "") -> None:
        """Pass on what comes until it ends; of answers each begins with its status in a piece
        of its own.
        """
        while data := await source.read(2**16):
            if name and (status := _STATUS.match(data)):
                self.answers[name, int(status[1])] += 1
            sink.write(data)
            await sink.drain()
        sink.write_eof()
