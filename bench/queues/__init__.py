"""Job queues by which others send their webhooks, measured where they are installed:
BullMQ and Celery, both on Redis without any durability.

BullMQ is found with ioredis as Node.js finds it (`NODE_PATH`), Celery by its command on the `PATH`
(an environment with `celery[redis]` and `requests`).
Each posts the same body to the same receiver, which says how long it took from the first to the
last.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

_HERE = Path(__file__).parent
_REDIS = "redis-server"


@dataclass(frozen=True, slots=True)
class Load:
    """What is to be sent, where to, and how many requests at once."""

    url: str
    body: bytes
    number: int
    at_once: int


def installed() -> list[str]:
    """The queues that can be measured here, by name."""
    if shutil.which(_REDIS) is None:
        return []
    return [name for name, command in (("BullMQ", _bullmq()), ("Celery", _celery(1))) if command]


async def rate(name: str, base: str, load: Load) -> float:
    """How many a second a queue has posted; Redis is started for it, and holds all jobs
    before the first is sent.
    """
    command = _bullmq() if name == "BullMQ" else _celery(load.at_once)
    async with _redis() as port, aiohttp.ClientSession() as session:
        await _seen(session, base)
        given = {
            "BENCH_REDIS_PORT": str(port),
            "BENCH_URL": load.url,
            "BENCH_BODY": load.body.decode(),
            "BENCH_NUMBER": str(load.number),
            "BENCH_AT_ONCE": str(load.at_once),
        }
        process = await asyncio.create_subprocess_exec(
            *command, cwd=_HERE, env=os.environ | given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            return await _posted(session, base, load.number, process)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _posted(session: aiohttp.ClientSession, base: str, number: int, process: asyncio.subprocess.Process) -> float:
    """Wait until the receiver has heard all of it; how many that were a second."""
    count, took = 0, 0.0
    while count < number:
        if process.returncode is not None and process.returncode != 0:
            raise RuntimeError(f"the queue ended with status {process.returncode}")
        await asyncio.sleep(0.2)
        count, took = await _seen(session, base, forget=False)
    assert count == number, f"{count} were posted, not {number}"
    return number / took


async def _seen(session: aiohttp.ClientSession, base: str, *, forget: bool = True) -> tuple[int, float]:
    """How many the receiver has heard since it last forgot them, and the seconds
    from the first to the last.
    """
    async with session.get(f"{base}/seen", params={"forget": int(forget)}) as response:
        seen = await response.json()
    return int(seen["count"]), float(seen["seconds"])


def _bullmq() -> list[str]:
    node = shutil.which("node")
    needed = "require.resolve('bullmq'); require.resolve('ioredis')"
    if node is None or subprocess.run([node, "-e", needed], capture_output=True).returncode:
        return []
    return [node, str(_HERE / "bullmq.cjs")]


def _celery(at_once: int) -> list[str]:
    celery = shutil.which("celery")
    if celery is None:
        return []
    return [
        celery,
        "--app",
        "celery_sender",
        "worker",
        "--pool",
        "threads",
        "--concurrency",
        str(at_once),
        "--loglevel",
        "ERROR",
    ]


@asynccontextmanager
async def _redis() -> AsyncIterator[int]:
    """Redis on a free port, which writes nothing to the disk."""
    with tempfile.TemporaryDirectory(prefix="paydesk-bench-") as folder:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        nowhere = ["--save", "", "--appendonly", "no", "--dir", folder]
        process = await asyncio.create_subprocess_exec(
            _REDIS, "--bind", "127.0.0.1", "--port", str(port), *nowhere, stdout=subprocess.DEVNULL
        )
        try:
            await _listening(port)
            yield port
        finally:
            process.terminate()
            await process.wait()


async def _listening(port: int) -> None:
    for _ in range(100):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise RuntimeError("Redis does not start")
