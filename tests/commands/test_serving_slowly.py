"""Processes that take long to start are waited for."""

import asyncio
import sys
from pathlib import Path

import psutil
from tests.lengths import long
from tests.processes import Kept, environment, eventually, free_port, words_of

PAUSE = 8.0
"""Seconds that the processes come to nothing: more than uvicorn by itself gives them,
less than we do."""


@long
async def test_processes_that_take_long_to_start_are_left_to_it(
    own_database_url: str, deployment_keys: dict[str, str], tmp_path: Path
) -> None:
    settings = {
        "DATABASE_URL": own_database_url,
        "DATA_DIR": tmp_path,
        "PORT": free_port(),
        "METRICS_PORT": free_port(),
        **{name.upper(): value for name, value in deployment_keys.items()},
    }
    command = [sys.executable, "-m", "paydesk", "serve", "--workers", "2"]
    async with Kept("serve", command, environment(settings), "ready to answer").running() as serving:
        begun: set[psutil.Process] = set()

        def all_begun() -> bool:
            for process in serving.descendants():
                if process not in begun and "--multiprocessing-fork" in words_of(process):
                    process.suspend()
                    begun.add(process)
            return len(begun) == 2

        await eventually(lambda: any('"event": "serving"' in line for line in serving.lines), "it begins", serving.tail)
        await eventually(all_begun, "two processes begin", serving.tail)
        await asyncio.sleep(PAUSE)
        for process in begun:
            process.resume()
        await eventually(lambda: len(serving.ready) == 2, "both processes serve", serving.tail)
        assert set(serving.ready) == {process.pid for process in begun}
        assert await serving.stop() == 0
