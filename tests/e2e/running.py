"""Paydesk as its users run it, for tests that go the whole way;
and what a customer types on the hosted page.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Page
from tests.processes import PATIENCE, free_port

OpenPage = Callable[..., Coroutine[Any, Any, Page]]
PATIENCE_MS = 30_000


@dataclass(frozen=True)
class Running:
    """A running Paydesk: its addresses, the sample shop's keys as the start-up block shows them,
    its environment.
    """

    address: str
    shop: str
    public_key: str
    private_key: str
    process: subprocess.Popen[bytes]
    environment: Mapping[str, str]

    @property
    def data(self) -> Path:
        """The folder with its data."""
        return Path(self.environment["PAYDESK_DATA_DIR"])

    def command(self, *words: str) -> Any:
        """Run a command against the running service; what it answers to `--json`."""
        ended = subprocess.run(
            [sys.executable, "-m", "paydesk", *words, "--json"], env=self.environment, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)


@contextmanager
def run_paydesk(folder: Path, *, port: int = 0, **settings: object) -> Iterator[Running]:
    """`paydesk run` with its data in a folder, until the end of the block; `settings` are more of
    them, by their names in small letters.
    """
    port, demo_port = port or free_port(), free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAYDESK_")}
    environment |= {
        "PAYDESK_PORT": str(port),
        "PAYDESK_DEMO_PORT": str(demo_port),
        "PAYDESK_METRICS_PORT": "0",
        "PAYDESK_DATA_DIR": str(folder / "data"),
        **{f"PAYDESK_{name.upper()}": str(value) for name, value in settings.items()},
    }
    said = folder / "said.txt"
    with said.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "paydesk", "run"], env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        text = wait_for_block(process, said)
        yield Running(
            address=f"http://127.0.0.1:{port}",
            shop=f"http://127.0.0.1:{demo_port}",
            public_key=found(r"public\s+(\w+)", text),
            private_key=found(r"private\s+(\w+)", text),
            process=process,
            environment=environment,
        )
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def wait_for_block(process: subprocess.Popen[bytes], said: Path) -> str:
    """What `paydesk run` printed, once it says that it is running."""
    for _ in range(1200):
        text = said.read_text()
        if "4000000000009987" in text:
            return text
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise AssertionError(f"paydesk run did not start:\n{said.read_text()[-3000:]}")


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


async def load_until(page: Page, comes: Callable[[], Awaitable[bool]]) -> None:
    """Load a page again and again until it shows what must come, in whatever time a busy machine
    takes.
    """
    async with asyncio.timeout(PATIENCE):
        while not await comes():
            await page.wait_for_timeout(200)
            await page.reload()


async def fill_in(page: Page, number: str, cvc: str = "123") -> None:
    await page.get_by_label("E-mail").fill("ada@example.com")
    await page.get_by_label("Card number").fill(number)
    await page.get_by_label("Expiry date").fill("12/30")
    await page.get_by_label("Security code").fill(cvc)
    await page.get_by_label("Name on card").fill("Ada King Lovelace")
    await page.get_by_label("Country").select_option("GB")
