"""Processes as a supervisor keeps them: whatever dies is started again at once,
and what it says is kept.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import random
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil

PATIENCE = 120.0
"""Seconds until something that must happen counts as not happening; nothing is measured by it."""


PORTS = range(12_000, 32_000)
"""Below those that systems give to outgoing connections:
one of these could come between us and our server."""

_reserved: list[IO[str]] = []


def free_port() -> int:
    """A port that nobody listens on, and that no other test run on this machine is given
    while we live.
    """
    folder = Path(tempfile.gettempdir(), f"paydesk-test-ports-{os.getuid()}")
    folder.mkdir(exist_ok=True)
    for port in random.sample(PORTS, len(PORTS)):
        ours = (folder / str(port)).open("w")
        try:
            fcntl.flock(ours, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            ours.close()
        else:
            _reserved.append(ours)
            return port
    raise AssertionError(f"no port is free in {PORTS}")


def environment(settings: Mapping[str, object]) -> dict[str, str]:
    """Our environment with these PAYDESK_ settings and no others."""
    # Starting is most of the work here, and what is not buffered mixes the lines of processes that
    # share a pipe.
    unwanted = ("PAYDESK_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return clean | {f"PAYDESK_{name}": str(value) for name, value in settings.items()}


async def eventually(condition: Callable[[], bool], what: str, *said: Callable[[], str]) -> None:
    """Wait for what must come, in whatever time a busy machine takes;
    `said` gives what processes said last.
    """
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 (processes send no event)
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError("\n".join([f"it never came to this: {what}", *(tail() for tail in said)])) from None


class Kept:
    """A command that is kept running until it is stopped;
    `ready` holds the pids that said so and were not killed.
    """

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], ready_event: str) -> None:
        self.name = name
        self.lines: list[str] = []
        self.ready: list[int] = []
        self.starts = 0
        self._command = command
        self._env = env
        self._ready_event = ready_event
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopping = False
        self._listening: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int:
        """The process that we started, the parent of all others."""
        assert self._process is not None
        return self._process.pid

    @property
    def events(self) -> list[dict[str, Any]]:
        """The log lines that are JSON."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Kept]:
        """Keep it running for the length of a block; stop() before its end, or it is killed."""
        keeping = asyncio.create_task(self._keep())
        try:
            yield self
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            self._kill_group()
            await asyncio.gather(*self._listening, return_exceptions=True)

    async def stop(self) -> int:
        """Ask it to end, and return its exit status."""
        assert self._process is not None
        self._is_stopping = True
        self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._process.wait()
        except TimeoutError:
            raise AssertionError(f"{self.name} does not stop when it is asked to:\n{self.tail()}") from None

    def kill(self, pid: int) -> None:
        """Kill one of its processes; it need not know."""
        with suppress(ValueError):
            self.ready.remove(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def kill_all(self) -> None:
        """Kill the process that we started with all that it started."""
        self.ready.clear()
        self._kill_group()

    def descendants(self) -> list[psutil.Process]:
        """The processes that it started."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def tail(self) -> str:
        """What it said last, for messages."""
        return "\n".join(self.lines[-40:])

    async def _keep(self) -> None:
        while not self._is_stopping:
            self.starts += 1
            process = await asyncio.create_subprocess_exec(
                *self._command, env=self._env, stderr=asyncio.subprocess.PIPE, start_new_session=True, limit=2**20
            )
            self._process = process
            assert process.stderr is not None
            listening = asyncio.create_task(self._listen(process.pid, process.stderr))
            self._listening.add(listening)
            await process.wait()
            # Its children hold the pipe too, so the listener goes on for as long as one of
            # them lives.
            await asyncio.sleep(0.05)

    async def _listen(self, pid: int, said: asyncio.StreamReader) -> None:
        async for raw in said:
            line = raw.decode(errors="replace").rstrip()
            self.lines.append(line)
            if f'"event": "{self._ready_event}"' in line:
                self.ready.append(json.loads(line).get("pid", pid))

    def _kill_group(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


def words_of(process: psutil.Process) -> list[str]:
    """The command of a process; none of one that has ended meanwhile."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def lives(process: psutil.Process) -> bool:
    """Whether a process is still there."""
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
