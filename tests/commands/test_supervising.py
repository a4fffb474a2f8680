"""Processes that are kept: whatever ends them, or makes them stand still,
another one takes their place.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.lengths import long
from tests.processes import PATIENCE, eventually

from paydesk.commands.measuring import FOLDER, AllProcesses
from paydesk.commands.supervising import Patience, Process
from paydesk.core.errors import SetupError

QUICK = Patience(interval=0.02, end=0.2, longest_pause=0.05)

LIVES = """
import signal, socket, sys, time
channel = socket.socket(fileno=int(sys.argv[-1]))
{before}
channel.send(b"R")
while True:
    channel.send(b".")
    time.sleep(0.01)
"""


def kept(script: str, patience: Patience = QUICK) -> Process:
    return Process("of a test", [sys.executable, "-c", script], os.environ, patience=patience)


@asynccontextmanager
async def keeping(process: Process) -> AsyncIterator[list[Any]]:
    """Keeps a process for the length of a block; gives the log."""
    stop = asyncio.Event()
    with capture_logs() as logs:
        task = asyncio.create_task(process.keep(stop))
        try:
            async with asyncio.timeout(PATIENCE):
                await process.ready.wait()
            yield logs
        finally:
            stop.set()
            await task
            await process.end(PATIENCE)
    assert process.pid is None


def events(logs: list[Any]) -> list[str]:
    return [line["event"] for line in logs if line["log_level"] == "error"]


def another_than(process: Process, pid: int | None) -> Callable[[], bool]:
    return lambda: process.pid not in (None, pid)


async def test_a_process_that_dies_is_started_again() -> None:
    process = kept(LIVES.format(before=""))
    async with keeping(process) as logs:
        first = process.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await eventually(another_than(process, first), "another one")
        assert events(logs)[0] == "a process has ended; it is started again"
        assert logs[1]["ended"] == "SIGKILL"


async def test_a_process_whose_heartbeat_stands_still_is_ended_and_started_again() -> None:
    process = kept(LIVES.format(before=""), replace(QUICK, still=1.0))
    async with keeping(process) as logs:
        first = process.pid
        assert first is not None
        # Stopped, it can't even take a SIGTERM: only being killed ends it.
        os.kill(first, signal.SIGSTOP)
        await eventually(another_than(process, first), "another one")
        # Until the system has put it away, it may be killed once more.
        assert list(dict.fromkeys(events(logs)))[:3] == [
            "a process stands still; it is started again",
            "a process that stands still does not end; it is killed",
            "a process has ended; it is started again",
        ]


async def test_a_process_that_takes_no_sigterm_is_killed_in_the_end() -> None:
    process = kept(LIVES.format(before="signal.signal(signal.SIGTERM, signal.SIG_IGN)"))
    with capture_logs() as logs:
        task = asyncio.create_task(process.keep(stop := asyncio.Event()))
        await process.ready.wait()
        stop.set()
        await task
        await process.end(0.1)
    assert process.pid is None
    assert set(events(logs)) == {"a process does not end when it is asked to; it is killed"}


async def test_a_process_that_ends_again_and_again_is_started_less_and_less_often() -> None:
    process = kept(LIVES.partition("while")[0].format(before=""))
    async with keeping(process) as logs:
        await eventually(lambda: len(events(logs)) >= 4, "four ends")
    pauses = [line["in_seconds"] for line in logs if line["log_level"] == "error"]
    assert pauses[:4] == [0.0, 0.05, 0.05, 0.05]


async def test_a_process_that_can_not_be_started_is_no_reason_to_try_for_ever() -> None:
    with pytest.raises(SetupError, match="the of a test process did not start"):
        await kept("raise SystemExit(1)").keep(asyncio.Event())


@long
def test_one_of_many_whose_loop_stands_still_ends_itself() -> None:
    script = """
import asyncio, signal, time
from paydesk.commands import serving
from paydesk.loops.watching import watched
serving.END_GRACE = 0.1
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: None)
    async with watched("serve", interval=0.02, patience=0.1, on_still=serving._end_this_process):
        time.sleep(3600)
asyncio.run(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert "the event loop stands still" in ended.stdout + ended.stderr


def test_what_died_is_not_shown_among_the_heartbeats(tmp_path: Path) -> None:
    script = """
from paydesk.loops.metrics import HEARTBEAT, STARTS
HEARTBEAT.labels("web").set(7)
STARTS.labels("web").inc()
print("set", flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, FOLDER: str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"set\n"
        assert AllProcesses(tmp_path).heartbeats() == ((str(process.pid), 7.0),)
        process.communicate(b"\n")
    everybody = AllProcesses(tmp_path)
    assert everybody.heartbeats() == ()
    shown = {sample.name: sample.value for metric in everybody.collect() for sample in metric.samples}
    assert shown["paydesk_process_starts_total"] == 1
    assert "paydesk_heartbeat_timestamp_seconds" not in shown
