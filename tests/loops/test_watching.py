"""A thread beside an event loop sees that it stands still,
and tells whoever watches over the service.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from paydesk.loops.repeating import repeat
from paydesk.loops.systemd import Notifier, service_manager
from paydesk.loops.watching import Lag, Stillness, stacks, watched

QUICK: dict[str, Any] = {"interval": 0.01, "patience": 0.1}
PATIENCE = 60.0
"""Seconds until what must happen counts as not happening."""


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A service manager's socket; nobody waits longer than a minute for what must come."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(PATIENCE)
        yield listening


def said(manager: socket.socket) -> str:
    return manager.recv(1024).decode()


def all_said(manager: socket.socket) -> list[str]:
    """What was said until now."""
    manager.setblocking(False)
    words = list[str]()
    try:
        for _ in range(10_000):
            words.append(said(manager))
    except BlockingIOError:
        return words
    finally:
        manager.settimeout(PATIENCE)
    raise AssertionError("a watchdog that never rests")


def is_alive(process: str) -> bool:
    """Whether it has shown a heartbeat."""
    return REGISTRY.get_sample_value("paydesk_heartbeat_timestamp_seconds", {"process": process}) is not None


def heartbeat(process: str) -> float:
    value = REGISTRY.get_sample_value("paydesk_heartbeat_timestamp_seconds", {"process": process})
    assert value is not None
    return value


def test_what_shows_no_new_heartbeat_stands_still_for_as_long_as_somebody_looked() -> None:
    stillness = Stillness(1.0)
    looks = [(1, 0.0), (2, 1.0), (2, 2.0), (2, 3.5), (3, 4.5), (3, 5.5)]
    assert [stillness.look(*look) for look in looks] == [0, 0, 1, 2.5, 0, 1]


def test_one_who_was_late_himself_blames_nobody() -> None:
    stillness = Stillness(1.0)
    assert [stillness.look(7, at) for at in (0.0, 1.0, 3601.0, 3602.0)] == [0, 1, 3, 4]


async def test_a_loop_that_is_blocked_is_told_with_its_place_and_that_it_goes_on() -> None:
    noticed = threading.Event()

    def this_blocks_the_loop() -> None:
        noticed.wait(1.0)

    with capture_logs() as logs:
        async with watched("blocked", on_still=noticed.set, **QUICK), asyncio.timeout(PATIENCE):
            # A busy machine may have kept the loop still before, which is told once.
            while not any("this_blocks_the_loop" in line.get("stacks", "") for line in list(logs)):
                noticed.clear()
                await asyncio.sleep(0.01)
                this_blocks_the_loop()
            before = heartbeat("blocked")
            while heartbeat("blocked") <= before or not any("goes on" in one["event"] for one in logs):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    told = {line["event"]: line for line in logs}
    assert set(told) == {"the event loop stands still", "the event loop goes on"}
    assert told["the event loop stands still"]["log_level"] == "error"


def test_nothing_is_collected_while_the_interpreter_says_where_threads_are() -> None:
    """What a collection calls may wait for a thread to begin or end, which waits for the answer."""
    asked, collected = list[bool](), list[bool]()

    def called(_frame: object, event: str, what: object) -> None:
        if what is sys._current_frames:
            asked.append(event == "c_call")

    def collecting(_phase: str, _info: dict[str, int]) -> None:
        collected.append(asked[-1:] == [True])

    thresholds = gc.get_threshold()
    gc.callbacks.append(collecting)
    gc.set_threshold(1)
    sys.setprofile(called)
    try:
        stacks()
    finally:
        sys.setprofile(None)
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(collecting)
    assert asked == [True, False]
    assert collected, "it was tried"
    assert not any(collected)
    assert gc.isenabled()


async def test_a_service_manager_hears_of_a_loop_while_it_goes_round_and_only_then(manager: socket.socket) -> None:
    looks = SimpleQueue[None]()

    def is_looked_at(times: int) -> None:
        """The loop is blocked for so many looks."""
        while not looks.empty():
            looks.get()
        for _ in range(times):
            looks.get(timeout=PATIENCE)

    notifier = Notifier(manager.getsockname(), interval=0.01)
    async with watched("notifying", notifier=notifier, on_look=lambda: looks.put(None), **QUICK):
        assert said(manager) == "READY=1\nWATCHDOG=1"
        assert await asyncio.to_thread(said, manager) == "WATCHDOG=1"
        is_looked_at(2)
        all_said(manager)
        is_looked_at(10)
        assert all_said(manager) == []
        assert await asyncio.to_thread(said, manager) == "WATCHDOG=1"
    assert all_said(manager)[-1] == "STOPPING=1"


async def test_a_service_manager_hears_nothing_more_of_a_process_in_which_a_background_loop_hangs(
    manager: socket.socket,
) -> None:
    released, stop = asyncio.Event(), asyncio.Event()

    async def wait_for_an_answer() -> None:
        await released.wait()

    notifier = Notifier(manager.getsockname(), interval=0.01)
    with capture_logs() as logs:
        async with watched("hanging", notifier=notifier, **QUICK):
            assert said(manager) == "READY=1\nWATCHDOG=1"
            loop = asyncio.create_task(repeat("of a test", wait_for_an_answer, stop, rest=0.0, patience=0.05))
            await until(lambda: any(line["event"].startswith("a background loop hangs") for line in logs))
            all_said(manager)
            await asyncio.sleep(0.3)
            assert len(all_said(manager)) <= 1, "who looks may be late for the last beat before it"
            released.set()
            assert await asyncio.to_thread(said, manager) == "WATCHDOG=1", "it has ended its turn after all"
            stop.set()
            await loop
    (told,) = [line for line in logs if line["event"].startswith("a background loop hangs")]
    assert (told["loop"], told["log_level"]) == ("of a test", "error")
    assert "wait_for_an_answer" in told["place"]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 (a log sends no event)
            await asyncio.sleep(0.01)


async def test_a_service_manager_that_does_not_listen_is_no_matter(tmp_path: Path) -> None:
    async with watched("alone", notifier=Notifier(str(tmp_path / "nobody"), interval=0.01), **QUICK):
        await asyncio.sleep(0)


def test_a_service_manager_is_known_by_the_environment_that_children_do_not_inherit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    assert service_manager() is None
    monkeypatch.setenv("NOTIFY_SOCKET", "@paydesk")
    monkeypatch.setenv("WATCHDOG_USEC", "60000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert service_manager() == Notifier("@paydesk", interval=20.0)
    assert service_manager() is None
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/notify")
    monkeypatch.setenv("WATCHDOG_USEC", "60000000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert service_manager() == Notifier("/run/notify", interval=float("inf"))


def lag(process: str) -> tuple[float | None, float | None]:
    """How often a loop said how late it was, and how late it was in all."""
    named = {"process": process}
    count, total = (f"paydesk_event_loop_lag_seconds_{what}" for what in ("count", "sum"))
    return REGISTRY.get_sample_value(count, named), REGISTRY.get_sample_value(total, named)


async def test_a_loop_says_how_late_it_comes_to_what_it_is_asked() -> None:
    late = Lag("late", asyncio.get_running_loop())
    late.ask()
    late.ask()
    time.sleep(0.02)  # noqa: ASYNC251 (it blocks the loop)
    await asyncio.sleep(0)
    answers, seconds = lag("late")
    assert (answers, seconds is not None and seconds >= 0.02) == (1, True)
    late.ask()
    await asyncio.sleep(0)
    assert lag("late")[0] == 2


async def test_what_watches_asks_again_and_again_and_measures_at_each_look() -> None:
    looks = [0]

    def count() -> None:
        looks[0] += 1

    async with asyncio.timeout(PATIENCE), watched("asked", on_look=count, **QUICK):
        while (lag("asked")[0] or 0) < 3 or looks[0] < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_measurement_that_fails_ends_no_watch() -> None:
    looks = [0]

    def fail() -> None:
        looks[0] += 1
        raise RuntimeError("no such pool")

    async with asyncio.timeout(PATIENCE), watched("failing", on_look=fail, **QUICK):
        await until(lambda: looks[0] >= 3 and is_alive("failing"))
