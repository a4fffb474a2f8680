from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import httpx
import pytest

from paydesk import web
from paydesk.web.assets import ASSETS, Assets, asset_url, static_app


def browser() -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(static_app()), base_url="http://static")


def below_mount(name: str) -> str:
    return asset_url(name).removeprefix("/static")


async def test_a_file_is_served_for_ever_under_its_hashed_name() -> None:
    async with browser() as client:
        answer = await client.get(below_mount("page.css"))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_gzip_is_sent_to_those_who_accept_it_and_only_to_them() -> None:
    async with browser() as client:
        packed = await client.get(below_mount("checkout.js"), headers={"Accept-Encoding": "br, gzip"})
        plain = await client.get(below_mount("checkout.js"), headers={"Accept-Encoding": "identity"})
        refused = await client.get(below_mount("checkout.js"), headers={"Accept-Encoding": "gzip;q=0, *"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in refused.headers
    assert packed.content == plain.content
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["/page.css", "/checkout.0000000000.css", "/..%2Fpages.py", "/", "/a/b"])
async def test_any_other_name_is_not_found(path: str) -> None:
    async with browser() as client:
        assert (await client.get(path)).status_code == 404


def test_the_name_changes_with_the_content(tmp_path: Path) -> None:
    (tmp_path / "page.css").write_text("a{}")
    before = Assets([tmp_path]).url("page.css")
    assert Assets([tmp_path]).url("page.css") == before
    (tmp_path / "page.css").write_text("b{}")
    assert Assets([tmp_path]).url("page.css") != before


def test_two_files_of_one_name_stop_the_start(tmp_path: Path) -> None:
    for door in ("one", "two"):
        (tmp_path / door).mkdir()
        (tmp_path / door / "page.css").write_text(door)
    with pytest.raises(ValueError, match=r"page\.css"):
        Assets([tmp_path / "one", tmp_path / "two"])


def test_an_unknown_plain_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        asset_url("nothing.css")


def test_compression_is_the_same_on_every_machine() -> None:
    for name in ("page.css", "checkout.js"):
        asset = ASSETS.find(name)
        assert gzip.decompress(asset.compressed) == asset.content
        assert asset.compressed[4:8] == b"\0\0\0\0", "a gzip header with a time in it differs at every start"


WEB = Path(web.__path__[0])
WRITTEN = "\n".join(
    path.read_text()
    for path in sorted(WEB.rglob("*"))
    if path.suffix in (".py", ".html", ".js") and not {"vendor", "locale"} & set(path.parts)
)
STYLES = sorted(path for path in WEB.rglob("static/*.css"))
PUT_TOGETHER = ("btn-", "tone-")
"""What the names of classes begin with whose ends are values."""


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.stem)
def test_each_class_of_a_style_sheet_is_on_some_page(path: Path) -> None:
    selectors = re.findall(r"([^{}]+)\{", re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL))
    classes = {name for selector in selectors for name in re.findall(r"\.([a-zA-Z][\w-]*)", selector)}
    named = {name for name in classes if not name.startswith(PUT_TOGETHER)}
    assert sorted(name for name in named if not re.search(rf"(?<![\w-]){name}(?![\w-])", WRITTEN)) == []


def test_each_icon_that_is_brought_is_on_some_page() -> None:
    icons = json.loads((Path(__file__).parents[2] / "package.json").read_text())["paydesk"]["icons"]
    assert [name for name in icons if not re.search(rf"[\"']{name}[\"']", WRITTEN)] == []
