"""What `make dist` hands out is the same wherever it is built, holds all of Paydesk, and runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.lengths import long

from deploy import building
from paydesk.commands.settings_table import settings_table

ROOT = Path(__file__).parents[2]
PARTS = ("src", "docs", ".gitignore", "pyproject.toml", "README.md", "LICENSE", "hatch_build.py", "package.json")
EPOCH = 1_700_000_000


def copied(tree: Path) -> Path:
    """A copy of what a build reads, as it is now."""
    tree.mkdir(parents=True)
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / part, tree)
    return tree


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dist")
    building.build(copied(place / "tree"), place / "out", EPOCH)
    return place / "out"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@long
def test_it_is_the_same_to_the_byte_wherever_and_whenever_it_is_built(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    before = os.umask(0o077)
    try:
        tree = copied(tmp_path / "another" / "place" / "paydesk")
        for file in tree.rglob("*"):
            os.utime(file, (time.time(), 1_600_000_000))
            if file.is_file():
                file.chmod(0o600)
        building.build(tree, tmp_path / "out", EPOCH)
    finally:
        os.umask(before)
    first, second = ({file.name: file.read_bytes() for file in out.iterdir()} for out in (built, tmp_path / "out"))
    assert len(first) == 2
    assert first == second


def test_the_wheel_holds_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    left_out = {"paydesk_client/pyproject.toml", "paydesk_client/README.md"}
    source = {
        file.relative_to(ROOT / "src").as_posix()
        for package in ("paydesk", "paydesk_client")
        for file in (ROOT / "src" / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith("paydesk-")}
    assert held == source - left_out | {f"paydesk/web/guide/texts/{page}" for page in ("integrate.md", "interface.md")}
    endings = {Path(name).suffix for name in held}
    assert {".py", ".sql", ".html", ".css", ".js", ".po", ".md"} <= endings


def test_times_are_the_commits(built: Path, wheel: Path) -> None:
    when = time.gmtime(EPOCH)[:6]
    assert {entry.date_time for entry in zipfile.ZipFile(wheel).infolist()} == {when}
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as files:
        assert {(entry.mtime, entry.uid, entry.gid) for entry in files} == {(EPOCH, 0, 0)}


@long
def test_it_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(place)]
    subprocess.run([*install, str(wheel)], check=True)

    def paydesk(*words: str) -> str:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PAYDESK_")}
        ran = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            env={**clean, "PYTHONPATH": str(place), "PAYDESK_DATA_DIR": str(tmp_path / "data")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    (tmp_path / "whence.py").write_text("import paydesk; print(paydesk.__file__)")
    assert paydesk("whence").startswith(str(place))
    assert "migrate" in paydesk("paydesk", "--help")
    assert paydesk("paydesk", "settings").strip() == settings_table()
    assert paydesk("paydesk", "migrate").startswith("applied 0165_baseline")


def test_what_a_running_paydesk_needs_is_listed_with_hashes_and_nothing_else() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    listed = building.needed(lock)
    names = set(re.findall(r"^([a-z0-9.-]+)==", listed, re.M))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct, dev = (
        {re.split(r"[^A-Za-z0-9-]", each)[0].lower() for each in wanted}
        for wanted in (project["dependencies"], project["optional-dependencies"]["dev"])
    )
    assert direct <= names
    assert names.isdisjoint(dev - {"httpx", "psutil"})
    assert "starlette" in names, "what is needed by what is needed"
    assert re.fullmatch(r"(?:[a-z0-9.-]+==[^\n]+\\\n(?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)+", listed)
