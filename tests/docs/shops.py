"""The shops of docs/integrate.md, each started as the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from tests.processes import free_port

SHOPS = {
    "shop.php": ["php", "-S", "{address}", "shop.php"],
    "shop.py": [sys.executable, "shop.py"],
    "shop.mjs": ["node", "shop.mjs"],
}


@dataclass(frozen=True)
class RunningShop:
    """One of the page's shops, and what it has written so far."""

    url: str
    log: Path

    def told(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        answer = httpx.post(
            f"{self.url}/pingback", content=body, headers={"Content-Type": "application/json", **headers}
        )
        return answer.status_code, answer.text

    def paid(self) -> list[str]:
        """The orders that the shop took for paid."""
        return re.findall(r"paid (\S+)", self.log.read_text())

    def answers(self) -> bool:
        try:
            httpx.get(self.url)
        except httpx.TransportError:
            return False
        return True

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        for _ in range(1200):
            if condition():
                return
            time.sleep(0.1)
        raise AssertionError(f"waited in vain until {what}:\n{self.log.read_text()[-2000:]}")


@contextmanager
def running_shop(command: list[str], folder: Path, **environment: str) -> Iterator[RunningShop]:
    """A shop whose program is in a folder, at work for the length of a block."""
    shop = RunningShop(f"http://127.0.0.1:{free_port()}", folder / "log")
    words = [part.format(address=urlsplit(shop.url).netloc) for part in command]
    env = {**os.environ, **environment, "SHOP_URL": shop.url}
    with shop.log.open("w") as output:
        process = subprocess.Popen(words, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT)
    try:
        shop.wait_until(lambda: process.poll() is not None or shop.answers(), "the shop answers")
        assert process.poll() is None, shop.log.read_text()
        yield shop
    finally:
        process.kill()
        process.wait()
