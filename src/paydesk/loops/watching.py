"""Watching over an event loop from a thread beside it, which sees what the loop itself can't:
that it stands still.

The loop in its turn sees that a background loop hangs, and then shows no heartbeat either.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from types import FrameType

import structlog

from paydesk.core.clock import utc_now
from paydesk.loops.hanging import Turning, hanging
from paydesk.loops.metrics import HEARTBEAT, LAG
from paydesk.loops.repeating import repeat
from paydesk.loops.systemd import Notifier

INTERVAL = 1.0
"""Seconds between two heartbeats, and between two looks at them."""

STILL = 30.0
"""Seconds after which what shows no heartbeat stands still."""

log = structlog.get_logger()


class Stillness:
    """For how long something has shown no new heartbeat,
    as seen by one who looks every `interval` seconds.

    Only time counts in which the one who looks was on time: after a machine slept, both were late.
    """

    def __init__(self, interval: float) -> None:
        self._most = 2 * interval
        self._seen: Hashable = None
        self._looked: float | None = None
        self.seconds = 0.0

    def look(self, beats: Hashable, at: float) -> float:
        """Look at a count of heartbeats at a monotonic time;
        returns for how many seconds it has stood still.
        """
        passed = 0.0 if self._looked is None else at - self._looked
        self._looked = at
        self.seconds = 0.0 if beats != self._seen else self.seconds + min(passed, self._most)
        self._seen = beats
        return self.seconds


class Lag:
    """How late an event loop comes to what another thread asks of it;
    one question at a time is open.
    """

    def __init__(self, process: str, loop: asyncio.AbstractEventLoop) -> None:
        self._process = process
        self._loop = loop
        self._is_asked = False

    def ask(self) -> None:
        """Ask the loop to say when it comes to this, unless it has not answered the last time;
        from any thread.
        """
        if self._is_asked or self._loop.is_closed():
            return
        self._is_asked = True
        self._loop.call_soon_threadsafe(self._answer, time.monotonic())

    def _answer(self, asked: float) -> None:
        self._is_asked = False
        LAG.labels(self._process).observe(time.monotonic() - asked)


def _nothing() -> None:
    """What is done by default."""


class Watchdog(threading.Thread):
    """Looks at a count of heartbeats; says that they come (metric, systemd), and once if they don't
    (log, with stacks).

    `on_still` is called after that, here in the thread, and `on_look` at each look, to measure what
    the loop can't. A count of 0, or nothing at all, is no heartbeat yet.
    """

    def __init__(
        self,
        process: str,
        beats: Callable[[], Hashable],
        *,
        notifier: Notifier | None = None,
        interval: float = INTERVAL,
        patience: float = STILL,
        on_still: Callable[[], None] = _nothing,
        on_look: Callable[[], None] = _nothing,
    ) -> None:
        super().__init__(name=f"watchdog of {process}", daemon=True)
        self._process = process
        self._beats = beats
        self._notifier = notifier
        self._interval = min(interval, notifier.interval) if notifier else interval
        self._patience = patience
        self._on_still = on_still
        self._on_look = on_look
        self._ended = threading.Event()
        self._stillness = Stillness(self._interval)
        self._seen: Hashable = None
        self._is_told = False

    def run(self) -> None:
        """Look again and again until told to end."""
        is_ended = False
        while not is_ended:
            try:
                self._look()
                self._on_look()
            except Exception:
                # Without this thread nobody would be told that all is well, and the service would
                # be ended for it.
                log.exception("a look at heartbeats failed", process=self._process)
            is_ended = self._ended.wait(self._interval)

    def _look(self) -> None:
        """Look at the heartbeats once."""
        beats = self._beats() or None
        if beats != self._seen:
            self._moved(beats, first=self._seen is None)
        self._seen = beats
        stood = self._stillness.look(beats, time.monotonic())
        if self._is_told and not stood:
            self._is_told = False
            log.warning("the event loop goes on", process=self._process)
        elif stood >= self._patience and not self._is_told:
            self._is_told = True
            # The thread that stands still may hold the log's lock: saying so must not stop this
            # one too.
            threading.Thread(target=self._tell, args=(stood, stacks()), daemon=True).start()
            self._on_still()

    def end(self) -> None:
        """Stop looking."""
        self._ended.set()
        if self._notifier is not None:
            self._notifier.say("STOPPING=1")
        self.join()

    def _moved(self, beats: Hashable, *, first: bool) -> None:
        """There is a new heartbeat."""
        if beats is None:
            return
        HEARTBEAT.labels(self._process).set(utc_now().timestamp())
        if self._notifier is not None:
            self._notifier.say(*(["READY=1"] if first else []), "WATCHDOG=1")

    def _tell(self, stood: float, where: str) -> None:
        log.error("the event loop stands still", process=self._process, seconds=round(stood), stacks=where)


def _tell_of(stuck: Iterable[Turning], told: set[Turning]) -> None:
    """Log each turn that hangs, once, with the place where it waits."""
    for turn in set(stuck) - told:
        log.error("a background loop hangs: its process is to be started again", loop=turn.loop, place=turn.place)
        told.add(turn)


def stacks() -> str:
    """Where each other thread of this process is; places in the source, no values."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in _frames().items()
        if ident != threading.get_ident()
    )


def _frames() -> dict[int, FrameType]:
    """Where each thread is, asked while no garbage is collected.

    Meanwhile the interpreter lets no thread begin or end; what a collection calls may wait for one,
    and all would wait for ever (CPython's gh-106883, which not all of its releases have mended).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if collects:
            gc.enable()


@asynccontextmanager
async def watched(
    process: str,
    *,
    notifier: Notifier | None = None,
    interval: float = INTERVAL,
    patience: float = STILL,
    on_beat: Callable[[], None] = _nothing,
    on_still: Callable[[], None] = _nothing,
    on_look: Callable[[], None] = _nothing,
) -> AsyncIterator[None]:
    """Have this event loop watched for the length of a block, and measured how late it comes
    to what is to be done.

    While a background loop of this process hangs there is no heartbeat. `on_beat` is called at
    each, in the loop; `on_still` and `on_look` in the thread that watches.
    """
    beats, stop, lag = [0], asyncio.Event(), Lag(process, asyncio.get_running_loop())
    told = set[Turning]()
    interval = min(interval, notifier.interval) if notifier else interval

    async def beat() -> None:
        if stuck := hanging():
            _tell_of(stuck, told)
            return
        beats[0] += 1
        on_beat()

    def look() -> None:
        lag.ask()
        on_look()

    await beat()
    watchdog = Watchdog(
        process,
        lambda: beats[0],
        notifier=notifier,
        interval=interval,
        patience=patience,
        on_still=on_still,
        on_look=look,
    )
    beating = asyncio.create_task(repeat(f"heartbeat of {process}", beat, stop, rest=interval / 2, beats=False))
    watchdog.start()
    try:
        yield
    finally:
        await asyncio.to_thread(watchdog.end)
        stop.set()
        await beating
