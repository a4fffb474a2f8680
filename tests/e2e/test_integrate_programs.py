"""The programs of docs/integrate.md against `paydesk run` itself:
from the shop's form to the verified pingback.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "integrate.md").read_text()
PROGRAMS = dict(re.findall(r"^`([\w.-]+)`\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
SHOPS = {
    "shop.php": ["php", "-S", "{address}", "shop.php"],
    "shop.py": [sys.executable, "shop.py"],
    "shop.mjs": ["node", "shop.mjs"],
}
CARD = {"email": "ada@example.com", "holder": "Ada Lovelace", "country": "GB", "expiry": "12/30", "cvc": "123"}


@dataclass(frozen=True)
class Shop:
    url: str
    log: Path

    def paid(self) -> list[str]:
        """The orders that the shop took for paid."""
        return re.findall(r"paid (\S+)", self.log.read_text())


@pytest.fixture(params=list(SHOPS))
def shop(request: pytest.FixtureRequest, running: Any, tmp_path: Path) -> Iterator[Shop]:
    command = SHOPS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} IS NOT INSTALLED: ITS PROGRAM IN docs/integrate.md WAS NOT TRIED")
    for name, code in PROGRAMS.items():
        (tmp_path / name).write_text(code)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    environment = os.environ | {
        "PAY_URL": f"{running.address}/sandbox",
        "PUBLIC_KEY": running.public_key,
        "PRIVATE_KEY": running.private_key,
        "SHOP_URL": f"http://{address}",
    }
    log = tmp_path / "said"
    with log.open("w") as output:
        process = subprocess.Popen(
            [part.format(address=address) for part in command],
            cwd=tmp_path,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: answers(f"http://{address}"), "the shop answers", log)
        yield Shop(f"http://{address}", log)
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    try:
        httpx.get(url)
    except httpx.TransportError:
        return False
    return True


def wait_until(condition: Any, what: str, log: Path) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"waited in vain until {what}:\n{log.read_text()[-2000:]}")


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_shop_made_from_the_page_is_paid(shop: Shop, version: str) -> None:
    order = f"order-{version}-{time.time_ns()}"
    html = httpx.get(f"{shop.url}/buy", params={"order": order, "version": version}).text
    found = re.search(r'<form[^>]*action="([^"]+)"', html)
    assert found is not None, html
    form = {unescape(name): unescape(value) for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', html)}
    opened = httpx.post(unescape(found[1]), data=form)
    assert opened.status_code == 303, opened.text
    base = "{0.scheme}://{0.netloc}".format(urlsplit(unescape(found[1])))
    checkout = base + opened.headers["location"]
    paid = httpx.post(f"{checkout}/pay", data={**CARD, "number": "4242424242424242"})
    assert paid.status_code == 303, paid.text
    assert paid.headers["location"].startswith(f"{shop.url}/thanks")
    wait_until(lambda: order in shop.paid(), "the shop believes the pingback", shop.log)
