"""The one way to write what runs in the background: do, rest, be woken, be stopped.

Whatever a turn does, or fails to await, everything else in the process gets its own turn after it:
no loop can go round without giving way. A turn that fails is logged and tried again after a pause
that grows; it never ends the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

import structlog

from paydesk.core.clock import utc_now
from paydesk.loops.hanging import PATIENCE, under_way
from paydesk.loops.metrics import FAILURES, LAST_TURN

BREATH = 0.001
"""Seconds between two turns at least: a real pause, in which the event loop sees to connections
and timers."""

_FIRST_PAUSE, _LONGEST_PAUSE = (0.1, 1.0), 8.0
"""Seconds after the first failure, by the loop's own rest within these bounds;
and how far they grow by doubling."""

_HELD = 0.1
"""Seconds until a loop that may not work looks whether it may again."""

_A_FAULT = 6
"""Failures in a row that are no restart of a database any more: the last is logged as an error,
with its place."""

Turn = Callable[[], Awaitable[bool | None]]
"""One turn of a loop; true says that there is more to do at once."""

Rest = float | Callable[[], float]
"""Seconds between two turns, or what says after each turn how many."""

log = structlog.get_logger()


_outages: list[Callable[[BaseException], bool]] = []


def take_for_outage(judge: Callable[[BaseException], bool]) -> None:
    """Have failures of which `judge` is true be logged without their place:
    all loops fail alike while it is away.
    """
    _outages.append(judge)


_held: ContextVar[Callable[[], bool]] = ContextVar("held", default=lambda: False)


@contextmanager
def due_work_held(held: Callable[[], bool]) -> Iterator[None]:
    """Let loops of due work that are begun within a block take no turn while `held()` says so."""
    before = _held.set(held)
    try:
        yield
    finally:
        _held.reset(before)


async def repeat(
    name: str,
    turn: Turn,
    stop: asyncio.Event,
    *,
    rest: Rest,
    wake: asyncio.Event | None = None,
    beats: bool = True,
    due: bool = False,
    patience: float = PATIENCE,
) -> None:
    """Take turns until `stop` is set; `rest` is the pause in seconds after a turn
    that found nothing more to do.

    `wake` ends a rest early (not the pause after a failure); it is cleared before the turn that it
    leads to. The time of the last turn is a metric under `name`, unless `beats` is false. `due`
    says that it does what is due by this process's clock, which may be held (`due_work_held`). A
    turn that takes more than `patience` seconds hangs: the process no longer counts as alive
    (`watched`), and whoever looks after it starts another.
    """
    failures, bells = 0, _Bells()
    held = _held.get() if due else (lambda: False)
    try:
        while not stop.is_set():
            if wake is not None:
                wake.clear()
            try:
                with under_way(name, patience):
                    pause = _HELD if held() else BREATH if await turn() else _seconds(rest)
                failures = 0
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                failures += 1
                pause = _failed(name, error, failures, _seconds(rest))
            except Exception as error:
                failures += 1
                pause = _failed(name, error, failures, _seconds(rest))
            if beats:
                LAST_TURN.labels(name).set(utc_now().timestamp())
            await _rest(pause, bells, stop, None if failures else wake)
    finally:
        bells.stop()


@asynccontextmanager
async def renewed(name: str, renew: Turn, *, every: float) -> AsyncIterator[None]:
    """Renew something every so many seconds for the length of a block:
    a lease on what the block does.
    """

    async def renew_until_cancelled() -> None:
        await asyncio.sleep(every)
        await repeat(name, renew, asyncio.Event(), rest=every, beats=False)

    renewing = asyncio.create_task(renew_until_cancelled())
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


def _is_cancelled() -> bool:
    """Whether this task is to end: something that a turn waits for may also have been cancelled
    by itself.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failed(name: str, error: BaseException, failures: int, rest: float) -> float:
    """Log a turn that failed; returns how many seconds to wait until the next."""
    FAILURES.labels(name).inc()
    least, most = _FIRST_PAUSE
    pause = min(min(max(rest, least), most) * 2.0 ** min(failures - 1, 30), max(rest, _LONGEST_PAUSE))
    why = f"{type(error).__name__}: {error}"
    if failures == _A_FAULT:
        place = None if any(judge(error) for judge in _outages) else error
        log.error("a background loop keeps failing", loop=name, why=why, failures=failures, exc_info=place)
    else:
        log.warning("a background loop will try again", loop=name, why=why, failures=failures, in_seconds=pause)
    return pause


def _seconds(rest: Rest) -> float:
    return rest() if callable(rest) else rest


class _Bells:
    """Events that end a rest early; whoever waits for one goes on doing so until it is set:
    making that anew for each rest cost a tenth of what an idle worker does.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Event, asyncio.Task[object]] = {}

    async def wait(self, seconds: float, *events: asyncio.Event) -> None:
        """Wait until one of them is set, so many seconds at most."""
        waiting = [self._task(event) for event in events]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    def stop(self) -> None:
        """Wait no more."""
        for task in self._waiting.values():
            task.cancel()

    def _task(self, event: asyncio.Event) -> asyncio.Task[object]:
        task = self._waiting.get(event)
        # It may have been set, and cleared since.
        if task is None or (task.done() and not event.is_set()):
            task = self._waiting[event] = asyncio.create_task(event.wait())
        return task


async def _rest(seconds: float, bells: _Bells, stop: asyncio.Event, wake: asyncio.Event | None) -> None:
    """Wait so long, until woken or until told to stop; others get their turn in any case."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    if seconds > BREATH:
        await bells.wait(seconds, *(event for event in (stop, wake) if event is not None))
    if (left := began + BREATH - loop.time()) > 0:
        await asyncio.sleep(left)
