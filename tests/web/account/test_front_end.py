import json
import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.lengths import long

from paydesk.web.assets import ASSETS

ROOT = Path(__file__).parents[3]
PACKAGE = json.loads((ROOT / "package.json").read_text())


@pytest.fixture(scope="module")
def build() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "hatch_build.py"))


def test_every_version_is_exact_and_no_host_is_named() -> None:
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in PACKAGE["dependencies"].values())
    assert "://" not in (ROOT / "package.json").read_text()
    assert not (ROOT / "package-lock.json").exists()


def test_the_pages_find_the_files_of_others() -> None:
    for name in ("tabler.css", "tabler-rtl.css", "tabler-auto.css", "htmx.js", "uplot.js", "uplot.css"):
        assert b"sourceMappingURL" not in ASSETS.find(name).content


def test_nothing_is_fetched_twice(build: dict[str, Any]) -> None:
    assert build["bring"](build["VENDOR"]) is False


def test_a_changed_file_is_refused(build: dict[str, Any], tmp_path: Path) -> None:
    wanted = PACKAGE["paydesk"]
    for path in wanted["sha256"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("something else")
    with pytest.raises(build["FrontEndError"], match="SHA-256"):
        build["make"](wanted, tmp_path)


def test_the_systems_dark_theme_is_the_chosen_one(build: dict[str, Any]) -> None:
    css = """:root,[data-bs-theme=light]{--a:1}.x,[data-bs-theme=dark],body:is(.a,[data-bs-theme=dark]) b{--a:"}"}
    @media print{[data-bs-theme=dark]{--a:3}}:root[data-bs-theme=dark] .y,.z{--a:4}"""
    assert build["automatic_dark"](css) == (
        '@media (prefers-color-scheme:dark){[data-bs-theme=auto]{--a:"}"}\n[data-bs-theme=auto] .y{--a:4}}\n'
    )


@long
def test_a_wheel_holds_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {Path(name).name for name in archive.namelist() if "/console/static/vendor/" in name}
    assert {
        "tabler.css",
        "tabler-rtl.css",
        "tabler-auto.css",
        "htmx.js",
        "uplot.js",
        "uplot.css",
        "icons.json",
        "licences.txt",
    } <= held
