"""The operator's clerk, who sends merchants their money and writes down by command
that it was sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count

from tests.processes import PATIENCE


class Clerk:
    """Gives commands to a program that runs each in a process of its own;
    it starts with the first one.
    """

    def __init__(self, program: Sequence[str], env: Mapping[str, str]) -> None:
        self._program = program
        self._env = env
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[int]] = {}

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Clerk]:
        """At work for the length of a block."""
        try:
            yield self
        finally:
            if self._process is not None and self._listening is not None:
                self._listening.cancel()
                await asyncio.gather(self._listening, return_exceptions=True)
                with suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()

    async def command(self, *words: str) -> int:
        """The exit status of a command; who was killed never answers."""
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._program, env=self._env, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            self._listening = asyncio.create_task(self._listen(self._process))
        assert self._process.stdin is not None
        number = next(self._numbers)
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._process.stdin.write(json.dumps([number, words]).encode() + b"\n")
        try:
            async with asyncio.timeout(PATIENCE):
                return await answer
        except TimeoutError:
            raise AssertionError(f"the clerk never answered: {' '.join(words)}") from None

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            number, status = json.loads(line)
            if not self._asked[number].done():
                self._asked[number].set_result(status)
