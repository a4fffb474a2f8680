"""Keeping processes of our own alive: started again when they die,
or when their heartbeat stands still.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from paydesk.core.errors import SetupError
from paydesk.loops.metrics import STARTS
from paydesk.loops.repeating import repeat
from paydesk.loops.watching import INTERVAL, STILL, Stillness

GRACE = 30
"""Seconds that requests under way get to finish when a service stops."""

READY, BEAT = b"R", b"."
"""What a process says on its channel: once that it is ready, and then at each heartbeat
of its event loop."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: between looks, until a heartbeat that stands is an end, to start, to end when asked;
    and of a good life.

    A process that lived less than `good_life` is started again after a pause that doubles, up to
    `longest_pause`.
    """

    interval: float = INTERVAL
    still: float = STILL
    start: float = 120.0
    end: float = 10.0
    good_life: float = 60.0
    longest_pause: float = 30.0


class Process:
    """A process of ours and its channel: a heartbeat comes from it,
    and it ends when the channel does.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        files: Sequence[int] = (),
        patience: Patience | None = None,
    ) -> None:
        """`command` gets the channel's number as its last argument;
        `files` are descriptors that it inherits.
        """
        self.name = name
        self.ready = asyncio.Event()
        self._command = command
        self._environment = environment
        self._files = files
        self._patience = patience or Patience()
        self._running: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._moved = asyncio.Event()
        self._beats = 0
        self._stillness = Stillness(self._patience.interval)
        self._started_at = self._start_at = 0.0
        self._quick_ends = 0
        self._asked: Stillness | None = None

    @property
    def pid(self) -> int | None:
        """The process's id while it runs."""
        return self._running.pid if self._running is not None else None

    async def keep(self, stop: asyncio.Event) -> None:
        """Keep it running until told to stop; end() it then.

        Raises: SetupError if it ends before it was ever ready: it has said why.
        """
        failed = asyncio.Event()

        async def look() -> None:
            if self._running is None:
                self._start()
            elif self._running.poll() is None:
                self._judge(self._running)
            elif self.ready.is_set():
                self._over(self._running.returncode)
            else:
                failed.set()

        looking = asyncio.create_task(
            repeat(f"keeper of {self.name}", look, stop, rest=self._patience.interval, wake=self._moved)
        )
        failing = asyncio.create_task(failed.wait())
        try:
            await asyncio.wait((looking, failing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (looking, failing):
                task.cancel()
            await asyncio.gather(looking, failing, return_exceptions=True)
        if failed.is_set():
            raise SetupError(f"the {self.name} process did not start")

    async def end(self, patience: float) -> None:
        """End it: gently, and after so many seconds for sure."""
        running = self._running
        if running is None:
            return
        running.terminate()
        try:
            await asyncio.to_thread(running.wait, patience)
        except subprocess.TimeoutExpired:
            log.error("a process does not end when it is asked to; it is killed", process=self.name, pid=running.pid)
            running.kill()
            await asyncio.to_thread(running.wait)
        self._let_go()

    def _start(self) -> None:
        """Start it, if its time has come."""
        now = time.monotonic()
        if now < self._start_at:
            return
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            self._running = subprocess.Popen(  # noqa: S603 (our own command)
                [*self._command, str(theirs.fileno())],
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                pass_fds=(*self._files, theirs.fileno()),
                # Ctrl-C in our terminal reaches us alone; we end the others in their order.
                start_new_session=True,
            )
        self._channel = ours
        asyncio.get_running_loop().add_reader(ours, self._hear, ours)
        self._started_at, self._asked = now, None
        self._beats, self._stillness = 0, Stillness(self._patience.interval)
        STARTS.labels(self.name).inc()
        log.info("a process was started", process=self.name, pid=self._running.pid)

    def _hear(self, channel: socket.socket) -> None:
        """Take what it says; its silence for good means that it has ended, or will."""
        with suppress(BlockingIOError, ConnectionError):
            said = channel.recv(4096)
            if said:
                self._beats += len(said)
                if READY in said:
                    self.ready.set()
                return
        asyncio.get_running_loop().remove_reader(channel)
        self._moved.set()

    def _judge(self, running: subprocess.Popen[bytes]) -> None:
        """End it if its heartbeat stands still: gently first, then for sure."""
        stood = self._stillness.look(self._beats, time.monotonic())
        if self._asked is not None:
            if self._asked.look(True, time.monotonic()) >= self._patience.end:
                log.error("a process that stands still does not end; it is killed", process=self.name, pid=running.pid)
                running.kill()
        elif stood >= (self._patience.still if self._beats else self._patience.start):
            log.error(
                "a process stands still; it is started again", process=self.name, pid=running.pid, seconds=round(stood)
            )
            running.terminate()
            self._asked = Stillness(self._patience.interval)

    def _over(self, status: int) -> None:
        """It has ended by itself: let it be started again, later and later if it never lives
        for long.
        """
        now = time.monotonic()
        self._quick_ends = 0 if now - self._started_at >= self._patience.good_life else self._quick_ends + 1
        # The first end is mended at once; who ends again and again gets a pause.
        pause = min(2.0 ** (self._quick_ends - 2), self._patience.longest_pause) if self._quick_ends > 1 else 0.0
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        log.error("a process has ended; it is started again", process=self.name, ended=how, in_seconds=pause)
        self._let_go()
        self._start_at = now + pause
        self._moved.set()

    def _let_go(self) -> None:
        """Forget a process that has ended."""
        if self._channel is not None:
            asyncio.get_running_loop().remove_reader(self._channel)
            self._channel.close()
        self._channel = self._running = None


class Channel:
    """The other end, in the process that is kept:
    it says that it lives, and hears when its parent does no more.
    """

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        os.set_inheritable(descriptor, False)

    def say(self, word: bytes) -> None:
        """Say READY or BEAT; a parent that does not listen stops nobody."""
        with suppress(OSError):
            self._socket.send(word, socket.MSG_DONTWAIT)

    def beat(self) -> None:
        """Say that the event loop goes round."""
        self.say(BEAT)

    def wait_for_the_end(self) -> None:
        """Return when the parent is gone; in a thread, so that it is noticed whatever the event
        loop does.
        """
        with suppress(OSError):
            while self._socket.recv(64):
                pass
