"""A service that ends answers what has come, and takes nothing new: who asks for its health page is
refused, and knows that it is not frozen.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.lengths import one_of
from tests.processes import Kept, environment, eventually, free_port

FORM = b"currency=USD"
HEAD = (
    b"POST /payment/form HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    b"content-type: application/x-www-form-urlencoded\r\ncontent-length: %d\r\n\r\n" % len(FORM)
)


async def is_refused(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


@pytest.mark.parametrize("workers", one_of(2, ["2", "1"]))
async def test_what_has_come_is_answered_while_nothing_new_is_taken(
    own_database_url: str, deployment_keys: dict[str, str], tmp_path: Path, workers: str
) -> None:
    port = free_port()
    settings = {
        "DATABASE_URL": own_database_url,
        "DATA_DIR": tmp_path,
        "PORT": port,
        "METRICS_PORT": 0,
        **{name.upper(): value for name, value in deployment_keys.items()},
    }
    command = [sys.executable, "-m", "paydesk", "serve", "--workers", workers]
    async with Kept("serve", command, environment(settings), "ready to answer").running() as serving:
        await eventually(lambda: len(serving.ready) == int(workers), "it serves", serving.tail)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD + FORM[:3])
        await writer.drain()
        await asyncio.sleep(0.5)
        stopping = asyncio.create_task(serving.stop())
        while not await is_refused(port):  # noqa: ASYNC110 (the system sends no event)
            await asyncio.sleep(0.05)
        assert not stopping.done(), "a form is on its way"
        writer.write(FORM[3:])
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.close()
        assert await stopping == 0
