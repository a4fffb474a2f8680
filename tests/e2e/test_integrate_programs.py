"""The programs of docs/integrate.md against `paydesk run` itself:
from the shop's form to the verified pingback.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tests.docs.shops import SHOPS, RunningShop, running_shop
from tests.lengths import long, one_of

PAGE = (Path(__file__).parents[2] / "docs" / "integrate.md").read_text()
PROGRAMS = dict(re.findall(r"^`([\w.-]+)`\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
CARD = {"email": "ada@example.com", "holder": "Ada Lovelace", "country": "GB", "expiry": "12/30", "cvc": "123"}


@pytest.fixture(params=list(SHOPS))
def shop(request: pytest.FixtureRequest, running: Any, tmp_path: Path) -> Iterator[RunningShop]:
    command = SHOPS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} IS NOT INSTALLED: ITS PROGRAM IN docs/integrate.md WAS NOT TRIED")
    for name, code in PROGRAMS.items():
        (tmp_path / name).write_text(code)
    keys = {"PUBLIC_KEY": running.public_key, "PRIVATE_KEY": running.private_key}
    with running_shop(command, tmp_path, PAY_URL=f"{running.address}/sandbox", **keys) as opened:
        yield opened


def posted(html: str) -> str:
    """Post a shop's form; the checkout's address."""
    found = re.search(r'<form[^>]*action="([^"]+)"', html)
    assert found is not None, html
    form = {unescape(name): unescape(value) for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', html)}
    opened = httpx.post(unescape(found[1]), data=form)
    assert opened.status_code == 303, opened.text
    base = "{0.scheme}://{0.netloc}".format(urlsplit(unescape(found[1])))
    return base + opened.headers["location"]


@long
@pytest.mark.parametrize("version", one_of(2, ["v2", "v1"]))
def test_a_shop_made_from_the_page_is_paid(shop: RunningShop, version: str) -> None:
    order = f"order-{version}-{time.time_ns()}"
    html = httpx.get(f"{shop.url}/buy", params={"order": order, "version": version}).text
    checkout = posted(html)
    paid = httpx.post(f"{checkout}/pay", data={**CARD, "number": "4242424242424242"})
    assert paid.status_code == 303, paid.text
    assert paid.headers["location"].startswith(f"{shop.url}/thanks")
    shop.wait_until(lambda: order in shop.paid(), "the shop believes the pingback")


@long
def test_a_club_made_from_the_page_is_joined_renewed_and_left(running: Any, tmp_path: Path) -> None:
    (tmp_path / "club.py").write_text(PROGRAMS["club.py"])
    keys = {"PUBLIC_KEY": running.public_key, "PRIVATE_KEY": running.private_key}
    merchant_id = str(min(one["id"] for one in running.command("merchant", "list")))
    with running_shop([sys.executable, "club.py"], tmp_path, PAY_URL=f"{running.address}/sandbox", **keys) as club:
        name = f"ada{time.time_ns()}"
        checkout = posted(httpx.get(f"{club.url}/join", params={"name": name}).text)
        paid = httpx.post(f"{checkout}/pay", data={**CARD, "number": "4242424242424242", "agree": "en"})
        assert paid.status_code == 303, paid.text

        def says(words: str) -> bool:
            return words in httpx.get(club.url, params={"name": name}).text

        club.wait_until(lambda: says("payments: 1"), "the first payment counts")
        running.command("clock", "advance", merchant_id, "1m")
        club.wait_until(lambda: says("payments: 2"), "the renewal counts")
        left = httpx.post(f"{club.url}/leave", data={"name": name}).text
        assert "until the end of the month" in left
        assert says("payments: 2")
        running.command("clock", "advance", merchant_id, "1m")
        club.wait_until(lambda: says("is no member"), "the end is told")
